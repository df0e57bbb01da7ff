"""Statistics of scores. Imports numpy: import this room inside the functions that use it."""

from harness.stats.agreement import Agreement, Undefined, agreement_of, rank_correlation
from harness.stats.bootstrap import (
    Interval,
    NoInterval,
    Statistic,
    bootstrap_interval,
    statistic_of,
)
from harness.stats.paired import paired_interval

__all__ = [
    "Agreement",
    "Interval",
    "NoInterval",
    "Statistic",
    "Undefined",
    "agreement_of",
    "bootstrap_interval",
    "paired_interval",
    "rank_correlation",
    "statistic_of",
]
