import random
import statistics
from typing import Any

import numpy as np
import pytest

from harness.scoring.stats import Interval, NoInterval, paired_interval


@pytest.mark.parametrize("statistic", ["mean", "median", lambda values: float(values.max())])
def test_users_are_drawn_with_all_their_units_for_both(statistic: Any) -> None:
    """One user twice: 1 - 1/2 of each statistic, or 4 - 2 of the other; both lie between."""
    first = np.array([1.0, 1.0, 4.0])
    found = paired_interval(first, first / 2, np.array([0, 0, 1]), seed=0, statistic=statistic)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == (0.5, 2.0)


def test_medians_of_one_unit_each_agree_with_resampling_by_hand() -> None:
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
    assert isinstance(interval, Interval)
    assert (interval.low, interval.high) == pytest.approx((found[250], found[9750]), abs=0.03)


def test_a_statistic_without_a_value_gives_no_interval() -> None:
    values = np.array([1.0, 2.0])
    found = paired_interval(
        values, values, np.arange(2), seed=0, statistic=lambda values: float("nan"), draws=10
    )
    assert found == NoInterval("the difference has no value in 10 of 10 draws")
