"""SASRec finds the order that the sample's generator plants, and nothing without it.

`make soak` trains longer, with more users and on more seeds.
"""

import pytest
from builders.horizon_order import above_popular

pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")


FEW = {"trained": 700, "tested": 500}


def test_sasrec_is_above_the_most_popular_items(tmp_path):
    low, _ = above_popular(tmp_path, seed=1, epochs=1, **FEW)
    assert low > 0


def test_without_the_planted_order_it_is_not(tmp_path):
    low, _ = above_popular(tmp_path, seed=1, epochs=1, ordered=False, **FEW)
    assert low <= 0
