"""Measures ranking metrics, and a recommender from question to score, on invented data.

    python benchmarks/recommenders.py [--cases 25000] [--items 200000] [--model sasrec]

The recommender has the sizes of the preset `small` and random weights: what it answers takes as
long as what a trained one answers. Ranking is timed apart from the rest of the run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from harness_horizon.curation.ledger import Manifest as Build
from harness_horizon.curation.ledger import write_manifest as write_build
from harness_horizon.ranking import expected_ranks, metrics_of
from harness_horizon.recommenders import rankers
from harness_horizon.recommenders.checkpoint import (
    FORMAT,
    VOCABULARY,
    Manifest,
    read_manifest,
    write_manifest,
    write_weights,
)
from harness_horizon.recommenders.presets import hyper_of
from harness_horizon.recommenders.rankers import Question, open_ranker

import harness

LISTED = 100
SPLIT = "0" * 64


def seconds(work: Callable[[], object]) -> float:
    """How long some work takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def rank_and_score(cases: int) -> None:
    """The expected rank of an item in each list of a hundred, and all its metrics."""
    scores = np.random.default_rng(0).integers(0, 1000, (cases, LISTED)).astype(np.float32)
    own = scores[:, :1]
    metrics_of(expected_ranks((scores > own).sum(axis=1), (scores == own).sum(axis=1)))


def write_data(folder: Path, cases: int, items: int) -> None:
    """Cases of setting 1a, and training histories that hold every item once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    histories = [rng.integers(0, items, rng.integers(3, 30)).tolist() for _ in range(cases)]
    first = [len(one) - 1 for one in histories]
    users = [f"u{number}" for number in range(cases)]
    own = pa.table({"user_id": users, "items": histories, "first": first})
    pq.write_table(own, folder / "cases-1a.parquet")
    train = np.arange(items).reshape(-1, 10).tolist()
    pq.write_table(pa.table({"items": train}), folder / "train.parquet")
    write_build(folder, Build(complete=True, digest=SPLIT))


def write_checkpoint(folder: Path, kind: str, items: int) -> None:
    """A network with the sizes of the preset `small` and the weights of its seed."""
    from harness_horizon.recommenders.networks import new_network, weights_of

    folder.mkdir()
    hyper = hyper_of(kind, "small")
    weights = weights_of(new_network(kind, items, hyper))
    digest = write_weights(folder, {VOCABULARY: np.arange(items), **weights})
    about = Manifest(
        format=FORMAT, kind=kind, preset="small", options=hyper, weights=digest, split=SPLIT,
        items=items, cases=0,
    )  # fmt: skip
    write_manifest(folder, about)


def main() -> None:
    """Print how long each part takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=25_000)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--model", default="sasrec")
    given = parser.parse_args()
    print(f"ranks and metrics of {given.cases:,} x {LISTED}: "
          f"{seconds(lambda: rank_and_score(given.cases)):.2f} s")  # fmt: skip
    with TemporaryDirectory() as place:
        data, folder = Path(place) / "data", Path(place) / given.model
        data.mkdir()
        write_data(data, given.cases, given.items)
        write_checkpoint(folder, given.model, given.items)
        rng = np.random.default_rng(2)
        questions = [Question(rng.integers(0, given.items, 15)) for _ in range(given.cases)]
        ranker = open_ranker(folder, read_manifest(folder))
        alone = seconds(lambda: ranker.rank(questions))
        print(f"ranking alone, {rankers.TOGETHER} at a time: {alone:.1f} s")
        whole = seconds(
            lambda: harness.evaluate(
                "horizon_next_item_1a", model=f"recommender:{folder}",
                data=str(data), output_path=Path(place) / "runs", store=Path(place) / "store",
            )
        )  # fmt: skip
        print(f"{given.model} from question to score, {given.cases:,} cases over {given.items:,} "
              f"items: {whole:.1f} s")  # fmt: skip


if __name__ == "__main__":
    main()
