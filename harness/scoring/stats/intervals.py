"""Intervals from the draws of a bootstrap: percentile, or BCa.

Imports numpy: import it where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[Any]
Method: TypeAlias = Literal["percentile", "bca"]

_SAME = 1e-12
"""Sums of the same numbers in another order differ by less than this share of their size."""


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
class Measured:
    """The statistic of all values and without each cluster, which BCa needs besides the draws."""

    value: float
    without: Floats


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
    if not np.isfinite(measured.without).all():
        return NoInterval(f"{of} has no value without one of the users, which BCa needs")
    scale = _SAME * float(np.abs(drawn).max())
    below = np.count_nonzero(drawn < measured.value - scale)
    above = np.count_nonzero(drawn > measured.value + scale)
    share = (len(drawn) + below - above) / (2 * len(drawn))
    if not 0.0 < share < 1.0:
        return NoInterval(f"all draws lie on one side of {of}, and BCa has no bounds then")
    gaps = measured.without.mean() - measured.without
    if np.abs(gaps).max() <= _SAME * np.abs(measured.without).max():
        return NoInterval(f"no single user changes {of}, and BCa has no bounds then")
    acceleration = (gaps**3).sum() / (6.0 * (gaps**2).sum() ** 1.5)
    bias = ndtri(share)
    tail = (1.0 - confidence) / 2.0
    moved = bias + ndtri(np.array([tail, 1.0 - tail]))
    low, high = ndtr(bias + moved / (1.0 - acceleration * moved))
    first, last = np.quantile(drawn, [low, high])
    return Interval(float(first), float(last))


def bounds(
    drawn: Floats,
    measured: Callable[[], Measured],
    *,
    method: Method,
    confidence: float,
    of: str,
) -> Interval | NoInterval:
    """The interval by a method; `measured` is called for BCa only."""
    if method == "bca":
        return bca_interval(drawn, measured(), confidence, of=of)
    return interval_of(drawn, confidence, of=of)


def _undefined(drawn: Floats, of: str) -> str | None:
    missing = int(np.count_nonzero(~np.isfinite(drawn)))
    return f"{of} has no value in {missing} of {len(drawn)} draws" if missing else None


@dataclass(frozen=True)
class Undefined:
    """The reason why a statistic has no value for its arguments."""

    reason: str
