"""Correlations of paired values, with intervals. Imports numpy, and scipy when used."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from harness.scoring.stats.bootstrap import (
    Clusters,
    Floats,
    Integers,
    Interval,
    Measured,
    Method,
    NoInterval,
    Undefined,
    in_blocks,
    interval_by_users,
)

Relation = Callable[[Sequence[Any], Sequence[Any]], "float | Undefined"]
"""A statistic of paired values: a correlation, or a κ."""


def pearson(x: Sequence[float], y: Sequence[float]) -> float | Undefined:
    """Pearson's r of paired values."""
    from scipy.stats import pearsonr

    return _unless_constant(x, y) or _number(pearsonr(x, y).statistic)


def spearman(x: Sequence[float], y: Sequence[float]) -> float | Undefined:
    """Spearman's ρ of three or more paired values; ties get their mean rank."""
    from scipy.stats import spearmanr

    undefined = _unless_constant(x, y)
    if undefined is None and len(x) == 2:
        undefined = Undefined("fewer than three pairs: for two it is always 1 or -1")
    return undefined or _number(spearmanr(x, y).statistic)


def kendall_tau_b(x: Sequence[float], y: Sequence[float]) -> float | Undefined:
    """Kendall's τ-b of paired values, which divides by the pairs that are not tied."""
    from scipy.stats import kendalltau

    return _unless_constant(x, y) or _number(kendalltau(x, y, variant="b").statistic)


def _unless_constant(x: Sequence[float], y: Sequence[float]) -> Undefined | None:
    if len(x) < 2:
        return Undefined("fewer than two pairs")
    if min(x) == max(x) or min(y) == max(y):
        return Undefined("all values of one side are the same")
    return None


def _number(value: float) -> float | Undefined:
    if math.isfinite(value):
        return float(value)
    return Undefined("the values are too large or too close to each other to compute it")


def fisher_interval(r: float, pairs: int, *, confidence: float = 0.95) -> Interval | NoInterval:
    """The interval of Pearson's r by Fisher's z, for few independent pairs.

    It assumes that both sides are normal. A bootstrap of a few pairs is unreliable, as it mostly
    has draws in which all pairs are equal.
    """
    from scipy.special import ndtri

    if pairs < 4:
        return NoInterval("fewer than four pairs")
    if abs(r) >= 1.0:
        return NoInterval("the pairs lie on one line")
    half = float(ndtri((1.0 + confidence) / 2.0)) / math.sqrt(pairs - 3)
    z = math.atanh(r)
    return Interval(math.tanh(z - half), math.tanh(z + half))


def relation_interval(
    x: Sequence[Any],
    y: Sequence[Any],
    users: Sequence[Hashable],
    relation: Relation,
    *,
    seed: int,
    draws: int = 2000,
    confidence: float = 0.95,
    method: Method = "percentile",
) -> Interval | NoInterval:
    """The bootstrap interval of a correlation or κ; users are drawn with all their pairs."""
    numbers = {user: number for number, user in enumerate(dict.fromkeys(users))}
    of = Clusters(np.array([numbers[user] for user in users], dtype=np.int64))
    first, second = np.asarray(x)[of.order], np.asarray(y)[of.order]

    def related(units: Integers) -> float:
        found = relation(first[units], second[units])  # type: ignore[arg-type]
        return math.nan if isinstance(found, Undefined) else found

    def of_block(block: Integers) -> Floats:
        return np.array([related(of.units_of(some)) for some in block])

    def measured() -> Measured:
        everything = np.arange(len(first))
        without = [
            related(np.delete(everything, slice(start, start + size)))
            for start, size in zip(of.starts, of.sizes, strict=True)
        ]
        return related(everything), np.array(without)

    return interval_by_users(
        len(numbers), in_blocks(of_block, len(numbers), draws, np.int64), measured, seed=seed,
        draws=draws, confidence=confidence, method=method,
    )  # fmt: skip
