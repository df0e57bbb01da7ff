"""The ready messages that every contender sends, one JSON line each."""

from __future__ import annotations

import json
from pathlib import Path

LENGTH = 2000
WORDS = ("gardens", "trains", "jazz", "and", "the", "history", "of", "maps", "read", "again")


def text(number: int, length: int = LENGTH) -> str:
    """The text of one message; no two are the same."""
    words = [WORDS[(number * 7 + place * 5) % len(WORDS)] for place in range(length // 4)]
    return f"{number}: {' '.join(words)}"[:length]


def write(path: Path, count: int, length: int = LENGTH) -> Path:
    """Writes so many messages, ten for each user."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            row = {
                "id": f"m{number}",
                "user": f"u{number // 10}",
                "text": text(number, length),
                "target": "ok",
            }
            file.write(json.dumps(row) + "\n")
    return path
