import functools
import math
import random
import statistics
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy import stats

from harness.scoring.stats import (
    Interval,
    NoInterval,
    bootstrap_interval,
    paired_interval,
    statistic_of,
)
from harness.scoring.stats.bootstrap import bca_interval, interval_of, without_each


@functools.cache
def resampled_by_hand(
    users: tuple[tuple[float, ...], ...],
    statistic: Callable[[list[float]], float],
    *,
    draws: int = 10_000,
) -> tuple[float, float]:
    """The 95% percentile interval in plain Python with another generator."""
    generator = random.Random(12)
    found = []
    for _ in range(draws):
        units: list[float] = []
        for _ in users:
            units.extend(generator.choice(users))
        found.append(statistic(units))
    found.sort()
    return found[int(0.025 * draws)], found[int(0.975 * draws)]


def flat(users: Sequence[Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    values = [value for user in users for value in user]
    owners = [number for number, user in enumerate(users) for _ in user]
    return np.array(values), np.array(owners)


DRAW = random.Random(5)
UNEVEN = tuple(
    tuple(DRAW.gauss(number % 4, 0.3) for _ in range(1 + number % 5)) for number in range(40)
)
"""Users with one to five values."""


def as_pair(found: Interval | NoInterval) -> tuple[float, float]:
    assert isinstance(found, Interval)
    return found.low, found.high


@pytest.mark.parametrize(
    ("users", "statistic", "by_hand"),
    [
        (UNEVEN, "mean", statistics.fmean),
        (UNEVEN, "median", statistics.median),
        (UNEVEN, np.ptp, lambda units: max(units) - min(units)),
        *((tuple((DRAW.gauss(0, 1),) for _ in range(count)), "median", statistics.median)
          for count in (10, 41)),
    ],
    ids=["mean", "median", "range", "median of one value each", "median of an odd number"],
)  # fmt: skip
def test_it_agrees_with_resampling_by_hand(users, statistic, by_hand):
    values, owners = flat(users)
    found = bootstrap_interval(values, owners, seed=3, statistic=statistic, draws=10_000)
    close = 0.02 if users == UNEVEN else 0.05
    assert as_pair(found) == pytest.approx(resampled_by_hand(users, by_hand), abs=close)


def test_a_median_is_that_of_the_very_units_drawn():
    users = [[1.0], [2.0, 5.0], [4.0, 4.0, 7.0], [0.5]]
    values, owners = flat(users)
    generator = np.random.Generator(np.random.PCG64(8))
    block = generator.integers(0, 4, size=(500, 4))
    by_hand = [
        statistics.median([value for number in row for value in users[number]]) for row in block
    ]
    expected = tuple(np.quantile(by_hand, [0.05, 0.95]))
    found = bootstrap_interval(
        values, owners, seed=8, statistic="median", draws=500, confidence=0.9
    )
    assert as_pair(found) == pytest.approx(expected, abs=1e-12)


def test_the_order_of_units_does_not_matter_to_what_a_user_is():
    values = np.array([1.0, 10.0, 2.0, 20.0, 3.0, 30.0])
    owners = np.array([7, 4, 7, 4, 7, 4])
    straight = bootstrap_interval(np.sort(values), np.array([0, 0, 0, 1, 1, 1]), seed=1)
    assert {*as_pair(bootstrap_interval(values, owners, seed=1))} == {2.0, 20.0}
    assert {*as_pair(straight)} == {2.0, 20.0}


def test_means_drawn_in_blocks_agree_with_resampling_by_hand(monkeypatch):
    monkeypatch.setattr("harness.scoring.stats.bootstrap._BLOCK", 3)
    monkeypatch.setattr("harness.scoring.stats.bootstrap._CELLS", 1000)
    values, owners = flat(UNEVEN)
    found = as_pair(bootstrap_interval(values, owners, seed=3, draws=10_000))
    assert found == pytest.approx(resampled_by_hand(UNEVEN, statistics.fmean), abs=0.02)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0]])
def test_one_user_has_no_interval(values):
    found = bootstrap_interval(np.array(values), np.zeros(len(values), dtype=int), seed=1)
    assert found == NoInterval("fewer than two users: there is nothing to draw from")


