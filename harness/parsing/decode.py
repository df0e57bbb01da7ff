"""Decodes JSON text to values that every part of the harness can store.

The rules beyond RFC 8259: NaN, the infinities and numbers too large for a finite float or a 64-bit
integer become the text that they are written as, which no reader takes for a number, since no file
could hold them. A key may occur twice in one object with equal values; with different values the
text contradicts itself, which is an error. Nesting deeper than 64 is an error. Half a surrogate
pair becomes U+FFFD, since no file could hold it. A raw control character in a string is an error
unless `lenient`.
"""

from __future__ import annotations

import json
from functools import partial
from math import isfinite
from typing import Any

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
