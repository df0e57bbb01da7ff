"""Readers of replies: JSON by a ladder whose rung is recorded, and plain text."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from harness.outcomes import Parsed, Unreadable
from harness.parsing.decode import NotJson, decode, whole_characters
from harness.parsing.extract import Span, fenced_blocks, outermost
from harness.parsing.repair import mend
from harness.parsing.schema import SchemaCheck

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
    """Reads JSON that meets a schema out of whatever a model wrote around it.

    The rungs, and which candidate counts where one of them finds several that meet the schema:
    "strict": the whole text is JSON.
    "fenced": the last fenced block that is JSON.
    "brackets": the outermost JSON in the text; of several objects the last, of several arrays the
    longest (citations such as [3] are arrays too), the later one of equals.
    "repaired": the same, where the text is broken JSON and can be mended.
    "regex": what `fallback` makes of the whole text, None when nothing.
    Text in which no bracket begins anything like JSON is never mended into a value.

    `kind` is what a bracket must hold; unless given, the schema's own type. `convert` makes the
    benchmark's value of the JSON, and raises ValueError for what it cannot accept; the next rung is
    then tried. Whatever else `convert` or `fallback` raise is a fault of the benchmark.
    """

    schema: dict[str, Any] | None = None
    convert: Callable[[Any], T] | None = None
    fallback: Callable[[str], Any] | None = None
    kind: Kind | None = None

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
            problem = self._problem(value)
            if problem is None:
                try:
                    return Parsed(self.convert(value) if self.convert else cast(T, value), rung)
                except ValueError as error:
                    problem = f"the benchmark refused it: {error}"
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

    def _problem(self, value: Any) -> str | None:
        kind = self._kind
        if kind != "any" and not isinstance(value, dict if kind == "object" else list):
            return f"{type(value).__name__} where the {kind} of the answer should be"
        return self._check.problem(value) if self._check is not None else None

    @functools.cached_property
    def _kind(self) -> str:
        if self.kind is not None:
            return self.kind
        wanted = self.schema.get("type") if self.schema is not None else None
        return wanted if wanted in ("object", "array") else "any"

    @functools.cached_property
    def _check(self) -> SchemaCheck | None:
        return SchemaCheck(self.schema) if self.schema is not None else None


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


def _short(detail: str) -> str:
    flat = " ".join(detail[: 4 * DETAIL_LENGTH].split())
    return flat if len(flat) <= DETAIL_LENGTH else f"{flat[: DETAIL_LENGTH - 1]}…"
