"""How the candidate's answer is read."""

from __future__ import annotations

import re
from typing import Any

from harness import JsonReader
from harness_interests.records import Interest

SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "interest": {"type": "string", "minLength": 1},
            "items": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["interest", "items"],
    },
}

# The possessive quantifiers keep the time linear on whatever a model sends.
LINE = re.compile(r"(?:[-*•]|\d++[.)])?+\s*+([^:]++):\s*+(?:items?\s++)?+(\d++(?:\s*+,\s*+\d++)*+)")


def to_interests(answer: list[dict[str, Any]]) -> tuple[Interest, ...]:
    """The interests of an answer that meets the schema; a number cited twice counts once."""
    return tuple(
        Interest(name=one["interest"].strip(), cited=tuple(dict.fromkeys(one["items"])))
        for one in answer
    )


def from_lines(text: str) -> list[dict[str, Any]] | None:
    """The same answer from lines such as `- Night trains: 2, 5`, for models that write no JSON."""
    found = [match for line in text.splitlines() if (match := LINE.fullmatch(line.strip()))]
    return [
        {"interest": match[1], "items": [int(number) for number in match[2].split(",")]}
        for match in found
    ] or None


read_interests = JsonReader(schema=SCHEMA, convert=to_interests, fallback=from_lines)
