"""The bootstrap of a difference between two columns of values for the same units.

Imports numpy: import it where it is used.
"""

from __future__ import annotations

import numpy as np

from harness.scoring.stats.bootstrap import blocks_of_draws, units_of
from harness.scoring.stats.intervals import (
    Floats,
    Integers,
    Interval,
    Measured,
    Method,
    NoInterval,
    bounds,
)
from harness.scoring.stats.statistic import Statistic, statistic_of, without_each


def paired_interval(
    first: Floats,
    second: Floats,
    clusters: Integers,
    *,
    seed: int,
    statistic: Statistic = "mean",
    draws: int = 2000,
    confidence: float = 0.95,
    method: Method = "percentile",
) -> Interval | NoInterval:
    """The interval of the first statistic minus the second, with the same users drawn for both."""
    if draws < 1:
        return NoInterval("no draws were asked for")
    sizes = np.unique(clusters, return_counts=True)[1]
    if len(sizes) < 2:
        return NoInterval("fewer than two users in common: there is nothing to draw from")
    order = np.argsort(clusters, kind="stable")
    first, second = first[order], second[order]
    random = np.random.Generator(np.random.PCG64(seed))
    drawn = blocks_of_draws(len(sizes), draws, random, dtype=np.uint32)
    one_each = len(sizes) == len(first)
    if one_each and statistic == "mean":
        parts = [(first - second)[users].mean(axis=1) for users in drawn]
    elif one_each and statistic == "median":
        parts = [_medians(first, users) - _medians(second, users) for users in drawn]
    else:
        parts = [_any(first, second, sizes, users, statistic) for users in drawn]

    def measured() -> Measured:
        starts = np.cumsum(sizes) - sizes
        ours, theirs = (without_each(each, starts, sizes, statistic) for each in (first, second))
        value = statistic_of(first, statistic) - statistic_of(second, statistic)
        return Measured(value=value, without=ours - theirs)

    return bounds(
        np.concatenate(parts),
        measured,
        method=method,
        confidence=confidence,
        of="the difference",
    )


def _medians(values: Floats, drawn: Integers) -> Floats:
    """The median of each row of a block; ranks are sorted, which is faster than sorting values."""
    order = np.argsort(values, kind="stable")
    place = np.empty(len(values), dtype=np.uint32)
    place[order] = np.arange(len(values), dtype=np.uint32)
    places = place[drawn]
    places.sort(axis=1)
    middle = places[:, [(len(values) - 1) // 2, len(values) // 2]]
    medians: Floats = values[order][middle].mean(axis=1)
    return medians


def _any(
    first: Floats, second: Floats, sizes: Integers, drawn: Integers, statistic: Statistic
) -> Floats:
    """The difference for each row of a block of users, with all units of these users."""
    starts = np.cumsum(sizes) - sizes
    found = []
    for users in drawn:
        units = units_of(users, starts, sizes)
        found.append(statistic_of(first[units], statistic) - statistic_of(second[units], statistic))
    return np.asarray(found, dtype=np.float64)
