"""Finds JSON in a text: in fenced blocks and between brackets. Takes linear time on any text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from harness.parsing.decode import NotJson, decode_at

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
