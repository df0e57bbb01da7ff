"""What SASRec learns of the order that the generator of HORIZON's sample plants."""

from pathlib import Path
from typing import Any

import numpy as np
from builders.horizon import built
from harness_horizon.ranking import metrics_of, rank_in
from harness_horizon.recommenders.checkpoint import read_manifest
from harness_horizon.recommenders.rankers import Question, open_ranker
from harness_horizon.recommenders.train_tool import Settings, run
from harness_horizon.recommenders.training_data import read_histories
from samples.horizon import write

from harness.analysis.analysis import no_progress

USERS = 500
"""So many users of setting 1a are asked about."""


def above_popular(
    folder: Path, *, seed: int, epochs: int, ordered: bool = True, **options: Any
) -> Any:
    """The bounds of what SASRec's NDCG@10 in setting 1a has more than the most popular items'."""
    data = built(write(folder, seed=seed, ordered=ordered), least_items=100, **options)
    sasrec = Settings(
        model="sasrec", data=data, out=folder / "sasrec",
        preset="small", epochs=epochs, device="cpu",
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
