"""Readers of replies: JSON, by a ladder whose rung is recorded, and plain text."""

from __future__ import annotations

import builtins
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

import msgspec

from harness.base.errors import PluginError
from harness.contracts.outcomes import Parsed, Unreadable
from harness.parsing.decode import (
    LARGEST,
    NotJson,
    Span,
    decode,
    fenced_blocks,
    outermost,
    repair_json,
    whole_characters,
)

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


T = TypeVar("T")

LADDER_VERSION = 2
"""To be raised when any text is read differently than before; part of every stage's key."""

MAX_CANDIDATES = 16
MAX_REPAIRED = 3
DETAIL_LENGTH = 200
BLANK = " \t\r\n\f\v\u00a0\u200b\ufeff"

Kind = Literal["object", "array", "any"]


@dataclass(frozen=True, kw_only=True, eq=False)
class JsonReader(Generic[T]):
    """Reads JSON of a type from a reply, whatever else the reply holds.

        read = JsonReader(type=list[Interest])
        read('[{"name": "baking", "cited": [1, 4]}]')    # Parsed([Interest("baking", ...)], ...)

    The rungs, and the candidate that counts where several fit the type:
    "strict": the whole text is JSON.
    "fenced": the last fenced block that is JSON.
    "brackets": the outermost JSON in the text: of several objects the last, of several arrays the
    longest (citations such as [3] are arrays too), of equal ones the later.
    "repaired": the same, where the JSON is broken and can be repaired.
    "regex": the value that `fallback` finds in the whole text.
    A text in which no bracket begins anything like JSON is never repaired into a value.

    `type` is the type to which msgspec converts the JSON, strictly: "3" is no number, 3.0 is an
    integer.
    `schema` is the JSON Schema that a server may be asked to enforce: it is made from `type`, or
    given in place of a type, and then the value is the JSON itself.
    `convert` makes the final value, and raises ValueError for JSON that it cannot accept; the next
    rung is then tried.
    `fallback` finds a value in a text without JSON, or returns None. Any other error that
    `convert` or `fallback` raises is a fault of the benchmark.
    `kind` is the kind of JSON that counts: "object", "array" or "any"; by default it follows from
    the schema.
    """

    type: Any = None
    schema: dict[str, Any] | None = None
    convert: Callable[[Any], T] | None = None
    fallback: Callable[[str], Any] | None = None
    kind: Kind | None = None

    if TYPE_CHECKING:
        # The value has the type `type`, or the type that `convert` returns.
        @overload
        def __init__(
            self,
            *,
            type: builtins.type[T],
            fallback: Callable[[str], Any] | None = None,
            kind: Kind | None = None,
        ) -> None: ...
        @overload
        def __init__(
            self,
            *,
            type: Any = None,
            schema: dict[str, Any] | None = None,
            convert: Callable[[Any], T] | None = None,
            fallback: Callable[[str], Any] | None = None,
            kind: Kind | None = None,
        ) -> None: ...
        def __init__(self, **given: Any) -> None: ...

    def __post_init__(self) -> None:
        if self.type is None:
            return
        if self.schema is not None:
            raise PluginError(
                "a reader has both a type and a schema",
                expected="either `type` or `schema`: a type brings its own schema",
            )
        object.__setattr__(self, "schema", wire_schema(self.type))

    def __call__(self, text: str) -> Parsed[T] | Unreadable:
        """The value of a reply, or the reason why it has none."""
        text = whole_characters(text).strip(BLANK)
        if not text:
            return Unreadable("empty")
        cause, detail = "no_json", ""
        for rung, value in self._candidates(text):
            if isinstance(value, NotJson):
                detail = detail or str(value)
                continue
            try:
                return Parsed(self._read(value), rung)
            except ValueError as error:
                problem = str(error)
            if cause == "no_json":
                cause, detail = "schema", problem
        return Unreadable(cause, _short(detail or "nothing in the text begins like JSON"))

    def _candidates(self, text: str) -> Iterator[tuple[str, Any]]:
        """The candidates of each rung, best first; a NotJson is the reason of a failed repair."""
        try:
            yield "strict", decode(text)
        except NotJson:
            yield from self._inside(text)
        if self.fallback is not None:
            value = self.fallback(text)
            if value is not None:
                yield "regex", value

    def _inside(self, text: str) -> Iterator[tuple[str, Any]]:
        blocks = fenced_blocks(text)[-MAX_CANDIDATES:][::-1]
        for block in blocks:
            try:
                yield "fenced", decode(block)
            except NotJson:
                continue
        spans = self._ranked(text)
        for span in [span for span in spans if span.error is None][:MAX_CANDIDATES]:
            yield "brackets", span.value
        # Broken JSON inside a fence ends with the block.
        fenced = [span for block in blocks for span in self._ranked(block)]
        for span in [span for span in (*fenced, *spans) if span.error is not None][:MAX_REPAIRED]:
            try:
                yield "repaired", repair_json(span.text)
            except NotJson as error:
                yield "repaired", error

    def _ranked(self, text: str) -> list[Span]:
        """The spans of the right kind, in the order in which they are tried."""
        kind = self._kind
        fitting = [span for span in reversed(outermost(text)) if kind in ("any", span.kind)]
        if kind != "object":
            fitting.sort(key=lambda span: len(span.text), reverse=True)
        return fitting

    def _read(self, value: Any) -> T:
        """The final value of JSON; ValueError where the JSON does not fit."""
        kind = self._kind
        if kind != "any" and not isinstance(value, dict if kind == "object" else list):
            raise ValueError(f"{type(value).__name__} where the {kind} of the answer should be")
        if self._check is not None and (problem := self._check.problem(value)) is not None:
            raise ValueError(problem)
        if self.type is not None:
            value = typed(value, self.type)
        if self.convert is None:
            return cast(T, value)
        try:
            return self.convert(value)
        except ValueError as error:
            raise ValueError(f"the benchmark refused it: {error}") from error

    @functools.cached_property
    def _kind(self) -> str:
        if self.kind is not None:
            return self.kind
        wanted = self.schema.get("type") if self.schema is not None else None
        return wanted if wanted in ("object", "array") else "any"

    @functools.cached_property
    def _check(self) -> SchemaCheck | None:
        if self.schema is None or self.type is not None:
            return None
        return SchemaCheck(self.schema)


