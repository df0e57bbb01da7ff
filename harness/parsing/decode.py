"""Finds JSON in a text, decodes it to values that every part of the harness can store, and repairs
what is almost right. Finding takes linear time on any text, and the work of a repair is bounded.

The rules beyond RFC 8259: NaN, the infinities and numbers too large for a finite float or a 64-bit
integer become the text that they are written as, which no reader takes for a number, since no file
could hold them. A key may occur twice in one object with equal values; with different values the
text contradicts itself, which is an error. Nesting deeper than 64 is an error. Half a surrogate
pair becomes U+FFFD, since no file could hold it. A raw control character in a string is an error
unless `lenient`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, SupportsIndex

MAX_DEPTH = 64
LARGEST = 2**63


class NotJson(ValueError):
    """The text is no JSON; `final` where a rule of this module says so, so that no repair helps."""

    def __init__(self, reason: str, *, final: bool = True) -> None:
        super().__init__(reason)
        self.final = final


def decode(text: str) -> Any:
    """The value of a text that is JSON as a whole; NotJson for any other text."""
    value, end = decode_at(text, 0)
    if end != len(text):
        raise NotJson("text follows the JSON value", final=False)
    return value


def decode_at(text: str, start: int, *, lenient: bool = False) -> tuple[Any, int]:
    """The JSON value that begins at `start`, and its end; NotJson where none begins there."""
    try:
        value, end = (_LENIENT if lenient else _STRICT).raw_decode(text, start)
    except NotJson:
        raise
    except RecursionError:
        raise NotJson("nested too deep") from None
    except ValueError as error:
        raise NotJson(str(error), final=False) from None
    if (
        text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH
        or text.find("\\u", start, end) >= 0
    ):
        value = keepable(value)
    return value, end


def keepable(value: Any, depth: int = 0) -> Any:
    """The value without halves of characters and unstorable numbers; NotJson where too deep."""
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, float):
        return _float(repr(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return _int(str(value))
    if not isinstance(value, list | dict):
        return value
    if depth == MAX_DEPTH:
        raise NotJson(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, list):
        return [keepable(one, depth + 1) for one in value]
    return {whole_characters(key): keepable(one, depth + 1) for key, one in value.items()}


def whole_characters(text: str) -> str:
    """The text with surrogate pairs joined and each single surrogate replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        for key, value in pairs:
            if made[key] != value:
                raise NotJson(f"the key {key[:80]!r} has two values")
    return made


def _float(text: str) -> float | str:
    number = float(text)
    return number if isfinite(number) else text


def _int(text: str) -> int | str:
    # int() rejects thousands of digits with an error that looks like a syntax error.
    number = int(text[:21])
    return number if -LARGEST <= number < LARGEST else text


_decoder = partial(
    json.JSONDecoder,
    object_pairs_hook=_object,
    parse_float=_float,
    parse_int=_int,
    parse_constant=str,
)
_STRICT, _LENIENT = _decoder(), _decoder(strict=False)


MAX_VALUES = 1000
LONGEST_LANGUAGE = 16

FENCE = "```"
OPENING = re.compile(r"`{3,}+[\w+-]*+[ \t]*+(?P<rest>.*)")

# A bracket begins JSON if a key with its colon or an element follows: `{name}`, `{{` and
# `[not sure]` begin none. Each alternative ends at the next quote or after few characters, so that
# the time stays linear.
BEGINNING = re.compile(
    r"""
    \{(?=\s*+(?:
        \} | "(?:[^"\\]++|\\.)*+"\s*+: | ['“‘][^\n}]{1,80}?['”’]\s*+: | [\w$-]{1,64}+\s*+:
    ))
    | \[(?=\s*+(?:
        [\]\[{] | -?\d | (?:true|false|null|True|False|None)\b
        | "(?:[^"\\]++|\\.)*+"\s*+[],"'] | ['“‘][^\n\]]{1,80}?['”’]\s*+[],"'“‘]
    ))
    """,
    re.VERBOSE | re.DOTALL,
)
STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)


@dataclass(frozen=True)
class Span:
    """A part of a text that begins and ends like JSON: its `value`, or the `error` of decoding."""

    text: str
    value: Any = None
    error: NotJson | None = None

    @property
    def kind(self) -> str:
        """What its bracket opens: "object" or "array"."""
        return "object" if self.text[0] == "{" else "array"


def fenced_blocks(text: str) -> list[str]:
    """The text inside each fenced block, in order; the last block may lack its closing fence.

    A fence with a language opens a block even inside another block, which is dropped: the answer is
    the inner one.
    """
    if FENCE not in text:
        return []
    blocks = []
    block: list[str] | None = None
    for line in text.split("\n"):
        if FENCE not in line:
            if block is not None:
                block.append(line)
            continue
        before, inside, closed = _fence(line.strip(), is_open=block is not None)
        if block is not None and inside is None:
            blocks.append("\n".join([*block, before]))
            block = None
        elif inside is None:
            continue
        elif closed:
            blocks.append(inside)
            block = None
        else:
            block = [inside]
    if block is not None:
        blocks.append("\n".join(block))
    return [stripped for one in blocks if (stripped := one.strip())]


