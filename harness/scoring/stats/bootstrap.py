"""Intervals by the bootstrap over clusters. Imports numpy: import it where it is used.

Units of one cluster (a user's samples) are not independent. So whole clusters are drawn with
replacement, as many as there are, and the statistic is computed over all units of the draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

_CELLS = 1 << 20
"""Random numbers drawn at a time: bounds the memory for any number of clusters."""

_BLOCK = 4096
"""Clusters whose sums fit into the processor's cache together."""

_FEW = 8
"""Clusters are drawn by kind if each kind has at least this many of them on average."""


@dataclass(frozen=True, kw_only=True)
class _Sample:
    """Values ordered by cluster; `starts` and `sizes` are the clusters' places."""

    values: Floats
    starts: Integers
    sizes: Integers


def bootstrap_interval(
    values: Floats,
    clusters: Integers,
    *,
    seed: int,
    statistic: Statistic = "mean",
    draws: int = 2000,
    confidence: float = 0.95,
    method: Method = "percentile",
) -> Interval | NoInterval:
    """The interval of a statistic, the same in every process for the same seed.

    `clusters` names the cluster of each value by an integer; values must be finite.
    """
    if draws < 1:
        return NoInterval("no draws were asked for")
    sample = _by_cluster(values, clusters)
    if len(sample.sizes) < 2:
        return NoInterval("fewer than two users: there is nothing to draw from")
    random = np.random.Generator(np.random.PCG64(seed))
    if statistic == "mean":
        drawn = _means(sample, draws, random)
    elif statistic == "median":
        drawn = _medians(sample, draws, random)
    else:
        drawn = _any(sample, draws, random, statistic)

    def measured() -> Measured:
        return Measured(
            value=statistic_of(sample.values, statistic),
            without=without_each(sample.values, sample.starts, sample.sizes, statistic),
        )

    return bounds(drawn, measured, method=method, confidence=confidence, of="the statistic")


def blocks_of_draws(
    count: int, draws: int, random: np.random.Generator, *, dtype: type[np.integer[Any]]
) -> Iterator[Integers]:
    """Draws of `count` clusters, one per row, in blocks of bounded size.

    Each integer type gives another stream of random numbers.
    """
    rows = max(1, _CELLS // count)
    for first in range(0, draws, rows):
        yield random.integers(0, count, size=(min(rows, draws - first), count), dtype=dtype)


def units_of(drawn: Integers, starts: Integers, sizes: Integers) -> Integers:
    """The indexes of the units of the drawn clusters, cluster by cluster."""
    many = sizes[drawn]
    ends = np.cumsum(many)
    units: Integers = np.repeat(starts[drawn] - (ends - many), many) + np.arange(ends[-1])
    return units


def _by_cluster(values: Floats, clusters: Integers) -> _Sample:
    order = np.argsort(clusters, kind="stable")
    owners = clusters[order]
    if not len(owners):
        return _Sample(values=values, starts=order, sizes=order)
    starts = np.flatnonzero(np.concatenate(([True], owners[1:] != owners[:-1])))
    sizes = np.diff(starts, append=len(owners))
    return _Sample(values=values[order], starts=starts, sizes=sizes)


def _draws_of_clusters(count: int, draws: int, random: np.random.Generator) -> Iterator[Integers]:
    return chain.from_iterable(blocks_of_draws(count, draws, random, dtype=np.int64))


def _means(sample: _Sample, draws: int, random: np.random.Generator) -> Floats:
    """The mean of each draw, from the sum and the size of each cluster.

    If many clusters share both (answers right or wrong), drawing how often each kind occurs has the
    same distribution as drawing clusters, and is much faster.
    """
    count = len(sample.sizes)
    one_each = count == len(sample.values)
    sums = sample.values if one_each else np.add.reduceat(sample.values, sample.starts)
    clusters = sums if one_each else sums + 1j * sample.sizes
    kinds, of_kind = np.unique(clusters, return_counts=True)
    if len(kinds) * _FEW <= count:
        total = random.multinomial(count, of_kind / count, size=draws) @ kinds
    else:
        total = _totals(clusters, draws, random)
    means: Floats = total / count if one_each else total.real / total.imag
    return means


def _totals(clusters: NDArray[Any], draws: int, random: np.random.Generator) -> NDArray[Any]:
    """The sum over each draw's clusters, drawn one block of clusters after the other.

    How many clusters of a draw are in each block is drawn first, then the clusters of the block.
    This has the same distribution as drawing from all at once, but with local memory access.
    """
    count = len(clusters)
    firsts = range(0, count, _BLOCK)
    sizes = np.array([min(_BLOCK, count - first) for first in firsts])
    in_block = random.multinomial(count, sizes / count, size=draws)
    totals = np.zeros(draws, dtype=clusters.dtype)
    rows = max(1, _CELLS // _BLOCK)
    for block, first in enumerate(firsts):
        members = clusters[first : first + _BLOCK]
        for row in range(0, draws, rows):
            times = in_block[row : row + rows, block]
            some = np.flatnonzero(times)
            if len(some):
                drawn = random.integers(0, len(members), size=int(times.sum()))
                starts = np.cumsum(times[some]) - times[some]
                totals[row + some] += np.add.reduceat(members[drawn], starts)
    return totals


def _medians(sample: _Sample, draws: int, random: np.random.Generator) -> Floats:
    """The median of each draw from the count of each unit, so that values are sorted only once."""
    count = len(sample.sizes)
    order = np.argsort(sample.values, kind="stable")
    values = sample.values[order]
    if count == len(values):
        return _medians_of_ones(values, draws, random)
    owners = np.repeat(np.arange(count, dtype=np.uint32), sample.sizes)[order]
    medians = []
    for drawn in _draws_of_clusters(count, draws, random):
        upto = np.cumsum(np.bincount(drawn, minlength=count)[owners])
        middle = ((upto[-1] - 1) // 2, upto[-1] // 2)
        low, high = np.searchsorted(upto, middle, side="right")
        medians.append((values[low] + values[high]) / 2.0)
    return np.asarray(medians)


def _medians_of_ones(values: Floats, draws: int, random: np.random.Generator) -> Floats:
    """The median of each draw from sorted values that are a cluster each.

    The m-th smallest of n draws is at the place given by the m-th smallest of n uniform numbers,
    which has a beta distribution; the next one is the smallest of the remaining numbers.
    """
    count = len(values)
    rank = (count + 1) // 2
    left = count - rank
    lower = random.beta(rank, left + 1, size=draws)
    low = values[np.minimum((lower * count).astype(np.int64), count - 1)]
    if count % 2:
        return low
    upper = lower + (1.0 - lower) * random.beta(1, left, size=draws)
    high = values[np.minimum((upper * count).astype(np.int64), count - 1)]
    return (low + high) / 2.0


def _any(sample: _Sample, draws: int, random: np.random.Generator, statistic: Statistic) -> Floats:
    results = []
    one_each = len(sample.sizes) == len(sample.values)
    for drawn in _draws_of_clusters(len(sample.sizes), draws, random):
        units = drawn if one_each else units_of(drawn, sample.starts, sample.sizes)
        results.append(statistic_of(sample.values[units], statistic))
    return np.asarray(results)