def last_object(text: str) -> Parsed[dict[str, Any]] | Unreadable:
    """The last JSON object of a text, which may be the last element of a list.

        last_object('First {"rating": 2}, no: {"rating": 4}')    # {"rating": 4}, "brackets"

    No earlier object is tried instead: the model may have withdrawn it. The rung is "strict" where
    the object is the whole text, "fenced" where it is the whole last fenced block, "brackets"
    within other text or a list, and "repaired" where it had to be repaired.
    """
    text = whole_characters(text).strip(BLANK)
    if not text:
        return Unreadable("empty")
    found = [span for span in outermost(text) if _may_end_in_object(span)]
    if not found:
        return Unreadable("no_json", "nothing in the text begins like a JSON object")
    try:
        return _object_in(found[-1], text)
    except NotJson as error:
        return Unreadable("no_json", str(error)[:80])


def _may_end_in_object(span: Span) -> bool:
    if span.kind == "object":
        return True
    if span.error is not None:
        return "{" in span.text
    return bool(span.value) and isinstance(span.value[-1], dict)


def _object_in(span: Span, text: str) -> Parsed[dict[str, Any]]:
    value = span.value if span.error is None else repair_json(span.text)
    inside = value[-1] if isinstance(value, list) and value else value
    if not isinstance(inside, dict):
        raise NotJson("the last JSON of the text is a list without an object at its end")
    if span.error is not None:
        return Parsed(inside, "repaired")
    if inside is not value:
        return Parsed(inside, "brackets")
    if span.text == text:
        return Parsed(inside, "strict")
    return Parsed(inside, "fenced" if span.text in fenced_blocks(text)[-1:] else "brackets")


