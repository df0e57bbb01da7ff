"""Repairs JSON that is almost right, within a bound on the work."""

from __future__ import annotations

from typing import Any, SupportsIndex, overload

from harness.parsing.decode import NotJson, decode_at, keepable

MAX_CHARACTERS = 50_000
"""Longer texts are not repaired."""

READS_PER_CHARACTER = 16
"""How often json_repair may read a text, on average for each character.

It reads each character of a repairable answer once or twice, and hundreds of times where it keeps
revising its guesses: its time is then quadratic.
"""
FEWEST_READS = 10_000


class CountedText(str):
    """A text that raises NotJson once it has been read too often."""

    reads_left: int

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> str: ...
    def __getitem__(self, key: Any) -> str:
        self.reads_left -= 1
        if self.reads_left < 0:
            raise NotJson("too broken to be mended")
        return str.__getitem__(self, key)


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
    counted = CountedText(text)
    counted.reads_left = max(READS_PER_CHARACTER * len(text), FEWEST_READS)
    try:
        value = json_repair.loads(counted, skip_json_loads=True)
    except NotJson:
        raise
    except (ValueError, RecursionError, IndexError, TypeError, KeyError, AttributeError) as error:
        # json_repair fails on some texts in unforeseen ways; the text is then not JSON.
        raise NotJson(f"cannot be mended: {error}"[:200]) from None
    if not isinstance(value, dict if text[0] == "{" else list) or not value:
        raise NotJson("nothing is left of it when mended")
    found: dict[str, Any] | list[Any] = keepable(value)
    return found
