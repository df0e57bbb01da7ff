"""Readers of one key in the last JSON object of a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from harness.contracts.outcomes import Parsed, Unreadable
from harness.parsing.ladder import last_object

T = TypeVar("T")

DECIMAL = re.compile(r"\s*+[+-]?[0-9]{1,20}(?:\.[0-9]{1,20})?\s*+")


@dataclass(frozen=True, kw_only=True)
class KeyReader(Generic[T]):
    """Reads the value of one key in the last JSON object of a text, as `last_object` finds it.

        stars = KeyReader(key="stars", like=("rating",), convert=to_stars)
        stars('{"Rating": "4"}')

    `key`: the key that the prompt asks for, in upper or lower case, which wins.
    `like`: without it, the last key counts that contains one of these, in lower case.
    `convert`: the answer from the value, and whether it was a number in a string ("quoted"); or an
    Unreadable.
    `of_value`: the JSON schema of the value, if a server may enforce an object with this key alone.
    """

    key: str
    like: tuple[str, ...]
    convert: Callable[[Any], tuple[T, bool] | Unreadable]
    of_value: dict[str, Any] | None = None

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema of the whole answer."""
        if self.of_value is None:
            return None
        return {
            "type": "object",
            "properties": {self.key: self.of_value},
            "required": [self.key],
            "additionalProperties": False,
        }

    def __call__(self, text: str) -> Parsed[T] | Unreadable:
        """The answer in a reply, or why it is unreadable."""
        found = last_object(text)
        if isinstance(found, Unreadable):
            return found
        fitting = [key for key in found.value if any(one in key.lower() for one in self.like)]
        if not fitting:
            return Unreadable("schema", f"no key with {' or '.join(self.like)} in its name")
        asked = [key for key in fitting if key.lower() == self.key]
        converted = self.convert(found.value[(asked or fitting)[-1]])
        if isinstance(converted, Unreadable):
            return converted
        value, quoted = converted
        return Parsed(value, "quoted" if quoted else found.rung)


def number_in(value: Any) -> tuple[float, bool] | None:
    """The number in a JSON value, and whether it was in a string; None for other values.

    A string holds a decimal number and nothing else: not "4/5", "4.0 stars", "1e0" or "four"; true
    and false are not numbers.
    """
    if isinstance(value, str):
        return (float(value), True) if DECIMAL.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value), False
