"""Reads the candidate's answer."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from harness import JsonReader
from harness_interests.records import Interest


class Named(msgspec.Struct, frozen=True):
    """An interest as the prompt asks for it: its name, and the numbers of the items it cites."""

    interest: Annotated[str, msgspec.Meta(min_length=1)]
    items: tuple[int, ...]


# The possessive quantifiers keep the time linear on hostile text.
LINE = re.compile(r"(?:[-*•]|\d++[.)])?+\s*+([^:]++):\s*+(?:items?\s++)?+(\d++(?:\s*+,\s*+\d++)*+)")


def to_interests(answer: list[Named]) -> tuple[Interest, ...]:
    """The interests of an answer, without repeated numbers."""
    return tuple(
        Interest(name=one.interest.strip(), cited=tuple(dict.fromkeys(one.items))) for one in answer
    )


def from_lines(text: str) -> list[dict[str, Any]] | None:
    """The JSON value of lines such as `- Night trains: 2, 5`; None if no line has this form."""
    found = [match for line in text.splitlines() if (match := LINE.fullmatch(line.strip()))]
    return [
        {"interest": match[1], "items": [int(number) for number in match[2].split(",")]}
        for match in found
    ] or None


read_interests = JsonReader(type=list[Named], convert=to_interests, fallback=from_lines)
