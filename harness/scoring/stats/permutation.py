"""The paired permutation test of a difference between two columns for the same units.

Imports numpy: import it where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.scoring.stats.bootstrap import Floats, Integers, Statistic, Undefined, statistic_of


def holm(values: Sequence[float]) -> tuple[float, ...]:
    """The p values adjusted after Holm (1979), in the same order.

    If all hypotheses with an adjusted p below α are rejected, the chance of any error is at most α,
    for any dependence between the tests.
    """
    by_size = sorted(range(len(values)), key=lambda place: values[place])
    adjusted = [0.0] * len(values)
    least = 0.0
    for rank, place in enumerate(by_size):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = least
    return tuple(adjusted)


ASSIGNMENTS = 9999
"""How many exchanges are drawn if there are too many to use all of them."""

_CELLS = 1 << 20
"""Units held at a time: bounds the memory for any number of units."""

_SAME = 1e-12
"""Differences closer than this share of the values' size count as equal."""


@dataclass(frozen=True, kw_only=True)
class PValue:
    """The share of `ways` exchanges with at least the measured difference.

    `exact` if all possible exchanges were used; else the measured one counts as one of them.
    """

    value: float
    ways: int
    exact: bool


def paired_p(
    first: Floats,
    second: Floats,
    clusters: Integers,
    *,
    seed: int,
    statistic: Statistic = "mean",
    assignments: int = ASSIGNMENTS,
) -> PValue | Undefined:
    """The two-sided p of the paired permutation test, which exchanges the sides user by user.

    Under the null hypothesis, either side may have given a user's values. The i-th values belong
    to the same unit, and all units of a user are exchanged together. Users with equal values on
    both sides are not exchanged, as this changes nothing.
    """
    users, owners = np.unique(clusters, return_inverse=True)
    if len(users) < 2:
        return Undefined("fewer than two users in common: there is nothing to exchange")
    found = statistic_of(first, statistic) - statistic_of(second, statistic)
    if not np.isfinite(found):
        return Undefined("the difference has no value")
    apart = np.unique(owners[first != second])
    exact = 2 ** len(apart) <= assignments + 1
    rows = max(1, _CELLS // len(first))
    exchanged = _exchanges(len(apart), None if exact else assignments, rows, seed)
    column = np.full(len(users), -1)
    column[apart] = np.arange(len(apart))
    size = max(np.abs(first).max(), np.abs(second).max())
    ways, reached = 0, 0
    for block in exchanged:
        differences = _differences(first, second, column[owners], block, statistic)
        if not np.isfinite(differences).all():
            return Undefined("the difference has no value under some of the exchanges")
        ways += len(differences)
        reached += int(np.count_nonzero(np.abs(differences) >= abs(found) - _SAME * size))
    if exact:
        return PValue(value=reached / ways, ways=ways, exact=True)
    return PValue(value=(reached + 1) / (ways + 1), ways=ways, exact=False)


def _exchanges(count: int, drawn: int | None, rows: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Exchanges of `count` users, one per row, in blocks of `rows` rows: all, or so many drawn."""
    random = np.random.Generator(np.random.PCG64(seed))
    every = 2**count if drawn is None else drawn
    for start in range(0, every, rows):
        many = min(rows, every - start)
        if drawn is None:
            numbers = np.arange(start, start + many)[:, None]
            yield (numbers >> np.arange(count)) % 2 == 1
        else:
            yield random.integers(0, 2, size=(many, count), dtype=np.uint8) == 1


def _differences(
    first: Floats,
    second: Floats,
    owners: Integers,
    exchanged: NDArray[np.bool_],
    statistic: Statistic,
) -> Floats:
    """The difference under each exchange; `owners` are columns of `exchanged`, -1 for no column."""
    if statistic == "mean":
        gaps = np.zeros(exchanged.shape[1])
        np.add.at(gaps, owners[owners >= 0], (first - second)[owners >= 0])
        means: Floats = (gaps.sum() - 2.0 * (exchanged @ gaps)) / len(first)
        return means
    padded = np.pad(exchanged, ((0, 0), (0, 1)))  # the column of -1, which is never exchanged
    if statistic == "median":
        swapped = padded[:, owners]
        ours = np.median(np.where(swapped, second, first), axis=1)
        medians: Floats = ours - np.median(np.where(swapped, first, second), axis=1)
        return medians
    found = []
    for way in padded:
        swapped = way[owners]
        ours, theirs = np.where(swapped, second, first), np.where(swapped, first, second)
        found.append(statistic_of(ours, statistic) - statistic_of(theirs, statistic))
    return np.array(found)
