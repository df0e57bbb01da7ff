"""Intervals by the bootstrap over clusters. Imports numpy: import it where it is used.

Units of one cluster (a user's samples) are not independent. So whole clusters are drawn with
replacement, as many as there are, and the statistic is computed over all units of the draw.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.base.errors import PluginError
from harness.base.hashing import stable_int

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[Any]
Method: TypeAlias = Literal["percentile", "bca"]
Statistic: TypeAlias = Literal["mean", "median"] | Callable[[Any], float]
Measured: TypeAlias = tuple[float, Floats]
"""The statistic of all values and without each cluster, which BCa needs besides the draws."""

_SAME = 1e-12
"""Sums of the same numbers in another order differ by less than this share of their size."""

_CELLS = 1 << 20
"""Random numbers drawn at a time: bounds the memory for any number of clusters."""

_BLOCK = 4096
"""Clusters whose sums fit into the processor's cache together."""

_FEW = 8
"""Clusters are drawn by kind if each kind has at least this many of them on average."""


@dataclass(frozen=True)
class Interval:
    """The bounds of a statistic at the requested confidence."""

    low: float
    high: float


@dataclass(frozen=True)
class NoInterval:
    """The reason for a missing interval."""

    reason: str


@dataclass(frozen=True)
class Undefined:
    """The reason why a statistic has no value for its arguments."""

    reason: str


def statistic_of(values: Floats, statistic: Statistic) -> float:
    """The statistic of values, NaN if it is undefined."""
    if not len(values):
        return float("nan")
    if statistic == "mean":
        return float(values.mean())
    if statistic == "median":
        return float(np.median(values))
    try:
        return float(statistic(values))
    except (ArithmeticError, ValueError):
        return float("nan")
    except Exception as error:
        raise PluginError(
            "the statistic of a metric failed",
            where=f"{statistic.__module__}.{getattr(statistic, '__qualname__', statistic)}",
            found=traceback.format_exc(limit=-2).strip(),
            hint="the records are kept: fix the benchmark, then run `harness score RUN`",
        ) from error


