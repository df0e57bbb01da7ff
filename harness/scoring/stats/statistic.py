"""Statistics of a column: the mean, the median, or a function.

Imports numpy: import it where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from harness.scoring.stats.intervals import Floats, Integers

Statistic: TypeAlias = Literal["mean", "median"] | Callable[[Any], float]


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
