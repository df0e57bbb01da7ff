"""The curve of cross-entropy over entropy, its lowest point, and resamples of both.

The axis of entropy has 200 equal bins, the same for all models. The means of the bins that hold a
prompt are smoothed by a moving mean over 30 of them, and a polynomial of order four is fitted to
these. Its lowest point is the paper's inflection point. Imports numpy: import this module where it
is used.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Window: TypeAlias = Literal["centred", "trailing"]
Place: TypeAlias = Literal["left", "inside", "right"]
"""Where a curve is lowest: at one of its ends, or between them."""

BINS = 200
WINDOW = 30
FEWEST = 35
"""Bins with a prompt that a curve has at least."""

ORDER = 4
STEPS = 1_000
"""The places between the ends of a curve where its lowest point is looked for."""


@dataclass(frozen=True, kw_only=True)
class NoCurve:
    """The number of bins with a prompt, which are too few for a curve."""

    bins: int


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A fitted curve: the moving means behind it, its course, and its lowest point.

    A lowest point at an end of the curve is no more than a bound.
    """

    bins: int
    means: tuple[Floats, Floats]
    course: tuple[Floats, Floats]
    lowest: float
    place: Place


@dataclass(frozen=True, kw_only=True)
class Resampled:
    """The lowest points of resamples: their interval, and the share of them at each place.

    `confidence` is the share of points within the interval.
    """

    low: float
    high: float
    shares: dict[Place, float]
    confidence: float

    def agrees(self, curve: Curve) -> bool:
        """Whether enough resamples are lowest where the curve is: left, inside or right."""
        return self.shares[curve.place] >= self.confidence


class Axis:
    """The prompts that curves run through, by their entropies.

    `bins` is the number of bins with a prompt; without enough of them, there is no curve. `steps`
    are the entropies between the ends of a curve, and moving means times `fit` are its heights.
    """

    def __init__(self, entropy: Floats, edges: Floats, window: Window) -> None:
        bins = np.clip(np.searchsorted(edges, entropy, side="right") - 1, 0, len(edges) - 2)
        filled, self._bin_of = np.unique(bins, return_inverse=True)
        self.bins = len(filled)
        if self.bins < FEWEST:
            return
        centres = (edges[filled] + edges[filled + 1]) / 2.0
        self.means = _moving(centres) if window == "centred" else centres[WINDOW - 1 :]
        self.steps = np.linspace(self.means[0], self.means[-1], STEPS)
        middle, scale = self.means.mean(), self.means.std()
        powers, along = (
            np.vander((of - middle) / scale, ORDER + 1) for of in (self.means, self.steps)
        )
        self.fit = (along @ np.linalg.pinv(powers)).T

    def moved(self, cross: Floats, weights: Floats | None = None) -> Floats:
        """The moving means of the cross-entropies of the prompts, each with its weight."""
        weights = np.ones_like(cross) if weights is None else weights
        sums = np.bincount(self._bin_of, weights * cross)
        return _moving(sums / np.bincount(self._bin_of, weights))


def edges_of(entropy: Floats) -> Floats:
    """The ends of the bins between the lowest and the highest entropy."""
    return np.linspace(entropy.min(), entropy.max(), BINS + 1)


def curve_of(
    entropy: Floats, cross: Floats, edges: Floats, *, window: Window = "centred"
) -> Curve | NoCurve:
    """The curve through some prompts."""
    axis = Axis(entropy, edges, window)
    if axis.bins < FEWEST:
        return NoCurve(bins=axis.bins)
    moved = axis.moved(cross)
    course = moved @ axis.fit
    lowest = int(course.argmin())
    return Curve(
        bins=axis.bins,
        means=(axis.means, moved),
        course=(axis.steps, course),
        lowest=float(axis.steps[lowest]),
        place=_place(lowest),
    )


def resampled(
    entropy: Floats,
    cross: Floats,
    edges: Floats,
    *,
    window: Window = "centred",
    seed: int,
    draws: int = 2000,
    confidence: float = 0.95,
) -> Resampled:
    """The lowest points of curves through the same prompts with random weights.

    The weights are exponential, which makes this the Bayesian bootstrap: every prompt has a part in
    every resample, so that bins, windows and ends are those of the curve itself.
    """
    axis = Axis(entropy, edges, window)
    random = np.random.Generator(np.random.PCG64(seed))
    moved = [axis.moved(cross, random.standard_exponential(len(cross))) for _ in range(draws)]
    lowest = (np.array(moved) @ axis.fit).argmin(axis=1)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(axis.steps[lowest], [tail, 1.0 - tail]).tolist()
    places = Counter(map(_place, lowest.tolist()))
    return Resampled(
        low=low,
        high=high,
        shares={place: places[place] / draws for place in get_args(Place)},
        confidence=confidence,
    )


def slope_of(x: Floats, y: Floats) -> float:
    """The slope of the line with the least squares through pairs; NaN if all x are the same."""
    apart = x - x.mean()
    square = float(apart @ apart)
    return float(apart @ y) / square if square else float("nan")


def _place(lowest: int) -> Place:
    return "left" if lowest == 0 else "right" if lowest == STEPS - 1 else "inside"


def _moving(values: Floats) -> Floats:
    return np.convolve(values, np.full(WINDOW, 1.0 / WINDOW), mode="valid")
