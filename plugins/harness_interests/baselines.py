"""An answer without a model: the floor that a model must beat."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

SHORT = 4


def frequent_words(variables: Mapping[str, Any], rng: Random) -> str:
    """The most frequent content words of the liked titles; each cites all titles that contain it.

    The rule ignores meaning: it takes a frequent phrase for an interest, and cites skipped titles
    as well as liked ones.
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
    """The distinct content words of a title, in their order."""
    found = re.findall(r"\w+", title.casefold())
    return list(dict.fromkeys(word for word in found if len(word) > SHORT))