def test_statistics():
    column = np.array([4.0, 1.0, 1.0])
    assert statistic_of(column, "mean") == 2.0
    assert statistic_of(column, "median") == 1.0
    assert statistic_of(column, lambda values: values.sum() * 2) == 12.0
    assert math.isnan(statistic_of(column[:0], "mean"))
    assert math.isnan(statistic_of(column, lambda values: 1 // 0))


@pytest.mark.parametrize("statistic", ["mean", "median", lambda values: float(values.max())])
def test_users_are_drawn_with_all_their_units_for_both(statistic):
    """One user twice: 1 - 1/2 of each statistic, or 4 - 2 of the other; both lie between."""
    first = np.array([1.0, 1.0, 4.0])
    found = paired_interval(first, first / 2, np.array([0, 0, 1]), seed=0, statistic=statistic)
    assert as_pair(found) == (0.5, 2.0)


def test_medians_of_one_unit_each_agree_with_resampling_by_hand():
    generator = random.Random(11)
    pairs = [(3 * generator.random(), generator.random()) for _ in range(60)]
    found = []
    for _ in range(10_000):
        ours, theirs = zip(*(generator.choice(pairs) for _ in pairs), strict=True)
        found.append(statistics.median(ours) - statistics.median(theirs))
    found.sort()
    first, second = np.array(pairs).T
    interval = paired_interval(
        first, second, np.arange(60), seed=1, statistic="median", draws=10_000
    )
    assert as_pair(interval) == pytest.approx((found[250], found[9750]), abs=0.03)


SKEWED = np.array([0.1, 0.4, 0.2, 3.0, 0.9, 0.3, 7.5, 1.1, 0.6, 0.2, 2.2, 0.5])


def test_draws_without_a_value_lie_beyond_both_bounds_or_leave_no_interval():
    # A twentieth of 41 draws lies below the third: here of nothing, 0 and 1.
    found = interval_of(np.array([np.nan, *range(40)]), 0.9, of="r")
    assert as_pair(found) == pytest.approx((1, 38))
    few = interval_of(np.array([np.nan] * 3 + [*range(38)]), 0.9, of="r")
    assert few == NoInterval("r has no value in 3 of 41 draws")
    values = np.array([1.0, 2.0])
    found = paired_interval(
        values, values, np.arange(2), seed=0, statistic=lambda values: float("nan"), draws=10
    )
    assert found == NoInterval("the difference has no value in 10 of 10 draws")


@pytest.mark.parametrize("statistic", [np.mean, np.median, np.std])
def test_the_bounds_of_the_same_draws_are_scipys(statistic):
    by_scipy = stats.bootstrap(
        (SKEWED,), statistic, n_resamples=999, method="BCa", confidence_level=0.9,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    without = np.array([statistic(np.delete(SKEWED, place)) for place in range(len(SKEWED))])
    found = bca_interval(
        by_scipy.bootstrap_distribution, (float(statistic(SKEWED)), without), 0.9, of="it"
    )
    assert as_pair(found) == pytest.approx(tuple(by_scipy.confidence_interval), rel=1e-9)


@pytest.mark.parametrize("statistic", ["mean", "median", np.std])
def test_whole_intervals_agree_with_scipy(statistic):
    plain = {"mean": np.mean, "median": np.median}.get(statistic, statistic)
    by_scipy = stats.bootstrap(
        (SKEWED,), plain, n_resamples=40_000, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    found = bootstrap_interval(
        SKEWED, np.arange(12), seed=3, statistic=statistic, draws=40_000, method="bca"
    )
    assert as_pair(found) == pytest.approx(tuple(by_scipy), abs=0.1)


VALUES = np.array([1.0, 2.0, 5.0, 4.0, 4.0, 7.0, 0.5, 3.0])
STARTS, SIZES = np.array([0, 1, 3, 6]), np.array([1, 2, 3, 2])


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        ("mean", [25.5 / 7, 19.5 / 6, 11.5 / 5, 23 / 6]),
        ("median", [4.0, 3.5, 2.0, 4.0]),
        (lambda values: values.max(), [7.0, 7.0, 5.0, 7.0]),
    ],
    ids=["mean", "median", "largest"],
)
def test_each_user_is_left_out_whole(statistic, expected):
    assert without_each(VALUES, STARTS, SIZES, statistic) == pytest.approx(np.array(expected))


def test_a_paired_difference_is_that_of_one_sample_of_differences():
    second = SKEWED[::-1] * 0.5
    found = paired_interval(SKEWED, second, np.arange(12), seed=1, draws=40_000, method="bca")
    by_scipy = stats.bootstrap(
        (SKEWED - second,), np.mean, n_resamples=40_000, method="BCa",
        rng=np.random.default_rng(2),
    ).confidence_interval  # fmt: skip
    assert as_pair(found) == pytest.approx(tuple(by_scipy), abs=0.06)


def test_what_has_no_bounds_says_why():
    found = bootstrap_interval(np.full(5, 0.1), np.arange(5), seed=1, method="bca")
    assert found == NoInterval("no single user changes the statistic, and BCa has no bounds then")
    found = bca_interval(
        np.array([1.0, 2.0, 2.5]), (3.0, np.array([3.0, 1.0])), 0.95, of="the statistic"
    )
    assert found == NoInterval(
        "all draws lie on one side of the statistic, and BCa has no bounds then"
    )
    found = bca_interval(
        np.array([1.0, 2.0]), (1.5, np.array([np.nan, 1.0])), 0.95, of="the statistic"
    )
    assert found.reason.startswith("the statistic has no value without one of the users")
