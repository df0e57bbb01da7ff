"""Readers of replies: JSON, by a ladder whose rung is recorded, and plain text."""

from __future__ import annotations

import builtins
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

import msgspec

from harness.base.errors import PluginError
from harness.contracts.outcomes import Parsed, Unreadable
from harness.parsing.decode import LARGEST, NotJson, decode, whole_characters
from harness.parsing.extract import Span, fenced_blocks, outermost
from harness.parsing.json_schema import SchemaCheck, wire_schema
from harness.parsing.repair import repair_json

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