def without_each(values: Floats, starts: Integers, sizes: Integers, statistic: Statistic) -> Floats:
    """The statistic without each cluster in turn: the jackknife.

    The values are ordered by cluster; `starts` and `sizes` are the clusters' places.
    """
    if statistic == "mean":
        means: Floats = (values.sum() - np.add.reduceat(values, starts)) / (len(values) - sizes)
        return means
    if statistic == "median":
        # Medians from the sorted values, skipping the places of the cluster that is left out.
        order = np.argsort(values, kind="stable")
        place = np.empty(len(values), dtype=np.int64)
        place[order] = np.arange(len(values))
        ordered = values[order]
        medians = []
        for start, size in zip(starts, sizes, strict=True):
            gone = np.sort(place[start : start + size])
            left = len(values) - size
            middle = [_past(gone, (left - 1) // 2), _past(gone, left // 2)]
            medians.append(ordered[middle].mean())
        return np.array(medians)
    ends = starts + sizes
    return np.array([
        statistic_of(np.concatenate((values[:start], values[end:])), statistic)
        for start, end in zip(starts, ends, strict=True)
    ])  # fmt: skip


def _past(gone: Integers, rank: int) -> int:
    """The place of the value with this rank if the sorted places `gone` are left out."""
    for place in gone:
        if place > rank:
            break
        rank += 1
    return rank


def interval_of(drawn: Floats, confidence: float, *, of: str) -> Interval | NoInterval:
    """The percentile interval of the draws; none if too many have no value.

    A draw without a value counts as lower than all at one end, and as higher at the other.
    """
    tail = (1.0 - confidence) / 2.0
    defined = np.isfinite(drawn)
    with np.errstate(invalid="ignore"):
        low = np.quantile(np.where(defined, drawn, -np.inf), tail)
        high = np.quantile(np.where(defined, drawn, np.inf), 1.0 - tail)
    if (reason := _undefined(drawn, of)) and not np.isfinite([low, high]).all():
        return NoInterval(reason)
    return Interval(float(low), float(high))


def bca_interval(
    drawn: Floats, measured: Measured, confidence: float, *, of: str
) -> Interval | NoInterval:
    """The bias-corrected and accelerated interval (Efron 1987), with the jackknife by cluster."""
    from scipy.special import ndtr, ndtri

    if (reason := _undefined(drawn, of)) is not None:
        return NoInterval(reason)
    value, without = measured
    if not np.isfinite(without).all():
        return NoInterval(f"{of} has no value without one of the users, which BCa needs")
    scale = _SAME * float(np.abs(drawn).max())
    below = np.count_nonzero(drawn < value - scale)
    above = np.count_nonzero(drawn > value + scale)
    share = (len(drawn) + below - above) / (2 * len(drawn))
    if not 0.0 < share < 1.0:
        return NoInterval(f"all draws lie on one side of {of}, and BCa has no bounds then")
    gaps = without.mean() - without
    if np.abs(gaps).max() <= _SAME * np.abs(without).max():
        return NoInterval(f"no single user changes {of}, and BCa has no bounds then")
    acceleration = (gaps**3).sum() / (6.0 * (gaps**2).sum() ** 1.5)
    bias = ndtri(share)
    tail = (1.0 - confidence) / 2.0
    moved = bias + ndtri(np.array([tail, 1.0 - tail]))
    low, high = ndtr(bias + moved / (1.0 - acceleration * moved))
    first, last = np.quantile(drawn, [low, high])
    return Interval(float(first), float(last))


def _undefined(drawn: Floats, of: str) -> str | None:
    missing = int(np.count_nonzero(~np.isfinite(drawn)))
    return f"{of} has no value in {missing} of {len(drawn)} draws" if missing else None


def interval_by_users(
    users: int,
    drawn: Callable[[np.random.Generator], Floats],
    measured: Callable[[], Measured],
    *,
    seed: int,
    draws: int = 2000,
    confidence: float = 0.95,
    method: Method = "percentile",
    of: str = "the statistic",
    few: str = "fewer than two users",
) -> Interval | NoInterval:
    """The interval of what is drawn, the same in every process for the same seed."""
    if draws < 1:
        return NoInterval("no draws were asked for")
    if users < 2:
        return NoInterval(f"{few}: there is nothing to draw from")
    found = drawn(np.random.Generator(np.random.PCG64(seed)))
    if method == "bca":
        return bca_interval(found, measured(), confidence, of=of)
    return interval_of(found, confidence, of=of)


def in_blocks(
    of_block: Callable[[Integers], Floats], count: int, draws: int, dtype: type[np.integer[Any]]
) -> Callable[[np.random.Generator], Floats]:
    """What gives the results of draws of `count` clusters, one per row, in blocks of bounded size.

    Each integer type gives another stream of random numbers.
    """

    def drawn(random: np.random.Generator) -> Floats:
        rows = max(1, _CELLS // count)
        sizes = [(min(rows, draws - first), count) for first in range(0, draws, rows)]
        return np.concatenate([
            of_block(random.integers(0, count, size=size, dtype=dtype)) for size in sizes
        ])  # fmt: skip

    return drawn


class Clusters:
    """The `order` that sorts units by cluster, and where each cluster starts then, and its size."""

    def __init__(self, owners: Integers) -> None:
        self.order = np.argsort(owners, kind="stable")
        owners = owners[self.order]
        first = np.concatenate(([True], owners[1:] != owners[:-1]))[: len(owners)]
        self.starts = np.flatnonzero(first)
        self.sizes = np.diff(self.starts, append=len(owners))
        self.one_each = len(self.sizes) == len(owners)

    def units_of(self, drawn: Integers) -> Integers:
        """The places of the units of the drawn clusters, cluster by cluster."""
        return drawn if self.one_each else units_of(drawn, self.starts, self.sizes)


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
    of = Clusters(clusters)
    count, values = len(of.sizes), values[of.order]

    def of_block(block: Integers) -> Floats:
        return np.array([statistic_of(values[of.units_of(users)], statistic) for users in block])

    drawn = in_blocks(of_block, count, draws, np.int64)
    if statistic == "mean":
        drawn = partial(_means, values, of, draws)
    elif statistic == "median":
        drawn = _medians(values, of, draws)
    return interval_by_users(
        count, drawn,
        lambda: (
            statistic_of(values, statistic), without_each(values, of.starts, of.sizes, statistic)
        ),
        seed=seed, draws=draws, confidence=confidence, method=method,
    )  # fmt: skip


def units_of(drawn: Integers, starts: Integers, sizes: Integers) -> Integers:
    """The indexes of the units of the drawn clusters, cluster by cluster."""
    many = sizes[drawn]
    ends = np.cumsum(many)
    units: Integers = np.repeat(starts[drawn] - (ends - many), many) + np.arange(ends[-1])
    return units


def _means(values: Floats, of: Clusters, draws: int, random: np.random.Generator) -> Floats:
    """The mean of each draw, from the sum and the size of each cluster.

    If many clusters share both (answers right or wrong), drawing how often each kind occurs has the
    same distribution as drawing clusters, and is much faster.
    """
    count = len(of.sizes)
    clusters: NDArray[Any] = (
        values if of.one_each else np.add.reduceat(values, of.starts) + 1j * of.sizes
    )
    kinds, of_kind = np.unique(clusters, return_counts=True)
    if len(kinds) * _FEW <= count:
        total = random.multinomial(count, of_kind / count, size=draws) @ kinds
    else:
        total = _totals(clusters, draws, random)
    means: Floats = total / count if of.one_each else total.real / total.imag
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


def _medians(values: Floats, of: Clusters, draws: int) -> Callable[[np.random.Generator], Floats]:
    """What gives the median of each draw, for which values are sorted only once."""
    order = np.argsort(values, kind="stable")
    ordered, count = values[order], len(of.sizes)

    def of_block(block: Integers) -> Floats:
        """From how often each unit is drawn."""
        owners = np.repeat(np.arange(count, dtype=np.uint32), of.sizes)[order]
        medians = []
        for drawn in block:
            upto = np.cumsum(np.bincount(drawn, minlength=count)[owners])
            middle = ((upto[-1] - 1) // 2, upto[-1] // 2)
            low, high = np.searchsorted(upto, middle, side="right")
            medians.append((ordered[low] + ordered[high]) / 2.0)
        return np.asarray(medians)

    def of_ones(random: np.random.Generator) -> Floats:
        """From sorted values that are a cluster each.

        The m-th smallest of n draws is at the place given by the m-th smallest of n uniform
        numbers, which has a beta distribution; the next one is the smallest of the remaining.
        """
        rank = (count + 1) // 2
        left = count - rank
        lower = random.beta(rank, left + 1, size=draws)
        low = ordered[np.minimum((lower * count).astype(np.int64), count - 1)]
        if count % 2:
            return low
        upper = lower + (1.0 - lower) * random.beta(1, left, size=draws)
        return (low + ordered[np.minimum((upper * count).astype(np.int64), count - 1)]) / 2.0

    return of_ones if of.one_each else in_blocks(of_block, count, draws, np.int64)


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
    of = Clusters(clusters)
    first, second = first[of.order], second[of.order]

    def of_block(drawn: Integers) -> Floats:
        if of.one_each and statistic == "mean":
            means: Floats = (first - second)[drawn].mean(axis=1)
            return means
        if of.one_each and statistic == "median":
            return _medians_of_rows(first, drawn) - _medians_of_rows(second, drawn)
        units = map(of.units_of, drawn)
        return np.array([
            statistic_of(first[some], statistic) - statistic_of(second[some], statistic)
            for some in units
        ])  # fmt: skip

    def measured() -> Measured:
        ours, theirs = (without_each(each, of.starts, of.sizes, statistic)
                        for each in (first, second))  # fmt: skip
        return statistic_of(first, statistic) - statistic_of(second, statistic), ours - theirs

    return interval_by_users(
        len(of.sizes), in_blocks(of_block, len(of.sizes), draws, np.uint32), measured, seed=seed,
        draws=draws, confidence=confidence, method=method, of="the difference",
        few="fewer than two users in common",
    )  # fmt: skip


def _medians_of_rows(values: Floats, drawn: Integers) -> Floats:
    """The median of each row of a block; ranks are sorted, which is faster than sorting values."""
    order = np.argsort(values, kind="stable")
    place = np.empty(len(values), dtype=np.uint32)
    place[order] = np.arange(len(values), dtype=np.uint32)
    places = place[drawn]
    places.sort(axis=1)
    middle = places[:, [(len(values) - 1) // 2, len(values) // 2]]
    medians: Floats = values[order][middle].mean(axis=1)
    return medians


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
    users = np.unique(np.concatenate([part.clusters for part in parts]))
    ordered = [_Ordered(part, users) for part in parts]

    def of_block(block: Integers) -> Floats:
        times = np.stack([np.bincount(row, minlength=len(users)) for row in block]).astype(float)
        sums: Floats = np.sum([part.of_draws(block, times) for part in ordered], axis=0)
        return sums

    return interval_by_users(
        len(users), in_blocks(of_block, len(users), draws, np.uint32),
        lambda: (
            sum(p.weight * statistic_of(p.values, p.statistic) for p in parts),
            np.sum([part.without_each() for part in ordered], axis=0),
        ),
        seed=seed, draws=draws, confidence=confidence, method=method, of="the mean",
    )  # fmt: skip


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
