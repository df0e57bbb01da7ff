"""SASRec finds the order that the sample's generator plants; `make soak` trains more often."""

import pytest
from builders.horizon_order import above_popular

pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")


@pytest.mark.slow
def test_sasrec_is_above_the_most_popular_items(tmp_path):
    low, _ = above_popular(tmp_path, seed=1, epochs=2)
    assert low > 0
