"""Repairs JSON that is almost right, within a bound on the work."""

from __future__ import annotations

from typing import Any, SupportsIndex

from harness.parsing.decode import NotJson, decode_at, keepable

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
