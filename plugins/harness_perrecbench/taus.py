"""Rankings and their agreement, by our definition and by the published one.

Ranks are given in the order of the group, with 1 for the strongest preference. An order holds the
users' numbers from 1, the strongest preference first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

DIGITS = 9
"""Differences of ratings are rounded to these digits, so that 1 - 1.3 equals 2 - 2.3."""


def ptc(ranks: Sequence[float], truth: Sequence[float]) -> float:
    """Concordant minus discordant pairs of users, as a share of all pairs.

    A pair with a tie in either ranking is neither. Without ties this is Kendall's tau.
    """
    signs = list(_signs(ranks, truth))
    return sum(signs) / len(signs)


def tau_b(ranks: Sequence[float], truth: Sequence[float]) -> float | None:
    """Kendall's tau-b, which divides by the pairs that are not tied; None if all are tied."""
    untied = _untied(ranks) * _untied(truth)
    if not untied:
        return None
    return sum(_signs(ranks, truth)) / math.sqrt(untied)


def ptc_published(order: Sequence[int], true_order: Sequence[int]) -> float | None:
    """Kendall's tau-b of two lists of users' numbers, position by position; None if undefined.

    For two users it equals the tau of the rankings. For more users it is a different quantity: the
    numbers at one position of two orders belong to different users.
    """
    return tau_b(order, true_order)


def ranks_of(scores: Sequence[float]) -> tuple[int, ...]:
    """The rank of each user, the highest score first; equal scores share the better rank."""
    return tuple(1 + sum(other > score for other in scores) for score in scores)


def ranks_of_order(order: Sequence[int]) -> tuple[int, ...]:
    """The rank of each user; users that an order leaves out come last."""
    named = list(dict.fromkeys(order))
    return tuple(
        1 + (named.index(user) if user in named else len(named))
        for user in range(1, len(order) + 1)
    )


def published_order(scores: Sequence[float]) -> tuple[int, ...]:
    """The users, the highest score first; of equal scores the later user first, as published."""
    users = range(len(scores), 0, -1)
    return tuple(sorted(users, key=lambda user: -scores[user - 1]))


def relative(ratings: Sequence[float], averages: Sequence[float]) -> tuple[float, ...]:
    """The difference of each user's rating to the user's average, rounded to DIGITS."""
    return tuple(
        round(rating - average, DIGITS) for rating, average in zip(ratings, averages, strict=True)
    )


def _signs(ranks: Sequence[float], truth: Sequence[float]) -> Iterator[int]:
    """For each pair of users: 1 if both rankings agree, -1 if they differ, 0 for a tie."""
    for (one, true_one), (other, true_other) in combinations(zip(ranks, truth, strict=True), 2):
        yield _sign(one, other) * _sign(true_one, true_other)


def _sign(one: float, other: float) -> int:
    return (one > other) - (one < other)


def _untied(ranks: Sequence[float]) -> int:
    return sum(one != other for one, other in combinations(ranks, 2))
