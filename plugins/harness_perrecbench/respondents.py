"""Answers without a model: the floor that a model must beat.

The rules compare words. They expect a user to rate a thing as far from the user's average as the
shown things that share words with its title, and a little higher for each word of the title in the
user's profile.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from math import fsum
from random import Random
from typing import Any

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


def of(prompt: str) -> Callable[[Variables, Random], str]:
    """The respondent of a prompt."""
    return {"profile": profile, "rate": rate, "compare": compare, "rank": rank}[
        prompt.partition("_")[0]
    ]


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
