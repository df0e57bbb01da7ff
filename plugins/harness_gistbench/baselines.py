"""An answer without any model: the floor that a model has to beat."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from random import Random
from typing import Any

MOST = 12
"""Interests that are named at most."""

LEAST_LINES = 2
"""Lines with a positive engagement that a word must stand in to be named."""

WORD = re.compile(r"#?[^\W\d_]{5,}+")
POSITIVE = frozenset({"implicit positive", "explicit positive"})


def frequent_words(variables: Mapping[str, Any], rng: Random) -> str:
    """The words that most positive engagements share, each citing every line it stands in.

    It has no notion of meaning and does not count: a turn of phrase passes for an interest, and a
    line that was passed over is cited as readily as one that was liked.
    """
    cited: dict[str, list[str]] = defaultdict(list)
    liked: dict[str, int] = defaultdict(int)
    for identifier, engagement, text in variables["lines"]:
        for word in words(text):
            cited[word].append(identifier)
            liked[word] += engagement in POSITIVE
    chance = {word: rng.random() for word in cited}
    ranked = sorted(cited, key=lambda word: (-liked[word], chance[word]))
    answer = [
        {"interest": word, "evidence": cited[word]}
        for word in ranked[:MOST]
        if liked[word] >= LEAST_LINES
    ]
    return json.dumps(answer)


def words(text: str) -> list[str]:
    """The words and hashtags of a text that may mean something, each once, in their order."""
    found = (word.lstrip("#") for word in WORD.findall(text.casefold()))
    return list(dict.fromkeys(found))
