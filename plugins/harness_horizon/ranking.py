"""Ranks, and the metrics of one relevant item in a ranking.

Equal scores have one rank: the mean of the places that they take together, as in a random order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

CUTS = (10, 20, 50, 100)
"""The places at which rankings are cut."""

NAMES = ("ndcg", "mrr", "recall")


def expected_ranks(above: Any, equal: Any) -> NDArray[np.float64]:
    """The expected ranks of items with so many items above them, among so many equal ones.

    The item itself is one of the equal ones.

    >>> expected_ranks([0, 3], [1, 4]).tolist()
    [1.0, 5.5]
    """
    ranks: NDArray[np.float64] = np.asarray(above) + (np.asarray(equal) + 1) / 2
    return ranks


def rank_in(target: int, items: Any, scores: Any) -> float | None:
    """The expected rank of an item in a list of items with scores; None if it is not there.

    >>> rank_in(7, [5, 7, 9], [0.8, 0.3, 0.3])
    2.5
    """
    found = np.flatnonzero(np.asarray(items) == target)
    if not len(found):
        return None
    listed = np.asarray(scores)
    own = listed[found[0]]
    return float(expected_ranks((listed > own).sum(), (listed == own).sum()))


def metrics_of(ranks: Any, cuts: tuple[int, ...] = CUTS) -> dict[str, NDArray[np.float64]]:
    """NDCG, MRR and Recall of each rank at each cut; a rank of NaN is a miss everywhere.

    >>> {name: value.tolist() for name, value in metrics_of([1.0, 3.0], (2,)).items()}
    {'ndcg@2': [1.0, 0.0], 'mrr@2': [1.0, 0.0], 'recall@2': [1.0, 0.0]}
    """
    given = np.asarray(ranks, dtype=np.float64)
    ranked = np.where(np.isnan(given), np.inf, given)
    gains = {"ndcg": 1 / np.log2(1 + ranked), "mrr": 1 / ranked, "recall": np.ones_like(ranked)}
    return {f"{name}@{cut}": np.where(ranked <= cut, gains[name], 0.0)
            for name in NAMES for cut in cuts}  # fmt: skip
