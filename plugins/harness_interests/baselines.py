"""An answer without any model: the floor that a model has to beat."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

SHORT = 4


def frequent_words(variables: Mapping[str, Any], rng: Random) -> str:
    """The most frequent content words of the liked titles, each citing every title it is in.

    It has no notion of meaning: it takes a turn of phrase for a taste, and cites a title that was
    skipped as readily as one that was liked.
    """
    history = variables["history"]
    counts = Counter(word for one in history if one["liked"] for word in words(one["title"]))
    ranked = sorted(counts, key=lambda word: (-counts[word], rng.random()))
    answer = [
        {
            "interest": word,
            "items": [one["number"] for one in history if word in words(one["title"])],
        }
        for word in ranked[: variables["max_interests"]]
    ]
    return json.dumps(answer)


def words(title: str) -> list[str]:
    """The words of a title that may mean something, each once, in their order."""
    found = re.findall(r"\w+", title.casefold())
    return list(dict.fromkeys(word for word in found if len(word) > SHORT))
