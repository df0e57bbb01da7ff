import itertools
import math

import numpy as np
import pytest
from scipy import stats

from harness.scoring.stats import PValue, Undefined, holm, paired_p

FIRST = np.array([0.9, 0.7, 0.8, 0.4, 0.95, 0.6])
SECOND = np.array([0.5, 0.75, 0.3, 0.35, 0.6, 0.1])


@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_all_exchanges_agree_with_scipy(statistic):
    by_scipy = stats.permutation_test(
        (FIRST, SECOND), lambda a, b: statistic(a) - statistic(b), permutation_type="samples",
        vectorized=False, n_resamples=np.inf,
    )  # fmt: skip
    found = paired_p(
        FIRST, SECOND, np.arange(6), seed=0,
        statistic="mean" if statistic is np.mean else "median",
    )  # fmt: skip
    assert found == PValue(value=pytest.approx(by_scipy.pvalue), ways=64, exact=True)


def test_many_users_are_drawn_and_agree_with_scipy():
    generator = np.random.default_rng(5)
    second = generator.normal(size=40)
    first = second + generator.normal(0.3, 1.0, size=40)
    by_scipy = stats.permutation_test(
        (first, second), lambda a, b, axis: (a - b).mean(axis=axis), vectorized=True,
        permutation_type="samples", n_resamples=200_000, rng=np.random.default_rng(1),
    )  # fmt: skip
    found = paired_p(first, second, np.arange(40), seed=3, assignments=50_000)
    assert (found.ways, found.exact) == (50_000, False)
    assert found.value == pytest.approx(by_scipy.pvalue, abs=0.005)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_all_units_of_a_user_are_exchanged_together(statistic):
    owners = np.array([7, 4, 7, 9, 4, 7])
    plain = {"mean": np.mean, "median": np.median}[statistic]
    found, reached = abs(plain(FIRST) - plain(SECOND)), 0
    for swapped in itertools.product([False, True], repeat=3):
        swap = np.array([dict(zip((4, 7, 9), swapped, strict=True))[owner] for owner in owners])
        ours, theirs = np.where(swap, SECOND, FIRST), np.where(swap, FIRST, SECOND)
        reached += abs(plain(ours) - plain(theirs)) >= found - 1e-12
    expected = PValue(value=reached / 8, ways=8, exact=True)
    assert paired_p(FIRST, SECOND, owners, seed=0, statistic=statistic) == expected


def test_users_that_are_alike_on_both_sides_change_nothing_and_a_drawn_p_is_never_zero():
    first = np.array([3.0, 2.0, 1.0, *[0.5] * 30])
    second = np.array([0.0, 0.0, 0.0, *[0.5] * 30])
    found = paired_p(first, second, np.arange(33), seed=0)
    assert found == PValue(value=0.25, ways=8, exact=True)
    assert paired_p(FIRST, FIRST, np.arange(6), seed=0) == PValue(value=1.0, ways=1, exact=True)
    found = paired_p(np.full(30, 1.0), np.zeros(30), np.arange(30), seed=0, assignments=99)
    assert found == PValue(value=0.01, ways=99, exact=False)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_blocks_change_nothing(monkeypatch, statistic):
    first, owners = np.arange(40) % 7 / 7.0, np.arange(40) // 2
    second = first[::-1] * 0.9
    whole = paired_p(first, second, owners, seed=2, statistic=statistic, assignments=500)
    monkeypatch.setattr("harness.scoring.stats.permutation._CELLS", 640)
    parts = paired_p(first, second, owners, seed=2, statistic=statistic, assignments=500)
    assert parts.ways == whole.ways == 500
    assert parts.value == pytest.approx(whole.value, abs=0.06)
    one, other = (paired_p(FIRST, SECOND, np.arange(6), seed=seed) for seed in (0, 9))
    assert one == other


def test_what_cannot_be_tested_has_no_p():
    values = np.array([1.0, 2.0])
    found = paired_p(values, values + 1, np.zeros(2), seed=0)
    assert found == Undefined("fewer than two users in common: there is nothing to exchange")

    found = paired_p(FIRST, SECOND, np.arange(6), seed=0, statistic=lambda values: math.nan)
    assert found == Undefined("the difference has no value")


def test_holm_by_hand():
    # In order 0.005 · 4, 0.01 · 3, 0.03 · 2, 0.04 · 1, none smaller than the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.6, 0.7]) == (1.0, 1.0)
    assert holm([]) == ()