def _fence(line: str, *, is_open: bool) -> tuple[str, str | None, bool]:
    """The text before a line's fence, the text after an opening fence (None for a closing one), and
    whether the block ends on the same line."""
    if line.startswith(FENCE):
        opening = OPENING.fullmatch(line)
        rest = opening["rest"] if opening else ""
        bare = not line.strip("`")
        if bare and is_open:
            return "", None, False
        if rest.endswith(FENCE):
            return "", rest.rstrip("`"), True
        return "", rest, False
    if is_open:
        return line.rstrip("`"), None, False
    before, _, behind = line.rpartition(FENCE)
    opens = not behind or (behind.isalnum() and len(behind) <= LONGEST_LANGUAGE)
    return before, "" if opens else None, False


def outermost(text: str) -> list[Span]:
    """Every outermost part of a text that begins like JSON, in order, whether it decodes or not.

    No JSON is searched for inside a part that does not decode: a fragment of a broken answer is no
    answer. Empty where there are more than MAX_VALUES, among which no answer can be chosen.
    """
    spans: list[Span] = []
    position = 0
    while (found := BEGINNING.search(text, position)) is not None:
        if len(spans) == MAX_VALUES:
            return []
        start = found.start()
        try:
            value, position = decode_at(text, start)
            spans.append(Span(text[start:position], value))
        except NotJson as error:
            position = _closing(text, start)
            spans.append(Span(text[start:position], error=error))
    return spans


def _closing(text: str, start: int) -> int:
    """The end of the bracket at `start`; the end of the text where it is never closed."""
    depth = 0
    for token in STRING_OR_BRACKET.finditer(text, start):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
                if depth == 0:
                    return token.end()
            case '"':
                # The string never ends: everything after this quote is inside it.
                return len(text)
    return len(text)


MAX_CHARACTERS = 50_000
"""Longer texts are not repaired."""

READS_PER_CHARACTER = 20
"""How often json_repair may read a text, on average for each character.

It reads each character of a repairable answer a few times, and hundreds of times where it keeps
revising its guesses: its time is then quadratic.
"""
FEWEST_READS = 10_000
COPIED_PER_READ = 256
"""Copying this many characters costs what reading one does."""


class Reads:
    """How many characters of a text may still be read; NotJson beyond that."""

    def __init__(self, left: int) -> None:
        self.left = left

    def count(self, reads: int) -> None:
        """Count some reads."""
        self.left -= reads
        if self.left < 0:
            raise NotJson("too broken to be mended")


class CountedText(str):
    """A text whose reads are counted, and those of the longer or shorter texts made of it."""

    __slots__ = ("reads",)
    reads: Reads

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        found = str.__getitem__(self, key)
        if not isinstance(key, slice) or (key.start is not None and key.stop is not None):
            # json_repair reads each character of a part between two places.
            self.reads.count(len(found))
            return found
        self.reads.count(1 + len(found) // COPIED_PER_READ)
        return counted(found, self.reads)

    def __add__(self, other: str) -> str:
        return counted(str.__add__(self, other), self.reads)


def counted(text: str, reads: Reads) -> CountedText:
    """The text, whose reads count there."""
    made = CountedText(text)
    made.reads = reads
    return made


def repair_json(text: str) -> dict[str, Any] | list[Any]:
    """The object or array that a broken text was meant to be; NotJson where it cannot be repaired.

    The text begins with a bracket. Raw control characters in strings are kept; json_repair guesses
    everything else. An empty result is an error, since nothing of the text is left in it. A text
    that breaks a rule of `decode` before its first syntax error is not repaired. Where a key occurs
    twice in a repaired object, the last value counts.
    """
    try:
        value, end = decode_at(text, 0, lenient=True)
    except NotJson as error:
        if error.final:
            raise
        return _guess(text)
    if end != len(text):
        return _guess(text)
    found: dict[str, Any] | list[Any] = value
    return found


def _guess(text: str) -> dict[str, Any] | list[Any]:
    import json_repair

    if len(text) > MAX_CHARACTERS:
        raise NotJson(f"longer than {MAX_CHARACTERS} characters and no JSON")
    reads = Reads(max(READS_PER_CHARACTER * len(text), FEWEST_READS))
    try:
        value = json_repair.loads(counted(text, reads), skip_json_loads=True)
    except NotJson:
        raise
    except (ValueError, RecursionError, IndexError, TypeError, KeyError, AttributeError) as error:
        # json_repair fails on some texts in unforeseen ways; the text is then not JSON.
        raise NotJson(f"cannot be mended: {error}"[:200]) from None
    if not isinstance(value, dict if text[0] == "{" else list) or not value:
        raise NotJson("nothing is left of it when mended")
    found: dict[str, Any] | list[Any] = keepable(value)
    return found
