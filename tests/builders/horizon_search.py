"""A catalogue for tests: it searches the titles of the sample by the letters that they share."""

import json
from functools import cache
from typing import Any

import numpy as np
from builders.horizon import rows_of
from harness_horizon.catalogue.merging import merged
from harness_horizon.catalogue.titles import cleaned
from harness_horizon.recommenders.training_data import SAMPLE

from harness.base.hashing import stable_int
from harness.contracts.model import Request
from harness.testing.checks import ANY_MODEL
from harness.testing.scripted import ScriptedModel

WIDTH = 256


@cache
def vector(text: str) -> Any:
    """The vector of a text, of length 1: a place for each word."""
    found = np.zeros(WIDTH, dtype=np.float32)
    for word in text.lower().split():
        found[stable_int(word) % WIDTH] += 1
    return found / (np.linalg.norm(found) or 1)


@cache
def titles() -> tuple[list[str], Any]:
    """The distinct titles of the sample, and a row for each."""
    found = list(dict.fromkeys(cleaned(row["title"]) for row in rows_of(SAMPLE / "items.parquet")))
    return found, np.stack([vector(title) for title in found])


def search(request: Request) -> str:
    """The answer to a request, in the shape that the catalogue's has."""
    asked = json.loads(request.messages[0].content)
    every, rows = titles()
    queries, truths = (np.stack([vector(one) for one in asked[name]]) for name in
                       ("queries", "truths"))  # fmt: skip
    lists, cosines = [], queries @ rows.T
    for row in cosines:
        lists.append(np.argsort(-row, kind="stable")[: asked["k"]].tolist())
    found = []
    for query, place in merged(lists, asked["k"], asked["merge"]):
        number = lists[query][place]
        near = truths @ rows[number]
        best = int(near.argmax())
        found.append([number, round(float(cosines[query, number]), 4), best,
                      round(float(near[best]), 4)])  # fmt: skip
    return json.dumps({
        "found": found,
        "truths": [every.index(title) for title in asked["truths"]],
        "cosines": (queries @ truths.T).astype(float).round(4).tolist(),
    })  # fmt: skip


def searcher() -> ScriptedModel:
    """A model for the role `retriever`."""
    return ScriptedModel(search, name="titles", details=ANY_MODEL)
