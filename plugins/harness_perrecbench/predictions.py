"""Baselines without a model: ratings and rankings by averages.

Baselines whose data are missing are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import TypeAlias

import msgspec

from harness.base.hashing import stable_int
from harness_perrecbench.ranking import ranks_of, relative
from harness_perrecbench.records import Member

Guess: TypeAlias = Callable[[Member, float | None], float | None]
"""A member's predicted rating, from the member and the mean rating of the whole data."""


def user_average(member: Member, overall: float | None) -> float | None:
    """The user's average, which gives all users the same relative rating."""
    return member.average


def item_average(member: Member, overall: float | None) -> float | None:
    """The others' average rating of the item, which ranks users by lower average first."""
    return member.item_average


def both_averages(member: Member, overall: float | None) -> float | None:
    """The user's average, corrected by the difference of the item's average to all ratings."""
    if member.item_average is None or overall is None:
        return None
    return member.average + member.item_average - overall


def bm25_ratings(member: Member, overall: float | None) -> float | None:
    """The mean of the retrieved ratings, weighted by score; the user's average if all scores are 0.

    A score below 0 counts as 0. Recorded data has no scores.
    """
    if len(member.weights) != len(member.shown):
        return None
    weights = [max(weight, 0.0) for weight in member.weights]
    if not any(weights):
        return member.average
    rated = zip(weights, member.shown, strict=True)
    return fsum(weight * behaviour.rating for weight, behaviour in rated) / fsum(weights)


GUESSES: Mapping[str, Guess] = {
    "user_average": user_average,
    "item_average": item_average,
    "both_averages": both_averages,
    "bm25_ratings": bm25_ratings,
}
"""The predictions of ratings, by name."""

BASELINES = ("random", *GUESSES, "higher_average_first", "lower_average_first")
"""All rankings, in the order of the tables."""


def guesses(members: Sequence[Member], overall: float | None) -> dict[str, tuple[float, ...]]:
    """The ratings of all members by each prediction that is defined for all of them."""
    made = {name: [guess(member, overall) for member in members] for name, guess in GUESSES.items()}
    return {
        name: tuple(rating for rating in ratings if rating is not None)
        for name, ratings in made.items()
        if None not in ratings
    }


def baseline_ranks(
    item: str, members: Sequence[Member], overall: float | None
) -> dict[str, tuple[int, ...]]:
    """The rank of each member by each baseline; the random one is drawn from item and member."""
    averages = [member.average for member in members]
    predicted = guesses(_of_one_item(members), overall)
    ranks = {
        "random": ranks_of([stable_int("random", item, member.id) for member in members]),
        **{name: ranks_of(relative(ratings, averages)) for name, ratings in predicted.items()},
        "higher_average_first": ranks_of(averages),
        "lower_average_first": ranks_of([-average for average in averages]),
    }
    return {name: ranks[name] for name in BASELINES if name in ranks}


def _of_one_item(members: Sequence[Member]) -> list[Member]:
    """The members with the same average of the item.

    Averages of the others' ratings would reveal a user's own: a high rating raises the averages
    of all others.
    """
    known = [member.item_average for member in members if member.item_average is not None]
    shared = fsum(known) / len(known) if len(known) == len(members) else None
    return [msgspec.structs.replace(member, item_average=shared) for member in members]
