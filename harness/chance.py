"""Chance that falls the same under every version of Python: made of `Random.random()` alone.

`Random.choice`, `Random.sample` and `Random.shuffle` do not promise that.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def picked(rng: Random, values: Sequence[T]) -> T:
    """One of the values."""
    return values[int(rng.random() * len(values))]


def drawn(rng: Random, values: Sequence[T], count: int) -> list[T]:
    """At most `count` of the values in random order, each at most once."""
    left = list(values)
    most = min(count, len(left))
    for place in range(most):
        other = place + int(rng.random() * (len(left) - place))
        left[place], left[other] = left[other], left[place]
    return left[:most]


def shuffled(rng: Random, values: Sequence[T]) -> tuple[T, ...]:
    """All of the values in random order."""
    return tuple(drawn(rng, values, len(values)))
