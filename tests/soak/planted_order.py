"""SASRec finds the order that the generator of HORIZON's sample plants, and nothing without it.

make soak SOAK=planted_order.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.horizon import built
from harness_horizon.ranking import metrics_of, rank_in
from harness_horizon.recommenders.checkpoint import read_manifest
from harness_horizon.recommenders.rankers import Question, open_ranker
from harness_horizon.recommenders.train_tool import Settings, run
from harness_horizon.recommenders.training_data import read_histories
from samples.horizon import write

from harness.analysis.analysis import no_progress

torch = pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")
torch.set_num_threads(1)

EPOCHS = 4
SEEDS = [1, 2, 3, 4, 5]
USERS = 500
"""So many users of setting 1a are asked about."""


def above_popular(folder: Path, *, seed: int, ordered: bool = True) -> Any:
    """The bounds of what SASRec's NDCG@10 in setting 1a has more than the most popular items'."""
    data = built(write(folder, seed=seed, ordered=ordered), least_items=100)
    sasrec = Settings(
        model="sasrec", data=data, out=folder / "sasrec",
        preset="small", epochs=EPOCHS, device="cpu",
    )  # fmt: skip
    more = _ndcg(sasrec) - _ndcg(Settings(model="popular", data=data, out=folder / "popular"))
    drawn = np.random.default_rng(0).integers(len(more), size=(1000, len(more)))
    return np.quantile(more[drawn].mean(axis=1), [0.025, 0.975])


def _ndcg(settings: Settings) -> Any:
    """NDCG@10 of each user, after training."""
    run(settings, no_progress)
    ranker = open_ranker(settings.out, read_manifest(settings.out), "cpu")
    histories, first = read_histories(settings.data / "cases-1a.parquet", "first")
    rows = np.split(histories.items, histories.offsets[1:-1])[:USERS]
    asked = [Question(row[:place]) for row, place in zip(rows, first, strict=False)]
    ranks = [
        rank_in(row[place], found.items, found.scores)
        for row, place, found in zip(rows, first, ranker.rank(asked), strict=False)
    ]
    return metrics_of([np.nan if rank is None else rank for rank in ranks])["ndcg@10"]


@pytest.mark.parametrize("seed", SEEDS)
def test_sasrec_is_above_the_most_popular_items(tmp_path, seed):
    low, _ = above_popular(tmp_path, seed=seed)
    assert low > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_without_the_planted_order_it_is_not(tmp_path, seed):
    low, _ = above_popular(tmp_path, seed=seed, ordered=False)
    assert low <= 0
