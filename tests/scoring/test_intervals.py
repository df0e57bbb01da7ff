import numpy as np
import pytest
from scipy import stats

from harness.scoring.stats import Interval, NoInterval, bootstrap_interval, paired_interval
from harness.scoring.stats.bootstrap import Measured, bca_interval, interval_of, without_each

SKEWED = np.array([0.1, 0.4, 0.2, 3.0, 0.9, 0.3, 7.5, 1.1, 0.6, 0.2, 2.2, 0.5])


def as_pair(found):
    assert isinstance(found, Interval)
    return found.low, found.high


def test_draws_without_a_value_lie_beyond_both_bounds_by_hand():
    # A twentieth of 41 draws lies below the third: here of nothing, 0 and 1.
    assert as_pair(interval_of(np.array([np.nan, *range(40)]), 0.9, of="r")) == pytest.approx(
        (1, 38)
    )
    few = interval_of(np.array([np.nan] * 3 + [*range(38)]), 0.9, of="r")
    assert few == NoInterval("r has no value in 3 of 41 draws")


@pytest.mark.parametrize("statistic", [np.mean, np.median, np.std])
def test_the_bounds_of_the_same_draws_are_scipys(statistic):
    by_scipy = stats.bootstrap(
        (SKEWED,), statistic, n_resamples=999, method="BCa", confidence_level=0.9,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    without = np.array([statistic(np.delete(SKEWED, place)) for place in range(len(SKEWED))])
    found = bca_interval(
        by_scipy.bootstrap_distribution,
        Measured(value=float(statistic(SKEWED)), without=without),
        0.9,
        of="it",
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
    plain_found = bootstrap_interval(
        SKEWED, np.arange(12), seed=3, statistic=statistic, draws=40_000
    )
    assert as_pair(plain_found) != pytest.approx(tuple(by_scipy), abs=0.1) or statistic == "median"


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
        np.array([1.0, 2.0, 2.5]), Measured(3.0, np.array([3.0, 1.0])), 0.95, of="the statistic"
    )
    assert found == NoInterval(
        "all draws lie on one side of the statistic, and BCa has no bounds then"
    )
    found = bca_interval(
        np.array([1.0, 2.0]), Measured(1.5, np.array([np.nan, 1.0])), 0.95, of="the statistic"
    )
    assert isinstance(found, NoInterval)
    assert found.reason.startswith("the statistic has no value without one of the users")
