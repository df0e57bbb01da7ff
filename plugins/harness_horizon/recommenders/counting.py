"""The rules that count: the most popular items, and what follows the last item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from harness_horizon.recommenders.training_data import TrainingData

REACH = 10
"""How far behind an item another may stand and still be its neighbour."""

COUNTS, FIRST, NEIGHBOURS, WEIGHTS = "counts", "first", "neighbours", "near"
"""The arrays of the rules: interactions an item; where an item's neighbours begin, which they are,
and how near they stand. Position 0 is item 1."""


def popular(data: TrainingData) -> dict[str, NDArray[np.generic]]:
    """The number of training interactions of each item."""
    counts = np.bincount(data.numbers, minlength=len(data.vocabulary) + 1)[1:]
    return {COUNTS: counts.astype(np.int64)}


def neighbours(data: TrainingData) -> dict[str, NDArray[np.generic]]:
    """The items that follow each item within `REACH` places, weighted by one over the distance.

    Weights are added up over all training histories.
    """
    known, places = len(data.vocabulary), len(data.numbers)
    user = np.repeat(np.arange(len(data.train.sizes)), data.train.sizes)
    pairs, near = [], []
    for distance in range(1, REACH + 1):
        together = np.flatnonzero(user[: max(0, places - distance)] == user[distance:])
        before, after = data.numbers[together] - 1, data.numbers[together + distance] - 1
        other = before != after
        pairs.append((before * known + after)[other])
        near.append(np.full(int(other.sum()), 1 / distance))
    found, place = np.unique(np.concatenate(pairs), return_inverse=True)
    weights = np.bincount(place, weights=np.concatenate(near), minlength=len(found))
    first = np.searchsorted(found // known, np.arange(known + 1))
    return {
        **popular(data),
        FIRST: first.astype(np.int64),
        NEIGHBOURS: (found % known).astype(np.int64),
        WEIGHTS: weights,
    }


def scores_after(last: int | None, arrays: dict[str, NDArray[np.generic]]) -> NDArray[np.float64]:
    """The score of each item after an item with this number, or by popularity alone.

    Among items that are as near, the more popular one comes first: the popularity is scaled so that
    it decides nothing else.
    """
    counts = arrays[COUNTS].astype(np.float64)
    if last is None or FIRST not in arrays:
        return counts
    scores: NDArray[np.float64] = counts / (counts.max() + 1) * 1e-4
    begin, end = arrays[FIRST][last - 1 : last + 1]
    scores[arrays[NEIGHBOURS][begin:end]] += arrays[WEIGHTS][begin:end]
    return scores
