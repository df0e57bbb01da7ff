"""Chance that falls the same under every version of Python: made of `Random.random()` alone.

`Random.choice`, `Random.sample` and `Random.shuffle` do not promise that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import TypeVar

T = TypeVar("T")


def picked(rng: Random, values: Sequence[T]) -> T:
    """One of the values."""
    return values[int(rng.random() * len(values))]


def drawn(rng: Random, values: Sequence[T], count: int) -> list[T]:
    """At most `count` of the values in random order, each at most once."""
    return list(islice(drawing(rng, values), count))


def drawing(rng: Random, values: Sequence[T]) -> Iterator[T]:
    """All of the values in random order, each drawn when it is wanted."""
    left = list(values)
    for place in range(len(left)):
        other = place + int(rng.random() * (len(left) - place))
        left[place], left[other] = left[other], left[place]
        yield left[place]


def shuffled(rng: Random, values: Sequence[T]) -> tuple[T, ...]:
    """All of the values in random order."""
    return tuple(drawn(rng, values, len(values)))
