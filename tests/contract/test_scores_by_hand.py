"""The examples of docs/scores-by-hand.md, with the benchmarks' own code."""

import re
from pathlib import Path

import numpy as np
import pytest
from harness_behaviour.entropy import Targets, crossed
from harness_gistbench.metrics import scores_of
from harness_gistbench.records import SIGNALS, Counts, Judged, Options, Profile
from harness_horizon.ranking import expected_ranks, metrics_of
from harness_interests.metrics import shares
from harness_interests.records import Engagement, History, Interest
from harness_perrecbench.ranking import ptc
from harness_usersumbench.metrics import density, quality

PAGE = (Path(__file__).parents[2] / "docs" / "scores-by-hand.md").read_text("utf-8")


@pytest.fixture
def part():
    """The numbers that stand in the part of the page about a benchmark."""

    def of(benchmark):
        text = PAGE.partition(f"\n## {benchmark}")[2].partition("\n## ")[0]
        assert text, benchmark
        return {float(found) for found in re.findall(r"\d+\.\d+", text)}

    return of


def rounded(*values):
    return {round(float(value), 3) for value in values}


def test_interests(part):
    liked = tuple(Engagement(title=str(n), liked=n < 7) for n in range(1, 8))
    ada = History(id="ada", user="ada", engagements=liked)
    judged = [(Interest("trains", (1, 2, 3, 7)), (1, 2, 3)), (Interest("tea", (4,)), ())]
    values, _ = shares(ada, judged, 3)
    assert values == {"support": 0.6, "grounded": 0.5, "coverage": 0.5}
    assert rounded(*values.values()) <= part("interests")


def test_gistbench(part):
    verified, not_verified = Counts(explicit_positive=2), Counts(explicit_positive=1)

    def interest(category, counts, correct=0, backing=0):
        return Judged(
            name="i", cited=4, category=category, counts=counts, correct=correct, backing=backing
        )

    interests = (
        interest(1, verified, 4, 5), interest(1, not_verified), interest(2, verified, 2, 5),
        interest(3, not_verified),
    )  # fmt: skip
    profile = Profile(signals=SIGNALS, windows=1, unreadable=0, interests=interests)
    found = scores_of(profile, Options(), {1, 2, 4, 5})
    assert [round(found[name], 3) for name in ("ig_p", "ig_r", "ig_f1", "is")] == [
        0.5, 0.375, 0.429, 0.6,
    ]  # fmt: skip
    assert {0.5, 0.375, 0.429, 0.6} <= part("GISTBench")


def test_perrecbench(part):
    other, tied = ptc((1, 3, 2, 4), (1, 2, 3, 4)), ptc((1, 2, 2, 4), (1, 2, 3, 4))
    assert rounded(other, tied) == {0.667, 0.833} <= part("PerRecBench")


def test_usersumbench(part):
    ann, bob, cid = (True, True, False, True), (True, False, True, False), (True, True, False, None)
    assert [quality(each, 3) for each in (ann, bob, cid)] == [1.0, 0.0, None]
    assert density(ann, 100) == pytest.approx(7.5)
    assert {0.5, 0.333, 7.5} <= part("UserSumBench")


def test_behaviour(part):
    targets = Targets([(0.5, 0.3, 0.2, 0.0)])
    (entropy,) = targets.entropies()
    swapped, wrong = np.array([[[1, 0]]]), np.array([[[0, 3]]])
    estimate = crossed(targets, swapped).at(1e-6)[0, 0]
    displaced = crossed(targets, wrong).displaced[0, 0]
    found = rounded(entropy, estimate, estimate - entropy, displaced)
    assert found == {1.03, 1.132, 0.102, 0.2} <= part("User behaviour")


def test_horizon(part):
    (tied,) = expected_ranks([2], [2])
    assert tied == 3.5
    found = metrics_of([3.0, tied], (10,))
    assert found["ndcg@10"].round(3).tolist() == [0.5, 0.461]
    assert (found["recall@10"][0], found["mrr@10"][0]) == (1.0, pytest.approx(1 / 3))
    assert {0.5, 3.5, 0.461} <= part("HORIZON")
