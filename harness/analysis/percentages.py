"""Shares as tables of analyses show them; None of nothing."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean


def percent(value: float | None) -> float | None:
    """A share in per cent."""
    return None if value is None else 100 * value


def share(part: int, whole: int) -> float | None:
    """The percentage that a part is of a whole."""
    return 100 * part / whole if whole else None


def mean(numbers: Iterable[int]) -> float | None:
    """The mean of numbers."""
    numbers = list(numbers)
    return fmean(numbers) if numbers else None
