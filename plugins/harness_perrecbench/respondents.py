"""Answers without any model: the floor that a model has to beat.

They know words and no meaning. A user is taken to like a thing as much as the things shown of them
that share words with its title, each by how far its rating lies from the user's average, and a
little more for each word that the user's profile shares with it.
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
A_WORD_OF_THE_PROFILE = 0.25
"""Stars for each word that profile and title share."""

DOUBT = 1.0
"""How much no liking at all weighs, in shared words: few of them say little."""

NAMED = 12
"""How many words a profile names at most."""

WORD = re.compile(r"[^\W\d_]{3,}+")
EMPTY = frozenset({"and", "for", "from", "its", "our", "that", "the", "whatever", "with", "your"})


def rate(variables: Variables, rng: Random) -> str:
    """The rating expected of one user."""
    member = variables["member"]
    rating = usual(member) + liking(member, variables["query"])
    return json.dumps({"predicted_rating": round(min(HIGHEST, max(LOWEST, rating)), 2)})


def compare(variables: Variables, rng: Random) -> str:
    """The one of two users who is expected to like the thing more, in brackets."""
    return "[User A]" if _order(variables, rng)[0] == 1 else "[User B]"


def rank(variables: Variables, rng: Random) -> str:
    """The users in the order of how much they are expected to like the thing."""
    return json.dumps({"predicted_ranking": _order(variables, rng)})


def profile(variables: Variables, rng: Random) -> str:
    """The words of titles that were rated above the user's average, the furthest above first."""
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
    """What answers a prompt."""
    return {"profile": profile, "rate": rate, "compare": compare, "rank": rank}[
        prompt.partition("_")[0]
    ]


def usual(member: Variables) -> float:
    """What the user rates on average, or the middle of the scale where the prompt does not say."""
    return MIDDLE if member["average"] is None else float(member["average"])


def liking(member: Variables, query: Variables) -> float:
    """By how many stars above their average a user is expected to rate a thing."""
    wanted = words(query["title"])
    shared = [len(wanted & words(one["title"])) for one in member["shown"]]
    above = [one["rating"] - usual(member) for one in member["shown"]]
    weighed = fsum(weight * stars for weight, stars in zip(shared, above, strict=True))
    told = len(wanted & words(member["profile"] or ""))
    return weighed / (sum(shared) + DOUBT) + A_WORD_OF_THE_PROFILE * told


def words(text: str) -> frozenset[str]:
    """The words of a text that may mean something."""
    return frozenset(WORD.findall(text.casefold())) - EMPTY


def _order(variables: Variables, rng: Random) -> list[int]:
    """The users' numbers, strongest liking first; equal ones in random order."""
    likings = [(liking(one, variables["query"]), rng.random()) for one in variables["members"]]
    numbers = range(1, len(likings) + 1)
    return sorted(numbers, key=lambda number: likings[number - 1], reverse=True)
