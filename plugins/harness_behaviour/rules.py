"""An answer without a model: what shares words and years with the history. It reads what the prompt
shows and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from random import Random
from statistics import median
from typing import Any

from harness_behaviour.records import RANKED

WORD = re.compile(r"[^\W\d_]{3,}+")
YEAR = re.compile(r"\((\d{4})\)\s*$")


def recommend(variables: Mapping[str, Any], rng: Random) -> str:
    """The ten candidates with most words of the history, then those of about its years.

    Candidates that are equal in both stay in the order in which the prompt lists them.
    """
    history, candidates = variables["history"], variables["candidates"]
    said = frozenset().union(*map(_words, history))
    years = _years(history)
    middle = median(years) if years else None

    def likeness(title: str) -> tuple[int, float]:
        own = _years([title])
        apart = abs(own[0] - middle) if own and middle is not None else 0.0
        return -len(_words(title) & said), apart

    return json.dumps(sorted(candidates, key=likeness)[:RANKED], ensure_ascii=False)


def _words(title: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in WORD.findall(title)) - {"the", "and"}


def _years(titles: Sequence[str]) -> list[int]:
    return [int(found[1]) for title in titles if (found := YEAR.search(title))]
