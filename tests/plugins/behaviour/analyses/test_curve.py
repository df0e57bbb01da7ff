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


def spread(many, *, low=0.2, high=3.6, seed=0):
    return np.random.default_rng(seed).uniform(low, high, many)


def bowl(entropy, lowest, *, noise=0.0):
    """Cross-entropies that are lowest at one entropy."""
    normal = np.random.default_rng(1).normal(size=len(entropy))
    return 2 + 0.3 * (entropy - lowest) ** 2 + noise * normal


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


@pytest.mark.parametrize(("sign", "end", "place"), [(1, "left", 0), (-1, "right", -1)])
def test_a_curve_that_only_rises_or_falls_is_lowest_at_an_end(sign, end, place):
    entropy = spread(2000)
    cross = 4 + sign * entropy
    curve = curve_of(entropy, cross, edges_of(entropy))
    assert (curve.place, curve.lowest) == (end, pytest.approx(curve.means[0][place]))
    drawn = resampled(entropy, cross, edges_of(entropy), seed=0, draws=50)
    assert drawn.shares == {"left": 0.0, "inside": 0.0, "right": 0.0, end: 1.0}
    assert (drawn.low, drawn.high) == (curve.lowest, curve.lowest)
    assert drawn.agrees(curve)


def test_fewer_than_35_bins_have_no_curve():
    for many in (FEWEST - 1, FEWEST):
        # One prompt in each of as many bins, the first and the last of all among them.
        entropy = (np.linspace(0, BINS - 1, many).round() + 0.5) / BINS
        entropy[[0, -1]] = 0, 1
        found = curve_of(entropy, entropy, edges_of(entropy))
        assert found.bins == many
        assert isinstance(found, NoCurve if many < FEWEST else Curve)
    assert curve_of(np.empty(0), np.empty(0), edges_of(entropy)) == NoCurve(bins=0)


def test_resamples_are_curves_through_the_prompts_with_exponential_weights():
    entropy = spread(400)
    cross = bowl(entropy, 2.0, noise=0.4)
    edges = edges_of(entropy)
    random = np.random.Generator(np.random.PCG64(7))
    # A prompt that counts twice is there twice: weights in hundredths are copies of prompts.
    points = []
    for _ in range(60):
        copies = np.maximum((100 * random.standard_exponential(400)).round().astype(int), 1)
        points.append(curve_of(np.repeat(entropy, copies), np.repeat(cross, copies), edges).lowest)
    found = resampled(entropy, cross, edges, seed=7, draws=60)
    assert [found.low, found.high] == pytest.approx(np.quantile(points, [0.025, 0.975]), abs=0.01)
    assert sum(found.shares.values()) == pytest.approx(1)


def test_an_interval_holds_its_own_point_where_most_bins_hold_one_prompt():
    left, right = np.linspace(0, 1, 60), spread(3000, low=1.0, high=3.0)
    entropy = np.concatenate((left, right))
    for lowest in (0, 1.0, 1.5, 2.0):
        cross = bowl(entropy, lowest, noise=0.2)
        curve = curve_of(entropy, cross, edges_of(entropy))
        drawn = resampled(entropy, cross, edges_of(entropy), seed=0, draws=300)
        assert drawn.low <= curve.lowest <= drawn.high


def test_a_slope_is_that_of_least_squares():
    x = spread(50)
    y = 3 * x + bowl(x, 1)
    assert slope_of(x, y) == pytest.approx(np.polyfit(x, y, 1)[0])
    assert np.isnan(slope_of(np.ones(3), np.arange(3.0)))
