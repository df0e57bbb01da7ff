"""What a user or an item is rated on the whole, and what comes most often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum
from typing import TypeVar

T = TypeVar("T")


def average(ratings: Sequence[float]) -> float:
    """The mean of at least one rating."""
    return fsum(ratings) / len(ratings)


def most_common(values: Iterable[T]) -> T:
    """The value that comes most often; of several that do, the one that came first."""
    return Counter(values).most_common(1)[0][0]


def average_of_others(ratings: Iterable[tuple[str, float]], user: str) -> float | None:
    """The mean of what others than the user gave, from pairs of user and rating; None for none."""
    others = [rating for rater, rating in ratings if rater != user]
    return average(others) if others else None
