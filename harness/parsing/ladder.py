"""Readers of replies: JSON by a ladder whose rung is recorded, and plain text."""

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
from harness.parsing.repair import mend

T = TypeVar("T")

LADDER_VERSION = 1
"""Raised when some text would be read otherwise than before; enters every stage's key."""

MAX_CANDIDATES = 16
MAX_MENDED = 3
DETAIL_LENGTH = 200
BLANK = " \t\r\n\f\v\u00a0\u200b\ufeff"

Kind = Literal["object", "array", "any"]


@dataclass(frozen=True, kw_only=True, eq=False)
class JsonReader(Generic[T]):
    """Reads JSON of a type out of whatever a model wrote around it.

        read = JsonReader(type=list[Interest])
        read('[{"name": "baking", "cited": [1, 4]}]')    # Parsed([Interest("baking", ...)], ...)

    The rungs, and which candidate counts where one of them finds several that fit the type:
    "strict": the whole text is JSON.
    "fenced": the last fenced block that is JSON.
    "brackets": the outermost JSON in the text; of several objects the last, of several arrays the
    longest (citations such as [3] are arrays too), the later one of equals.
    "repaired": the same, where the text is broken JSON and can be mended.
    "regex": what `fallback` makes of the whole text, None when nothing.
    Text in which no bracket begins anything like JSON is never mended into a value.

    `type` is what msgspec makes of the JSON, strictly: "3" is no number, 3.0 is a whole one.
    `schema` is what a server may be asked to hold its answer to: made of `type`, or a JSON Schema
    in place of a type, which leaves the JSON as it is.
    `convert` makes another value of it, and raises ValueError for what it cannot accept; the next
    rung is then tried.
    `fallback` gives the JSON of a text that holds none, None where it finds nothing. Whatever else
    `convert` or `fallback` raise is a fault of the benchmark.
    `kind` is what a bracket must hold; unless given, what the schema says.
    """

    type: Any = None
    schema: dict[str, Any] | None = None
    convert: Callable[[Any], T] | None = None
    fallback: Callable[[str], Any] | None = None
    kind: Kind | None = None

    if TYPE_CHECKING:
        # A type alone says what is read; with `convert` that says it.
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
                "a reader has a type and a schema", expected="one of them: the type has a schema"
            )
        object.__setattr__(self, "schema", wire_schema(self.type))

    def __call__(self, text: str) -> Parsed[T] | Unreadable:
        """The value of a reply, or why it has none."""
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
        """Each rung's values, the best first; a NotJson tells why something gave none."""
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
        # Inside a fence the broken JSON ends where the block does.
        fenced = [span for block in blocks for span in self._ranked(block)]
        for span in [span for span in (*fenced, *spans) if span.error is not None][:MAX_MENDED]:
            try:
                yield "repaired", mend(span.text)
            except NotJson as error:
                yield "repaired", error

    def _ranked(self, text: str) -> list[Span]:
        """The text's stretches of JSON of the right kind, in the order in which they are tried."""
        kind = self._kind
        fitting = [span for span in reversed(outermost(text)) if kind in ("any", span.kind)]
        if kind != "object":
            fitting.sort(key=lambda span: len(span.text), reverse=True)
        return fitting

    def _read(self, value: Any) -> T:
        """The benchmark's value of JSON; ValueError where it does not fit."""
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
    """The last JSON object of a text, which may be the last entry of a list.

        last_object('First {"rating": 2}, no: {"rating": 4}')    # {"rating": 4}, "brackets"

    No object before the last one is tried instead: what a model takes back it did not answer. The
    rung: "strict" where it is all there is, "fenced" where it is all of the last fenced block,
    "brackets" between other text or in a list, "repaired" where it had to be mended.
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
    value = span.value if span.error is None else mend(span.text)
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
    """Reads plain text: the whole reply (rung "text"), or what a pattern finds (rung "regex").

    Of several matches the last counts, since answers follow their reasons; its first group is the
    value where it has groups. `convert` raises ValueError for what it cannot accept. A pattern
    must take linear time on hostile text; possessive quantifiers (`\\d++`) help.
    """

    pattern: str | re.Pattern[str] | None = None
    convert: Callable[[str], T] | None = None

    @property
    def schema(self) -> None:
        """None: there is no schema that text could meet."""
        return

    def __call__(self, text: str) -> Parsed[T] | Unreadable:
        """The text of a reply, or why it has none."""
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
    """JSON as a value of a type; ValueError, with the path, where it is none."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        # JSON Schema takes 3.0 for a whole number, and so do servers held to one; msgspec does not.
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
