"""Statistics of scores. Imports numpy: import this room inside the functions that use it."""

from harness.stats.bootstrap import (
    Interval,
    NoInterval,
    Statistic,
    bootstrap_interval,
    statistic_of,
)

__all__ = ["Interval", "NoInterval", "Statistic", "bootstrap_interval", "statistic_of"]
