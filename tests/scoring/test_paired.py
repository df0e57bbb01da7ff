import random
import statistics
from collections.abc import Callable

import numpy as np
import pytest

from harness.scoring.stats import Interval, NoInterval, paired_interval


def by_hand(
    users: list[list[tuple[float, float]]], statistic: Callable[[list[float]], float]
) -> tuple[float, float]:
    """The 95% interval of the paired difference in plain Python with another generator."""
    generator = random.Random(3)
    found = []
    for _ in range(10_000):
        drawn = [pair for _ in users for pair in generator.choice(users)]
        ours, theirs = zip(*drawn, strict=True)
        found.append(statistic(list(ours)) - statistic(list(theirs)))
    found.sort()
    return found[250], found[9750]


def pairs_of(user_count: int, *, units: int) -> list[list[tuple[float, float]]]:
    generator = random.Random(11)
    return [
        [
            (base + generator.random(), base + 0.2 * generator.random())
            for _ in range(1 + number % units)
        ]
        for number in range(user_count)
        for base in [3 * generator.random()]
    ]


def flat(users: list[list[tuple[float, float]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pairs = [pair for user in users for pair in user]
    owners = [number for number, user in enumerate(users) for _ in user]
    return np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]), np.array(owners)


@pytest.mark.parametrize("units", [1, 3])
@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_the_interval_is_that_of_resampling_users_for_both_by_hand(
    units: int, statistic: str
) -> None:
    users = pairs_of(60, units=units)
    plain = statistics.fmean if statistic == "mean" else statistics.median
    found = paired_interval(*flat(users), seed=1, statistic=statistic, draws=10_000)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == pytest.approx(by_hand(users, plain), abs=0.02)


def test_a_statistic_of_ones_own_is_taken_over_all_units_drawn() -> None:
    first = np.array([1.0, 1.0, 4.0])
    found = paired_interval(
        first, first / 2, np.array([0, 0, 1]), seed=0, statistic=lambda values: float(values.max())
    )
    assert isinstance(found, Interval)
    assert (found.low, found.high) == (0.5, 2.0)


def test_the_order_of_units_and_the_process_change_nothing() -> None:
    first, second, owners = flat(pairs_of(30, units=1))
    backwards = paired_interval(first[::-1], second[::-1], owners[::-1], seed=4, statistic="median")
    forwards = paired_interval(first, second, owners, seed=4, statistic="median")
    assert backwards == forwards
    assert forwards != paired_interval(first, second, owners, seed=5, statistic="median")


def test_a_statistic_without_a_value_gives_no_interval() -> None:
    values = np.array([1.0, 2.0])
    found = paired_interval(
        values, values, np.arange(2), seed=0, statistic=lambda values: float("nan"), draws=10
    )
    assert found == NoInterval("the difference has no value in 10 of 10 draws")
