"""Ranks and metrics, against another implementation and by hand."""

import math

import ir_measures as measures
import numpy as np
import pytest
from harness_horizon.ranking import CUTS, expected_ranks, metrics_of, rank_in


@pytest.mark.parametrize("ties", [False, True])
def test_random_rankings_agree_with_ir_measures(ties):
    rng = np.random.default_rng(5)
    runs, truth, ranks = {}, {}, []
    for query in range(120):
        scores = rng.integers(0, 40, 150) if ties else rng.permutation(150)
        items = rng.permutation(150)
        target = int(items[rng.integers(150)])
        rank = rank_in(target, items, scores)
        assert rank is not None
        ranks.append(rank)
        # The other one breaks ties by name, so it gets the target at the middle of those equal.
        order = items[np.lexsort((items, -scores))].tolist()
        order.remove(target)
        order.insert(math.ceil(rank) - 1, target)
        runs[f"q{query}"] = {f"d{item}": -float(place) for place, item in enumerate(order)}
        truth[f"q{query}"] = {f"d{target}": 1}
    whole = np.ceil(ranks)
    found = metrics_of(whole)
    kinds = {"ndcg": measures.nDCG, "mrr": measures.RR, "recall": measures.R}
    for cut in CUTS:
        for name, kind in kinds.items():
            theirs = measures.calc_aggregate([kind @ cut], truth, runs)[kind @ cut]
            assert found[f"{name}@{cut}"].mean() == pytest.approx(theirs), (name, cut)
            exact = metrics_of(ranks)[f"{name}@{cut}"]
            better = metrics_of(np.floor(ranks))[f"{name}@{cut}"]
            assert (found[f"{name}@{cut}"] <= exact).all()
            assert (exact <= better).all()
    assert ties == any(rank != int(rank) for rank in ranks)


def test_equal_scores_share_the_mean_of_their_places():
    # Above are one of 9 and one of 7; three of 5 share the places 3, 4 and 5.
    assert rank_in(30, [10, 20, 30, 40, 50, 60], [5, 9, 5, 7, 5, 1]) == 4
    assert rank_in(20, [10, 20, 30], [5, 9, 9]) == 1.5
    assert rank_in(99, [1, 2], [0.5, 0.5]) is None
    assert expected_ranks(np.array([2]), np.array([3])).tolist() == [4.0]
