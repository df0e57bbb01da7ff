"""Answers without a model, which a model must beat: rankings by averages, and respondents.

Respondents answer the prompts by rules that compare words. They expect a user to rate a thing as
far from the user's average as the shown things that share words with its title, and a little higher
for each word of the title in the user's profile.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import fsum
from random import Random
from typing import Any, TypeAlias

import msgspec

from harness.base.hashing import stable_int
from harness_perrecbench.ranking import ranks_of, relative
from harness_perrecbench.records import Member

Guess: TypeAlias = Callable[[Member, float | None], float | None]
"""A member's predicted rating, from the member and the mean rating of the whole data."""


def both_averages(member: Member, overall: float | None) -> float | None:
    """The user's average, corrected by the difference of the item's average to all ratings."""
    if member.item_average is None or overall is None:
        return None
    return member.average + member.item_average - overall


def bm25_ratings(member: Member, overall: float | None) -> float | None:
    """The mean of the retrieved ratings by score; the user's average if no score is above 0."""
    if len(member.weights) != len(member.shown):
        return None
    weights = [max(weight, 0.0) for weight in member.weights]
    if not any(weights):
        return member.average
    rated = zip(weights, member.shown, strict=True)
    return fsum(weight * behaviour.rating for weight, behaviour in rated) / fsum(weights)


GUESSES: Mapping[str, Guess] = {
    "user_average": lambda member, overall: member.average,
    "item_average": lambda member, overall: member.item_average,
    "both_averages": both_averages,
    "bm25_ratings": bm25_ratings,
}
"""The predictions of ratings, by name.

The user's average gives all users the same relative rating, and the item's ranks users by lower
average first.
"""

BASELINES = {
    "random": "chance",
    "user_average": "each user's average rating",
    "item_average": "the item's average rating",
    "both_averages": "each user's average plus the item's difference from all ratings",
    "bm25_ratings": "each user's ratings of similar things, weighted by BM25",
    "higher_average_first": "the users' average ratings, the highest first",
    "lower_average_first": "the users' average ratings, the lowest first",
}
"""All rankings in the order of tables, and what each ranks by."""


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
    # Averages of the others' ratings would reveal a user's own: a high rating raises the averages
    # of all others.
    known = [member.item_average for member in members if member.item_average is not None]
    shared = fsum(known) / len(known) if len(known) == len(members) else None
    alike = [msgspec.structs.replace(member, item_average=shared) for member in members]
    predicted = guesses(alike, overall)
    ranks = {
        "random": ranks_of([stable_int("random", item, member.id) for member in members]),
        **{name: ranks_of(relative(ratings, averages)) for name, ratings in predicted.items()},
        "higher_average_first": ranks_of(averages),
        "lower_average_first": ranks_of([-average for average in averages]),
    }
    return {name: ranks[name] for name in BASELINES if name in ranks}


Variables = Mapping[str, Any]

LOWEST, MIDDLE, HIGHEST = 1.0, 3.0, 5.0
STARS_PER_PROFILE_WORD = 0.25
"""Stars for each word that profile and title share."""

DOUBT = 1.0
"""The weight of an average rating, in shared words: it dominates if few words are shared."""

NAMED = 12
"""The largest number of words in a profile."""

WORD = re.compile(r"[^\W\d_]{3,}+")
EMPTY = frozenset({"and", "for", "from", "its", "our", "that", "the", "whatever", "with", "your"})


def rate(variables: Variables, rng: Random) -> str:
    """The rating expected of one user."""
    member = variables["member"]
    rating = usual(member) + liking(member, variables["query"])
    return json.dumps({"predicted_rating": round(min(HIGHEST, max(LOWEST, rating)), 2)})


def compare(variables: Variables, rng: Random) -> str:
    """The user with the higher expected liking, in brackets."""
    return "[User A]" if _order(variables, rng)[0] == 1 else "[User B]"


def rank(variables: Variables, rng: Random) -> str:
    """The users in the order of their expected liking."""
    return json.dumps({"predicted_ranking": _order(variables, rng)})


def profile(variables: Variables, rng: Random) -> str:
    """The words of titles that the user rated above average, the best rated first."""
    history = variables["history"]
    average = fsum(one["rating"] for one in history) / len(history)
    above: dict[str, float] = defaultdict(float)
    for one in history:
        for word in sorted(words(one["title"])):
            above[word] += one["rating"] - average
    chance = {word: rng.random() for word in above}
    ranked = sorted(above, key=lambda word: (-above[word], chance[word]))
    liked = [word for word in ranked if above[word] > 0][:NAMED]
    return f"Prefers what says {', '.join(liked)}." if liked else "Prefers nothing in particular."


def usual(member: Variables) -> float:
    """The user's average, or the middle of the scale if the prompt leaves it out."""
    return MIDDLE if member["average"] is None else float(member["average"])


def liking(member: Variables, query: Variables) -> float:
    """The stars above a user's average in the expected rating of a thing."""
    wanted = words(query["title"])
    shared = [len(wanted & words(one["title"])) for one in member["shown"]]
    above = [one["rating"] - usual(member) for one in member["shown"]]
    weighed = fsum(weight * stars for weight, stars in zip(shared, above, strict=True))
    in_profile = len(wanted & words(member["profile"] or ""))
    return weighed / (sum(shared) + DOUBT) + STARS_PER_PROFILE_WORD * in_profile


def words(text: str) -> frozenset[str]:
    """The content words of a text."""
    return frozenset(WORD.findall(text.casefold())) - EMPTY


def _order(variables: Variables, rng: Random) -> list[int]:
    """The users' numbers, strongest liking first; equal likings in random order."""
    likings = [(liking(one, variables["query"]), rng.random()) for one in variables["members"]]
    numbers = range(1, len(likings) + 1)
    return sorted(numbers, key=lambda number: likings[number - 1], reverse=True)
