"""The curve of cross-entropy over entropy, its lowest point, and resamples of both.

The axis of entropy has 200 equal bins, the same for all models and resamples. The means of the bins
that hold a prompt are smoothed by a moving mean over 30 of them, and a polynomial of order four is
fitted to these. Its lowest point is the paper's inflection point. Imports numpy: import this module
where it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.scoring.stats.bootstrap import blocks_of_draws

Floats: TypeAlias = NDArray[np.float64]
Window: TypeAlias = Literal["centred", "trailing"]
End: TypeAlias = Literal["left", "right"]

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

    The curve is lowest at `lowest`; if that is one of its ends, `end` says which, and `lowest` is
    no more than a bound.
    """

    bins: int
    means: tuple[Floats, Floats]
    course: tuple[Floats, Floats]
    lowest: float
    end: End | None


@dataclass(frozen=True, kw_only=True)
class Resampled:
    """The lowest points of resamples: their interval, and the shares of resamples at an end.

    An end counts as the lowest point of its resample. `without` is the share of resamples with too
    few bins for a curve, which have no part in the rest. `tail` is the share of points beyond
    either bound.
    """

    low: float
    high: float
    left: float
    right: float
    without: float
    tail: float

    @property
    def low_at_end(self) -> bool:
        """Whether the lower bound is a left end, beyond which the point may lie."""
        return self.left > self.tail

    @property
    def high_at_end(self) -> bool:
        """Whether the upper bound is a right end, beyond which the point may lie."""
        return self.right > self.tail

    def holds(self, point: float) -> bool:
        """Whether a point lies within the interval."""
        return self.low <= point <= self.high


def edges_of(entropy: Floats) -> Floats:
    """The ends of the bins between the lowest and the highest entropy."""
    return np.linspace(entropy.min(), entropy.max(), BINS + 1)


def curve_of(
    entropy: Floats, cross: Floats, edges: Floats, *, window: Window = "centred"
) -> Curve | NoCurve:
    """The curve through some prompts."""
    places, bins = _bins(entropy, edges)
    if len(places) < FEWEST:
        return NoCurve(bins=len(places))
    counts, sums = np.bincount(bins), np.bincount(bins, weights=cross)
    means = _moving(counts[None, :], sums[None, :], places, window)
    x, y = _fitted(*means)
    lowest = int(y[0].argmin())
    return Curve(
        bins=len(places),
        means=(means[0][0], means[1][0]),
        course=(x[0], y[0]),
        lowest=float(x[0, lowest]),
        end={0: "left", STEPS - 1: "right"}.get(lowest),  # type: ignore[arg-type]
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
) -> Resampled | None:
    """The lowest points of curves through as many prompts drawn with replacement, in the same bins.

    None if fewer than half of the resamples have a curve.
    """
    places, bins = _bins(entropy, edges)
    random = np.random.Generator(np.random.PCG64(seed))
    lowest, ends = [np.empty(0)], [np.empty(0, dtype=int)]
    for drawn in blocks_of_draws(len(bins), draws, random, dtype=np.uint32):
        rows, many = np.arange(len(drawn))[:, None], len(places)
        cells = (rows * many + bins[drawn]).ravel()
        shape = len(drawn), many
        counts = np.bincount(cells, minlength=rows.size * many).reshape(shape)
        sums = np.bincount(cells, weights=cross[drawn].ravel(), minlength=rows.size * many)
        enough = (counts > 0).sum(axis=1) >= FEWEST
        if enough.any():
            x, y = _fitted(*_moving(counts[enough], sums.reshape(shape)[enough], places, window))
            found = y.argmin(axis=1)
            lowest.append(np.take_along_axis(x, found[:, None], axis=1)[:, 0])
            ends.append(found)
    points, at = np.concatenate(lowest), np.concatenate(ends)
    if not len(points) or 2 * len(points) < draws:
        return None
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(points, [tail, 1.0 - tail])
    return Resampled(
        low=float(low),
        high=float(high),
        left=float((at == 0).mean()),
        right=float((at == STEPS - 1).mean()),
        without=1.0 - len(points) / draws,
        tail=tail,
    )


def slope_of(x: Floats, y: Floats) -> float:
    """The slope of the line with the least squares through pairs; NaN if all x are the same."""
    apart = x - x.mean()
    square = float(apart @ apart)
    return float(apart @ y) / square if square else float("nan")


def _bins(entropy: Floats, edges: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """The centres of the bins with a prompt, and the number of each prompt's bin among these."""
    bins = np.clip(np.searchsorted(edges, entropy, side="right") - 1, 0, len(edges) - 2)
    filled, numbers = np.unique(bins, return_inverse=True)
    return (edges[filled] + edges[filled + 1]) / 2.0, numbers


def _moving(
    counts: NDArray[np.intp], sums: Floats, places: Floats, window: Window
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The places and values of means over 30 bins with a prompt, and which means have all bins.

    There is a row for each row of counts and sums by bin. A mean stands at the mean place of its
    bins, a trailing one at the last of them.
    """
    empty = counts == 0
    order = np.argsort(empty, axis=1, kind="stable")
    means = np.where(empty, 0.0, sums / np.maximum(counts, 1))
    x, y = places[order], np.take_along_axis(means, order, axis=1)
    number = (~empty).sum(axis=1) - WINDOW + 1
    there = np.arange(x.shape[1] - WINDOW + 1) < number[:, None]
    at = _sums(x) / WINDOW if window == "centred" else x[:, WINDOW - 1 :]
    return at, _sums(y) / WINDOW, there


def _sums(values: Floats) -> Floats:
    """The sums of 30 neighbours in each row."""
    upto = np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))
    return upto[:, WINDOW:] - upto[:, :-WINDOW]


def _fitted(x: Floats, y: Floats, there: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The course of the polynomial of each row, at equal steps between its first and last mean."""
    many = there.sum(axis=1, keepdims=True)
    middle = (x * there).sum(axis=1, keepdims=True) / many
    apart = np.where(there, x - middle, 0.0)
    scale = np.sqrt((apart**2).sum(axis=1, keepdims=True) / many)
    powers = np.repeat((apart / scale)[:, :, None], ORDER + 1, axis=2)
    powers[:, :, 0] = there
    powers = np.multiply.accumulate(powers, axis=2)
    factors = np.linalg.pinv(powers) @ np.where(there, y, 0.0)[:, :, None]
    first = apart[:, :1]
    last = np.take_along_axis(apart, many - 1, axis=1)
    course = first + (last - first) * np.linspace(0.0, 1.0, STEPS)
    scaled, height = course / scale, np.zeros_like(course)
    for power in range(ORDER, -1, -1):
        height *= scaled
        height += factors[:, power]
    return course + middle, height
