"""The curve and its lowest point, against plain numpy."""

from itertools import pairwise

import numpy as np
import pytest
from harness_behaviour.curve import (
    BINS,
    FEWEST,
    ORDER,
    STEPS,
    WINDOW,
    Curve,
    NoCurve,
    curve_of,
    edges_of,
    resampled,
    slope_of,
)

from harness.scoring.stats.bootstrap import blocks_of_draws


def spread(many, *, low=0.2, high=3.6, seed=0):
    return np.random.default_rng(seed).uniform(low, high, many)


def bowl(entropy, lowest, *, noise=0.0):
    """Cross-entropies that are lowest at one entropy."""
    return (
        2
        + 0.3 * (entropy - lowest) ** 2
        + noise * np.random.default_rng(1).normal(size=len(entropy))
    )


def in_bins(many):
    """One prompt in each of as many bins, the first and the last of all among them."""
    places = np.linspace(0, BINS - 1, many).round() + 0.5
    places[[0, -1]] = 0, BINS
    return places / BINS


def by_hand(entropy, cross, edges, window):
    """The ends and the lowest point of the curve, one bin and one window after the other."""
    bins = [
        (entropy >= low) & (entropy < high if high < edges[-1] else entropy <= high)
        for low, high in pairwise(edges)
    ]
    filled = [number for number, own in enumerate(bins) if own.any()]
    centres = [(edges[number] + edges[number + 1]) / 2 for number in filled]
    means = [cross[bins[number]].mean() for number in filled]
    starts = range(len(filled) - WINDOW + 1)
    y = np.array([np.mean(means[start : start + WINDOW]) for start in starts])
    if window == "centred":
        x = np.array([np.mean(centres[start : start + WINDOW]) for start in starts])
    else:
        x = np.array([centres[start + WINDOW - 1] for start in starts])
    standard = (x - x.mean()) / x.std()
    fitted = np.polynomial.Polynomial.fit(standard, y, ORDER, domain=[-1, 1])
    grid = np.linspace(standard[0], standard[-1], STEPS)
    found = fitted(grid)
    return x[0], x[-1], grid[found.argmin()] * x.std() + x.mean(), found


@pytest.mark.parametrize("window", ["centred", "trailing"])
@pytest.mark.parametrize("many", [80, 300, 3000])
def test_a_curve_is_what_numpy_finds_step_by_step(many, window):
    entropy = spread(many)
    cross = bowl(entropy, 1.7, noise=0.3)
    edges = edges_of(entropy)
    curve = curve_of(entropy, cross, edges, window=window)
    first, last, lowest, course = by_hand(entropy, cross, edges, window)
    assert [*curve.course[0][[0, -1]]] == pytest.approx([first, last])
    assert curve.course[1] == pytest.approx(course)
    assert curve.lowest == pytest.approx(lowest)


@pytest.mark.parametrize("lowest", [1.0, 1.5, 2.0, 2.5])
def test_a_known_lowest_point_is_found(lowest):
    entropy = spread(2000)
    cross = bowl(entropy, lowest, noise=0.15)
    curve = curve_of(entropy, cross, edges_of(entropy))
    assert curve.end is None
    assert curve.lowest == pytest.approx(lowest, abs=0.1)


def test_a_trailing_mean_moves_the_point_to_the_right():
    entropy = spread(2000, low=0.8)
    cross = bowl(entropy, 2.0, noise=0.1)
    found = [
        curve_of(entropy, cross, edges_of(entropy), window=window).lowest
        for window in ("centred", "trailing")
    ]
    assert found[1] - found[0] == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize(("sign", "end", "place"), [(1, "left", 0), (-1, "right", -1)])
def test_a_curve_that_only_rises_or_falls_is_lowest_at_an_end(sign, end, place):
    entropy = spread(2000)
    cross = 4 + sign * entropy
    curve = curve_of(entropy, cross, edges_of(entropy))
    assert (curve.end, curve.lowest) == (end, pytest.approx(curve.means[0][place]))
    drawn = resampled(entropy, cross, edges_of(entropy), seed=0, draws=50)
    assert (drawn.left, drawn.right) == ((1.0, 0.0) if end == "left" else (0.0, 1.0))
    assert (drawn.low_at_end, drawn.high_at_end) == (end == "left", end == "right")


def test_fewer_than_35_bins_have_no_curve():
    for many in (FEWEST - 1, FEWEST):
        entropy = in_bins(many)
        found = curve_of(entropy, entropy, edges_of(entropy))
        assert found.bins == many
        assert isinstance(found, NoCurve if many < FEWEST else Curve)
    assert curve_of(np.empty(0), np.empty(0), edges_of(entropy)) == NoCurve(bins=0)


def test_resamples_are_curves_through_what_is_drawn_in_bins_that_stay():
    entropy = spread(400)
    cross = bowl(entropy, 2.0, noise=0.4)
    edges = edges_of(entropy)
    random = np.random.Generator(np.random.PCG64(7))
    [drawn] = blocks_of_draws(len(entropy), 60, random, dtype=np.uint32)
    curves = [curve_of(entropy[one], cross[one], edges) for one in drawn]
    points = [curve.lowest for curve in curves]
    found = resampled(entropy, cross, edges, seed=7, draws=60)
    assert [found.low, found.high] == pytest.approx(np.quantile(points, [0.025, 0.975]))
    assert found.left == np.mean([curve.end == "left" for curve in curves])
    assert found.without == 0


def test_resamples_without_a_curve_are_counted_and_left_out():
    entropy = np.repeat(in_bins(41), 2)
    edges = edges_of(entropy)
    random = np.random.Generator(np.random.PCG64(0))
    [drawn] = blocks_of_draws(len(entropy), 400, random, dtype=np.uint32)
    none = [isinstance(curve_of(entropy[one], entropy[one], edges), NoCurve) for one in drawn]
    found = resampled(entropy, entropy, edges, seed=0, draws=400)
    assert found.without == pytest.approx(np.mean(none))
    assert 0 < found.without < 0.5


def test_there_is_no_interval_where_most_resamples_have_no_curve():
    few = np.repeat(in_bins(FEWEST + 2), 2)
    assert resampled(few, few, edges_of(few), seed=0, draws=20) is None


def test_an_interval_that_does_not_hold_its_own_point_is_known():
    # Most of the bins at the left hold one prompt, which most resamples lack.
    left, right = np.linspace(0, 1, 60), spread(3000, low=1.0, high=3.0)
    entropy = np.concatenate((left, right))
    cross = 3 + entropy
    edges = edges_of(entropy)
    curve = curve_of(entropy, cross, edges)
    drawn = resampled(entropy, cross, edges, seed=0, draws=500)
    assert curve.end == "left"
    assert not drawn.holds(curve.lowest)
    assert drawn.holds((drawn.low + drawn.high) / 2)


def test_a_slope_is_that_of_least_squares():
    x = spread(50)
    y = 3 * x + bowl(x, 1)
    assert slope_of(x, y) == pytest.approx(np.polyfit(x, y, 1)[0])
    assert np.isnan(slope_of(np.ones(3), np.arange(3.0)))