@dataclass(frozen=True, kw_only=True, eq=False)
class TextReader(Generic[T]):
    """Reads plain text: the whole reply (rung "text"), or the match of a pattern (rung "regex").

        read = TextReader(pattern=r"rating: (\\d++)", convert=int)
        read("I would say: rating: 4")    # Parsed(4, "regex")

    `pattern` is searched for, and of several matches the last counts, since answers follow their
    reasons; the value is the first group, or the match where the pattern has no group. A pattern
    must take linear time on hostile text; possessive quantifiers (`\\d++`) help. `convert` makes
    the final value, and raises ValueError for text that it cannot accept.
    """

    pattern: str | re.Pattern[str] | None = None
    convert: Callable[[str], T] | None = None

    @property
    def schema(self) -> None:
        """None: no schema describes plain text."""
        return

    def __call__(self, text: str) -> Parsed[T] | Unreadable:
        """The value of a reply, or the reason why it has none."""
        text = whole_characters(text).strip(BLANK)
        if not text:
            return Unreadable("empty")
        rung, value = "text", text
        if self.pattern is not None:
            match = None
            for match in re.finditer(self.pattern, text):  # noqa: B007
                pass
            found = match[1 if match.re.groups else 0] if match else None
            if found is None:
                return Unreadable("schema", _short(f"nothing matches in: {text}"))
            rung, value = "regex", found.strip()
        try:
            return Parsed(self.convert(value) if self.convert else cast(T, value), rung)
        except ValueError as error:
            return Unreadable("schema", _short(f"the benchmark refused it: {error}"))


def typed(value: Any, kind: Any) -> Any:
    """JSON converted to a type; ValueError, with the path, where it does not fit."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        # 3.0 is an integer for JSON Schema, and for servers that enforce one, but not for msgspec.
        value = _with_whole_numbers(value)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `")
        raise ValueError(f"at {path.rstrip('`') or '$'}: {problem}") from None


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and -LARGEST <= value < LARGEST:
        return int(value)
    if isinstance(value, list):
        return [_with_whole_numbers(one) for one in value]
    if isinstance(value, dict):
        return {key: _with_whole_numbers(one) for key, one in value.items()}
    return value


def _short(detail: str) -> str:
    flat = " ".join(detail[: 4 * DETAIL_LENGTH].split())
    return flat if len(flat) <= DETAIL_LENGTH else f"{flat[: DETAIL_LENGTH - 1]}…"


MOST_ERRORS = 20
LISTS_OF_SCHEMAS = ("anyOf", "prefixItems")
SCHEMAS = ("items", "additionalProperties")
FOR_PEOPLE = ("title", "description")
UNSUPPORTED_KEYWORDS = frozenset({"$ref", "default", "discriminator"})
"""Keywords of msgspec's schemas that strict servers reject; they are left out of requests."""


