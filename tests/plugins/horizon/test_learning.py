"""SASRec finds the order that the sample's generator plants, and nothing where there is none."""

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

pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")

USERS = 500
"""So many users of setting 1a are asked about."""


def ndcg(data, folder, kind, **options):
    """NDCG@10 of each user in setting 1a."""
    run(Settings(model=kind, data=data, out=folder, **options), no_progress)
    ranker = open_ranker(folder, read_manifest(folder), "cpu")
    histories, first = read_histories(data / "cases-1a.parquet", "first")
    rows = np.split(histories.items, histories.offsets[1:-1])[:USERS]
    asked = [Question(row[:place]) for row, place in zip(rows, first, strict=False)]
    ranks = [
        rank_in(row[place], found.items, found.scores)
        for row, place, found in zip(rows, first, ranker.rank(asked), strict=False)
    ]
    return metrics_of([np.nan if rank is None else rank for rank in ranks])["ndcg@10"]


def above(folder, *, seed, ordered):
    """The bounds of what SASRec has more than the most popular items."""
    data = built(write(folder, seed=seed, ordered=ordered), least_items=100)
    small = {"preset": "small", "epochs": 4, "device": "cpu"}
    more = ndcg(data, folder / "sasrec", "sasrec", **small)
    more = more - ndcg(data, folder / "popular", "popular")
    drawn = np.random.default_rng(0).integers(len(more), size=(1000, len(more)))
    return np.quantile(more[drawn].mean(axis=1), [0.025, 0.975])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_sasrec_is_above_the_most_popular_items(tmp_path, seed):
    low, _ = above(tmp_path, seed=seed, ordered=True)
    assert low > 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_without_the_planted_order_it_is_not(tmp_path):
    low, _ = above(tmp_path, seed=1, ordered=False)
    assert low <= 0
