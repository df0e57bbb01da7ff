"""SASRec finds the order that the generator of HORIZON's sample plants, and nothing without it.

make soak SOAK=planted_order.py
"""

from __future__ import annotations

import pytest
from builders.horizon_order import above_popular

torch = pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")
torch.set_num_threads(1)

EPOCHS = 4
SEEDS = [1, 2, 3, 4, 5]


@pytest.mark.parametrize("seed", SEEDS)
def test_sasrec_is_above_the_most_popular_items(tmp_path, seed):
    low, _ = above_popular(tmp_path, seed=seed, epochs=EPOCHS)
    assert low > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_without_the_planted_order_it_is_not(tmp_path, seed):
    low, _ = above_popular(tmp_path, seed=seed, epochs=EPOCHS, ordered=False)
    assert low <= 0
