import functools
import math
import random
import statistics
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from harness.scoring.stats import Interval, NoInterval, bootstrap_interval, statistic_of


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
def test_it_agrees_with_resampling_by_hand(users, statistic, by_hand) -> None:
    values, owners = flat(users)
    found = bootstrap_interval(values, owners, seed=3, statistic=statistic, draws=10_000)
    close = 0.02 if users == UNEVEN else 0.05
    assert as_pair(found) == pytest.approx(resampled_by_hand(users, by_hand), abs=close)


def test_a_median_is_that_of_the_very_units_drawn() -> None:
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


def test_the_order_of_units_does_not_matter_to_what_a_user_is() -> None:
    values = np.array([1.0, 10.0, 2.0, 20.0, 3.0, 30.0])
    owners = np.array([7, 4, 7, 4, 7, 4])
    straight = bootstrap_interval(np.sort(values), np.array([0, 0, 0, 1, 1, 1]), seed=1)
    assert {*as_pair(bootstrap_interval(values, owners, seed=1))} == {2.0, 20.0}
    assert {*as_pair(straight)} == {2.0, 20.0}


def test_means_drawn_in_blocks_agree_with_resampling_by_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.scoring.stats.bootstrap._BLOCK", 3)
    monkeypatch.setattr("harness.scoring.stats.bootstrap._CELLS", 1000)
    values, owners = flat(UNEVEN)
    found = as_pair(bootstrap_interval(values, owners, seed=3, draws=10_000))
    assert found == pytest.approx(resampled_by_hand(UNEVEN, statistics.fmean), abs=0.02)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0]])
def test_one_user_has_no_interval(values: list[float]) -> None:
    found = bootstrap_interval(np.array(values), np.zeros(len(values), dtype=int), seed=1)
    assert found == NoInterval("fewer than two users: there is nothing to draw from")


def test_statistics() -> None:
    column = np.array([4.0, 1.0, 1.0])
    assert statistic_of(column, "mean") == 2.0
    assert statistic_of(column, "median") == 1.0
    assert statistic_of(column, lambda values: values.sum() * 2) == 12.0
    assert math.isnan(statistic_of(column[:0], "mean"))
    assert math.isnan(statistic_of(column, lambda values: 1 // 0))
