"""Random choices that are identical across Python versions.

They use `Random.random()` only: `choice`, `sample` and `shuffle` may change between versions.
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
    """All values in random order, drawn lazily."""
    left = list(values)
    for place in range(len(left)):
        other = place + int(rng.random() * (len(left) - place))
        left[place], left[other] = left[other], left[place]
        yield left[place]


def shuffled(rng: Random, values: Sequence[T]) -> tuple[T, ...]:
    """All values in random order."""
    return tuple(drawn(rng, values, len(values)))
