"""Ranks as intervals, against plain numpy: six users by hand.

            ann  bob  cid  dan  eve  fay   mean
first         6    7    8    7    9    8   7.50
second        5    5    7    5    8    6   6.00   worse than first for each user
third         5    9    6    8    8    9   7.50   once better, once worse
"""

import itertools

import numpy as np
import pytest
from builders.runs import keep_task, make_task
from builders.stages import make_benchmark, make_stage
from msgspec.structs import replace

from harness.comparison.compare_runs import compare
from harness.comparison.document import Difference, rank_intervals
from harness.contracts.benchmark import Metric
from harness.contracts.records import Score
from harness.contracts.task import IntervalSpec
from harness.runs.manifest import RoleEntry

SIX = {
    "first": (6, 7, 8, 7, 9, 8), "second": (5, 5, 7, 5, 8, 6), "third": (5, 9, 6, 8, 8, 9),
}  # fmt: skip


@pytest.fixture
def differences(tmp_path):
    """All paired differences of runs whose users have these values."""

    def of(columns, *, confidence=0.95, higher=True):
        benchmark = make_benchmark(
            make_stage("ask", roles=("candidate",)),
            metrics={"good": Metric(description="", higher_is_better=higher)},
        )
        task = make_task(
            metrics=("good",), interval=IntervalSpec(confidence=confidence, draws=4000)
        )
        tasks = []
        for name, values in columns.items():
            roles = {"candidate": RoleEntry(name=name, identity={"model": {"name": name}})}
            scores = [
                Score(id=f"u{n}", user=f"u{n}", values={"good": float(value)})
                for n, value in enumerate(values)
            ]
            tasks.append(keep_task(
                tmp_path / name, task, scores=scores, benchmark=benchmark, roles=roles,
                entry={"data": {"fingerprint": "f"}},
            ))  # fmt: skip
        return compare(tasks, all_pairs=True).comparison.differences

    return of


def plain_ranks(columns, *, confidence):
    """The ranks with numpy alone: all resamples of few users, all exchanges, Holm by hand."""
    values = {name: np.array(column, dtype=float) for name, column in columns.items()}
    count = len(next(iter(values.values())))
    drawn = np.array(list(itertools.product(range(count), repeat=count)))
    signs = np.array(list(itertools.product((-1, 1), repeat=count)))
    pairs = {}
    for one, two in itertools.combinations(values, 2):
        gaps = values[one] - values[two]
        tail = (1 - confidence) / 2
        low, high = np.quantile(gaps[drawn].mean(axis=1), [tail, 1 - tail])
        exchanged = np.abs((signs * gaps).mean(axis=1))
        p = float((exchanged >= abs(gaps.mean()) - 1e-12).mean())
        pairs[one, two] = (low, high, p)
    adjusted, least = {}, 0.0
    for place, pair in enumerate(sorted(pairs, key=lambda pair: pairs[pair][2])):
        least = adjusted[pair] = max(least, min(1.0, pairs[pair][2] * (len(pairs) - place)))
    better = {name: set() for name in values}
    for (one, two), (low, high, _) in pairs.items():
        if adjusted[one, two] < 1 - confidence and not low <= 0 <= high:
            better[one if low > 0 else two].add(two if low > 0 else one)
    return {
        name: (1 + sum(name in worse for worse in better.values()), len(values) - len(better[name]))
        for name in values
    }


def test_six_users_by_hand(differences):
    """Of 64 exchanges 2 are as extreme for first − second: p = 1/32, after Holm 3/32 < 0.1."""
    found = differences(SIX, confidence=0.9)
    ranks = rank_intervals([*SIX], found, higher_is_better=True)
    assert ranks == {"first": (1, 2), "second": (2, 3), "third": (1, 3)}
    assert ranks == plain_ranks(SIX, confidence=0.9)


def test_lower_values_are_better_where_the_metric_says_so(differences):
    two = {name: SIX[name] for name in ("first", "second")}
    found = differences(two, higher=False)
    ranks = rank_intervals([*two], found, higher_is_better=False)
    assert ranks == {"second": (1, 1), "first": (2, 2)}


def test_an_interval_at_0_and_a_metric_without_p():
    edge = Difference(
        metric="m", first="b", second="a", value=0.1, n=6, users=6, interval=(0.0, 0.2),
        confidence=0.95,
    )  # fmt: skip
    apart = rank_intervals(["a", "b"], [edge], higher_is_better=True)
    assert apart == {"a": (1, 2), "b": (1, 2)}
    beyond = replace(edge, interval=(0.01, 0.2))
    assert rank_intervals(["a", "b"], [beyond], higher_is_better=True) == {
        "b": (1, 1), "a": (2, 2),
    }  # fmt: skip


def test_six_users_are_too_few_for_three_models_at_95_percent(differences):
    """The interval of first − second leaves out 0, but 3/32 is not below 0.05."""
    found = differences(SIX)
    assert found[0].interval[0] > 0.0
    ranks = rank_intervals([*SIX], found, higher_is_better=True)
    assert ranks == dict.fromkeys(SIX, (1, 3)) == plain_ranks(SIX, confidence=0.95)
