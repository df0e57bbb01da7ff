"""Whole runs on samples of the generator: summaries foretell the future where it is planted."""

import json

import numpy as np
import pytest
from samples.usersumbench import write

import harness
from harness.scoring.stats import paired_interval

TASKS = ("usersum_movielens", "usersum_movielens_none", "usersum_movielens_other")


@pytest.fixture
def quality(tmp_path):
    """The quality of each user's summary by task, on a sample of the generator."""

    def run(seed, plant):
        data = write(tmp_path / "made", seed=seed, plant=plant)
        folder = harness.evaluate(
            list(TASKS), model="baseline", data=str(data), output_path=tmp_path / "runs",
            no_store=True, set=["runs=1"],
        ).folder  # fmt: skip
        found = []
        for task in TASKS:
            lines = (folder / task / "scores.jsonl").read_text("utf-8").splitlines()
            scores = {one["user"]: one["values"]["qm"] for one in map(json.loads, lines)}
            found.append(np.array([scores[user] for user in sorted(scores)]))
        assert len({len(one) for one in found}) == 1
        return found

    return run


def intervals(own, none, other):
    for better, worse in ((own, none), (none, other)):
        found = paired_interval(better, worse, np.arange(len(own)), seed=0)
        yield found.low, found.high


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_a_summary_beats_none_and_none_beats_another_users(quality, seed):
    for low, high in intervals(*quality(seed, plant=0.95)):
        assert 0.05 < low < high


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_where_the_future_follows_nothing_no_summary_foretells_it(quality, seed):
    for low, high in intervals(*quality(seed, plant=0)):
        assert low <= 0 <= high
