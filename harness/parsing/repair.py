"""Mending of JSON that is almost right, with a bound on the work it may cost."""

from __future__ import annotations

from typing import Any, SupportsIndex, overload

from harness.parsing.decode import NotJson, decode_at, keepable

MAX_CHARACTERS = 50_000
"""Longer texts are not mended."""

LOOKS_PER_CHARACTER = 16
"""How often json_repair may look at a text, on average for each character.

It looks once or twice at each character of an answer that people would call mendable, and hundreds
of times where its guesses run over each other: its time is then quadratic.
"""
LOOKS_AT_LEAST = 10_000


class Watched(str):
    """A text that raises NotJson once it has been looked at too often."""

    looks: int

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> str: ...
    def __getitem__(self, key: Any) -> str:
        self.looks -= 1
        if self.looks < 0:
            raise NotJson("too broken to be mended")
        return str.__getitem__(self, key)


def mend(text: str) -> dict[str, Any] | list[Any]:
    """The object or array that a broken text was meant to be, or NotJson.

    The text begins with a bracket. Raw control characters in strings are kept as they are; all
    else is for json_repair to guess. An empty result is no answer: nothing was left of the text.
    What a rule of `decode` refuses stays refused where it is met before the first error of syntax;
    of a key that stands twice in an object that was mended, the last value stands.
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
    watched = Watched(text)
    watched.looks = max(LOOKS_PER_CHARACTER * len(text), LOOKS_AT_LEAST)
    try:
        value = json_repair.loads(watched, skip_json_loads=True)
    except NotJson:
        raise
    except (ValueError, RecursionError, IndexError, TypeError, KeyError, AttributeError) as error:
        # Its guesses meet texts that nobody foresaw; whatever it trips over, the text is not JSON.
        raise NotJson(f"cannot be mended: {error}"[:200]) from None
    if not isinstance(value, dict if text[0] == "{" else list) or not value:
        raise NotJson("nothing is left of it when mended")
    found: dict[str, Any] | list[Any] = keepable(value)
    return found
