"""The bootstrap of a weighted sum of statistics, such as the mean over tasks, of the same users.

Imports numpy: import it where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.base.hashing import stable_int
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


@dataclass(frozen=True, kw_only=True)
class Part:
    """A statistic of some values, whose clusters are integers, and its weight in the sum."""

    values: Floats
    clusters: Integers
    statistic: Statistic
    weight: float


def part_of(
    units: Iterable[tuple[str, float]], *, statistic: Statistic = "mean", weight: float
) -> Part:
    """The part of some units, each given as its user and its value."""
    pairs = list(units)
    return Part(
        values=np.array([value for _, value in pairs]),
        clusters=np.array([stable_int(user) for user, _ in pairs], dtype=np.uint64),
        statistic=statistic,
        weight=weight,
    )


def interval_together(
    parts: Sequence[Part],
    *,
    seed: int,
    draws: int = 2000,
    confidence: float = 0.95,
    method: Method = "percentile",
) -> Interval | NoInterval:
    """The interval of the weighted sum, with the same users drawn for all parts."""
    if draws < 1:
        return NoInterval("no draws were asked for")
    users = np.unique(np.concatenate([part.clusters for part in parts]))
    if len(users) < 2:
        return NoInterval("fewer than two users: there is nothing to draw from")
    random = np.random.Generator(np.random.PCG64(seed))
    blocks = blocks_of_draws(len(users), draws, random, dtype=np.uint32)
    ordered = [_Ordered(part, users) for part in parts]
    drawn = []
    for block in blocks:
        times = np.stack([np.bincount(row, minlength=len(users)) for row in block]).astype(float)
        drawn.append(np.sum([part.of_draws(block, times) for part in ordered], axis=0))

    def measured() -> Measured:
        return Measured(
            value=sum(p.weight * statistic_of(p.values, p.statistic) for p in parts),
            without=np.sum([part.without_each() for part in ordered], axis=0),
        )

    return bounds(
        np.concatenate(drawn),
        measured,
        method=method,
        confidence=confidence,
        of="the mean",
    )


class _Ordered:
    """A part with its values ordered by user; each of all users has a place and a size in it."""

    def __init__(self, part: Part, users: Integers) -> None:
        owners = np.searchsorted(users, part.clusters)
        self._part = part
        self._values = part.values[np.argsort(owners, kind="stable")]
        self._sizes = np.bincount(owners, minlength=len(users))
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._sums = np.bincount(owners, weights=part.values, minlength=len(users))

    def of_draws(self, drawn: Integers, times: Floats) -> Floats:
        """The weighted statistic over the units of each draw's users; NaN where they have none."""
        units = times @ self._sizes
        found = np.full(len(drawn), np.nan)
        for place in np.flatnonzero(units):
            if self._part.statistic == "mean":
                found[place] = self._part.weight * (times[place] @ self._sums) / units[place]
            else:
                values = self._values[units_of(drawn[place], self._starts, self._sizes)]
                found[place] = self._part.weight * statistic_of(values, self._part.statistic)
        return found

    def without_each(self) -> Floats:
        """The weighted statistic without each of all users."""
        found = np.full(len(self._sizes), statistic_of(self._values, self._part.statistic))
        here = self._sizes > 0
        found[here] = without_each(
            self._values, self._starts[here], self._sizes[here], self._part.statistic
        )
        return self._part.weight * found