class SchemaCheck:
    """Checks values against a schema, which is compiled at its first use."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    def problem(self, value: Any) -> str | None:
        """The problem of a value; None where it fits the schema."""
        from jsonschema.exceptions import best_match

        error = best_match(itertools.islice(self._validator.iter_errors(value), MOST_ERRORS))
        return None if error is None else f"at {error.json_path}: {error.message}"

    @functools.cached_property
    def _validator(self) -> Validator:
        import jsonschema

        kind = jsonschema.Draft202012Validator
        try:
            kind.check_schema(self._schema)
        except jsonschema.SchemaError as error:
            raise PluginError(
                "a reader's schema is no valid JSON Schema", found=error.message
            ) from error
        return kind(self._schema)


def wire_schema(kind: Any) -> dict[str, Any]:
    """The schema of a type in the form that strict servers accept; PluginError if it has none.

        wire_schema(list[Interest])["items"]["required"]    # ["name", "cited"]

    References are replaced by their targets. All fields of a Struct that forbids unknown fields are
    required, also fields with a default. The name and the docstring of a Struct are left out, so
    that a better docstring does not change the request.
    """
    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        raise PluginError(
            "a reader's type has no JSON Schema",
            found=str(error).splitlines()[-1],
            expected="a type with a schema in msgspec, such as list[Interest]",
        ) from error
    return _inlined(schema, schema.pop("$defs", {}), ())


def _inlined(
    schema: Mapping[str, Any], named: Mapping[str, Any], above: tuple[str, ...]
) -> dict[str, Any]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in above:
            raise PluginError(
                "a reader's type contains itself",
                found=" -> ".join([*above[above.index(name) :], name]),
                expected="a type without recursion, since servers accept no references",
            )
        above = (*above, name)
        plain = {key: one for key, one in named[name].items() if key not in FOR_PEOPLE}
        schema = {**plain, **schema}
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in UNSUPPORTED_KEYWORDS:
            continue
        if key == "properties":
            made[key] = {name: _inlined(one, named, above) for name, one in value.items()}
        elif key in LISTS_OF_SCHEMAS:
            made[key] = [_inlined(one, named, above) for one in value]
        elif key in SCHEMAS and isinstance(value, dict):
            made[key] = _inlined(value, named, above)
        else:
            made[key] = value
    if made.get("additionalProperties") is False:
        made["required"] = list(made.get("properties", ()))
    return made


DECIMAL = re.compile(r"\s*+[+-]?[0-9]{1,20}(?:\.[0-9]{1,20})?\s*+")


@dataclass(frozen=True, kw_only=True)
class KeyReader(Generic[T]):
    """Reads the value of one key in the last JSON object of a text, as `last_object` finds it.

        stars = KeyReader(key="stars", like=("rating",), convert=to_stars)
        stars('{"Rating": "4"}')

    `key`: the key that the prompt asks for, in upper or lower case, which wins.
    `like`: without it, the last key counts that contains one of these, in lower case.
    `convert`: the answer from the value, and whether it was a number in a string ("quoted"); or an
    Unreadable.
    `of_value`: the JSON schema of the value, if a server may enforce an object with this key alone.
    """

    key: str
    like: tuple[str, ...]
    convert: Callable[[Any], tuple[T, bool] | Unreadable]
    of_value: dict[str, Any] | None = None

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema of the whole answer."""
        if self.of_value is None:
            return None
        return {
            "type": "object",
            "properties": {self.key: self.of_value},
            "required": [self.key],
            "additionalProperties": False,
        }

    def __call__(self, text: str) -> Parsed[T] | Unreadable:
        """The answer in a reply, or why it is unreadable."""
        found = last_object(text)
        if isinstance(found, Unreadable):
            return found
        fitting = [key for key in found.value if any(one in key.lower() for one in self.like)]
        if not fitting:
            return Unreadable("schema", f"no key with {' or '.join(self.like)} in its name")
        asked = [key for key in fitting if key.lower() == self.key]
        converted = self.convert(found.value[(asked or fitting)[-1]])
        if isinstance(converted, Unreadable):
            return converted
        value, quoted = converted
        return Parsed(value, "quoted" if quoted else found.rung)


def number_in(value: Any) -> tuple[float, bool] | None:
    """The number in a JSON value, and whether it was in a string; None for other values.

    A string holds a decimal number and nothing else: not "4/5", "4.0 stars", "1e0" or "four"; true
    and false are not numbers.
    """
    if isinstance(value, str):
        return (float(value), True) if DECIMAL.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value), False


# A tag opens reasoning only at the start of a line, not within a sentence or a JSON string. The
# possessive quantifier keeps the time linear on lines of blanks.
TAG = re.compile(
    r"(?im)(?P<line>^[ \t]*+)?(?:<(?P<close>/?)(?:seed:)?think(?:ing)?>|\[(?P<close2>/?)THINK\])"
)


def split_reasoning(text: str) -> tuple[str, str | None]:
    """The answer without its reasoning, and the reasoning, or None.

        split_reasoning("<think>2 + 2</think>4")    # ("4", "2 + 2")

    Reasoning is the text in `<think>…</think>` (or `<thinking>`, `<seed:think>`, `[THINK]`). A
    closing tag without an opening one ends reasoning that began with the reply, since some chat
    templates write the opening tag into the prompt. After an opening tag that is never closed,
    everything is reasoning.
    """
    if "hink" not in text and "HINK" not in text:
        return text, None
    answer: list[str] = []
    thought: list[str] = []
    inside = False
    position = 0
    for tag in TAG.finditer(text):
        closes = bool(tag["close"] or tag["close2"])
        if closes:
            if not inside:
                thought.extend(answer)
                answer.clear()
            thought.append(text[position : tag.start()])
            inside = False
        elif inside or tag["line"] is None:
            continue
        else:
            answer.append(text[position : tag.start()])
            inside = True
        position = tag.end()
    if position == 0:
        return text, None
    (thought if inside else answer).append(text[position:])
    reasoning = "\n".join(stripped for part in thought if (stripped := part.strip()))
    return "".join(answer).strip(), reasoning or None
