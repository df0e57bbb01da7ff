"""SASRec finds the order that the sample's generator plants, and nothing without it.

`make soak` trains for longer, and of more seeds.
"""

import pytest
from builders.horizon_order import above_popular

pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")


def test_sasrec_is_above_the_most_popular_items(tmp_path):
    low, _ = above_popular(tmp_path, seed=1, epochs=1)
    assert low > 0


def test_without_the_planted_order_it_is_not(tmp_path):
    low, _ = above_popular(tmp_path, seed=1, epochs=1, ordered=False)
    assert low <= 0
