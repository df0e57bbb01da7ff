"""Retrieves the behaviours for a question: BM25 over their texts, as in rank_bm25's Okapi."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import add
from typing import Literal

from harness_perrecbench.records import Behaviour, Thing

K1 = 1.5
B = 0.75
EPSILON = 0.25


def top(
    behaviours: Sequence[Behaviour],
    query: Thing | Behaviour,
    *,
    k: int,
    tokens: Literal["published", "words"],
) -> tuple[tuple[Behaviour, ...], tuple[float, ...]]:
    """At most `k` of the behaviours, best first, and their scores.

    Of equal scores, the earlier behaviour comes first with `tokens="words"`, and the later one with
    "published": the published code sorts with numpy, whose ties differ by build.
    """
    if tokens == "published":
        documents = [behaviour_text(behaviour).split() for behaviour in behaviours]
        text = behaviour_text(query) if isinstance(query, Behaviour) else query_text(query)
        wanted = text.split(" ")
    else:
        documents = [_words(behaviour) for behaviour in behaviours]
        wanted = _words(query)
    found = scores(documents, wanted)
    places = range(len(found))
    # A stable sort keeps the given order of equal scores.
    given = reversed(places) if tokens == "published" else places
    best = sorted(given, key=found.__getitem__, reverse=True)[:k]
    return tuple(behaviours[place] for place in best), tuple(found[place] for place in best)


def behaviour_text(behaviour: Behaviour) -> str:
    """A behaviour's text in questions about one user, which is also its document for the search."""
    return f"{_named(behaviour)}### User Rating\n{behaviour.rating}"


def query_text(thing: Thing) -> str:
    """The block about the query in a question, which as a whole is the search query."""
    return (
        "<|The Start of Query Item Information|>\n"
        f"{_named(thing)}"
        "<|The End of Query Item Information|>"
    )


def scores(documents: Sequence[Sequence[str]], query: Sequence[str]) -> list[float]:
    """The BM25 score of each document; a repeated word of the query counts each time.

    A word in more than half of the documents weighs a quarter of the average weight of all words.
    """
    holding = Counter(chain.from_iterable(map(dict.fromkeys, documents)))
    weights = _weights(holding, len(documents), query)
    if not weights:
        return [0.0] * len(documents)
    known = [word for word in query if word in weights]
    average = sum(map(len, documents)) / len(documents)
    return [_score(document, known, weights, average) for document in documents]


def _score(
    document: Sequence[str], query: Sequence[str], weights: Mapping[str, float], average: float
) -> float:
    damping = K1 * (1 - B + B * len(document) / average)
    parts = {}
    for word in weights.keys() & document:
        n = document.count(word)
        parts[word] = weights[word] * (n * (K1 + 1) / (n + damping))
    return _total(parts[word] for word in query if word in parts)


def _weights(holding: Mapping[str, int], documents: int, query: Sequence[str]) -> dict[str, float]:
    """The inverse document frequency of each word of the query that occurs in a document."""
    wanted = {word: holding[word] for word in query if word in holding}
    if not wanted:
        return {}
    rarity = {n: math.log(documents - n + 0.5) - math.log(n + 0.5) for n in set(holding.values())}
    least = EPSILON * _total(map(rarity.__getitem__, holding.values())) / len(holding)
    return {word: rarity[n] if rarity[n] >= 0 else least for word, n in wanted.items()}


def _total(numbers: Iterable[float]) -> float:
    """The sum by plain addition: from Python 3.12 on, `sum` rounds differently."""
    return reduce(add, numbers, 0.0)


def _named(thing: Thing | Behaviour) -> str:
    author = "" if thing.author is None else f"### Item Author\n{thing.author}\n"
    return f"### Item Title\n{thing.title}\n{author}"


def _words(thing: Thing | Behaviour) -> list[str]:
    return re.findall(r"\w+", f"{thing.title} {thing.author or ''}".lower())
