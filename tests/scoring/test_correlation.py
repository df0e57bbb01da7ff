import math

import numpy as np
import pytest
from scipy import stats

from harness.scoring.stats import (
    Interval,
    NoInterval,
    Undefined,
    cohen_kappa,
    fisher_interval,
    kappa_interval,
    kendall_tau_b,
    pearson,
    relation_interval,
    spearman,
)


def test_correlations_by_hand():
    # Deviations -1 0 1 and -4/3 -1/3 5/3: 3 / √(2 · 42/9).
    assert pearson([1, 2, 3], [1, 2, 4]) == pytest.approx(3 / math.sqrt(2 * 42 / 9))
    # Six pairs; x ties one and y ties one, not the same: of the other four one agrees and three
    # differ. τ-b = (1 - 3) / √(5 · 5).
    assert kendall_tau_b([1, 1, 2, 3], [1, 2, 2, 0.5]) == pytest.approx(-2 / 5)
    # Ranks 1 2 3 4 against 1 3 2 4: 1 - 6 · 2 / (4 · 15).
    assert spearman([1, 2, 3, 4], [0.1, 70, 5, 900]) == pytest.approx(0.8)
    # Ranks 1, 2.5, 2.5, 4 against 1 2 3 4: Pearson's r of the ranks is 4.5 / √(4.5 · 5).
    assert spearman([1, 2, 2, 9], [1, 2, 3, 4]) == pytest.approx(4.5 / math.sqrt(22.5))


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        ([], [], "fewer than two pairs"),
        ([1.0], [2.0], "fewer than two pairs"),
        ([3.0, 3.0], [1.0, 2.0], "all values of one side are the same"),
        ([1.0, 2.0], [3.0, 3.0], "all values of one side are the same"),
    ],
)
@pytest.mark.parametrize("correlation", [pearson, spearman, kendall_tau_b])
@pytest.mark.filterwarnings("error")
def test_a_correlation_that_cannot_be_has_its_reason(x, y, why, correlation):
    assert correlation(x, y) == Undefined(why)


def test_pearsons_interval_by_fishers_z_is_scipys_and_has_its_limits():
    by_scipy = stats.pearsonr([1, 2, 3, 4, 5, 7], [2, 1, 4, 3, 6, 5])
    expected = by_scipy.confidence_interval(0.9)
    found = fisher_interval(float(by_scipy.statistic), 6, confidence=0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert fisher_interval(0.5, 3) == NoInterval("fewer than four pairs")
    assert fisher_interval(1.0, 9) == NoInterval("the pairs lie on one line")


def paired(count):
    generator = np.random.default_rng(4)
    x = generator.normal(size=count)
    return x, 0.6 * x + generator.normal(size=count)


def test_bootstrapped_correlations_agree_with_scipy():
    x, y = paired(60)
    by_scipy = stats.bootstrap(
        (x, y), lambda a, b, axis: stats.pearsonr(a, b, axis=axis).statistic, paired=True,
        n_resamples=6000, method="BCa",
        rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    found = relation_interval(x, y, range(60), pearson, seed=2, draws=6000, method="bca")
    assert (found.low, found.high) == pytest.approx(tuple(by_scipy), abs=0.015)


def test_the_pairs_of_a_user_are_drawn_together():
    # Two users whose own pairs all lie on a rising line, far apart: each draw has one or both, and
    # three values of τ-b can come of it.
    x, y = [1.0, 2.0, 11.0, 12.0], [1.0, 2.0, -9.0, -8.0]
    found = relation_interval(x, y, ["a", "a", "b", "b"], kendall_tau_b, seed=0, draws=400)
    # Both: two pairs rise and four fall, -1/3; one twice: four rise, two are tied on both sides.
    assert found == Interval(pytest.approx(-1 / 3), pytest.approx(1.0))


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_kappas_interval_from_tables_is_that_from_labels(method):
    generator = np.random.default_rng(3)
    first = generator.integers(0, 3, size=90)
    second = np.where(generator.random(90) < 0.6, first, generator.integers(0, 3, size=90))
    users = [f"u{number % 25}" for number in range(90)]
    by_labels = relation_interval(
        first, second, users, cohen_kappa, seed=5, draws=300, method=method
    )
    by_tables = kappa_interval(
        first.tolist(), second.tolist(), users, seed=5, draws=300, method=method
    )
    assert (by_tables.low, by_tables.high) == pytest.approx((by_labels.low, by_labels.high))


def test_draws_without_a_value_leave_no_interval():
    found = kappa_interval("yn", "yn", "ab", seed=0, draws=50)
    assert found.reason.startswith("κ has no value in ")
    for given in ("yn", "yn", "aa"), ("", "", ""):
        assert kappa_interval(*given, seed=0) == NoInterval(
            "fewer than two users: there is nothing to draw from"
        )
    found = relation_interval([1, 2], [1, 2], "ab", spearman, seed=0, draws=50)
    assert found.reason.startswith("the statistic has no value in ")
