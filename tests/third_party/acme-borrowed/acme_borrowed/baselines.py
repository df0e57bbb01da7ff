"""Answers without a model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

from acme_borrowed.records import words


def frequent_words(variables: Mapping[str, Any], rng: Random) -> str:
    """The longer words of finished titles, the most frequent first."""
    loans = variables["loans"]
    found = Counter(word for loan in loans if loan["finished"] for word in words(loan["title"]))
    ranked = sorted(found, key=lambda word: (-found[word], rng.random()))
    tastes = [
        {"taste": word, "books": [one["number"] for one in loans if word in words(one["title"])]}
        for word in ranked
        if len(word) > 2
    ]
    return json.dumps(tastes[: variables["most"]])


def shared_words(variables: Mapping[str, Any], rng: Random) -> str:
    """The book whose title has more words of the tastes; else one of the two, drawn."""
    tastes = {word for taste in variables["tastes"] for word in words(taste)}
    a, b = (len(tastes.intersection(words(variables[name]))) for name in "ab")
    return "A" if (a, rng.random()) > (b, 0.5) else "B"
