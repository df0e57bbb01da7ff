"""Values by what they have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


def grouped(pairs: Iterable[tuple[KeyT, ValueT]]) -> dict[KeyT, list[ValueT]]:
    """The values of each key, both in the order in which they come."""
    found: dict[KeyT, list[ValueT]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
