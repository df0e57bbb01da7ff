"""The average of a row's cells, with an interval in which the groups of one item move together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

from harness.hashing import stable_int
from harness_perrecbench.analyses.cells import Cell, Column

if TYPE_CHECKING:
    from harness import KeptTask
    from harness.stats import Interval, NoInterval


@dataclass(frozen=True, kw_only=True)
class Average:
    """The mean of a row's cells; None, and `why`, where one of them has no value to show."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""


def average_of(
    columns: Mapping[Cell, Column], cells: Collection[Cell], *, task: KeptTask, name: str
) -> Average:
    """The mean of the cells, unreadable groups counted 0; seed and draws are those of the task."""
    from harness.stats import NoInterval

    if not cells:
        return Average(why="no group has a label")
    if absent := sum(cell not in columns for cell in cells):
        return Average(why=f"no average without all cells; not there: {absent} of {len(cells)}")
    if hidden := sum(columns[cell].counted is None for cell in cells):
        return Average(why=f"no average without all cells; not shown: {hidden} of {len(cells)}")
    every = [columns[cell] for cell in cells]
    interval = task.task.interval
    drawn = interval_of_means(
        every,
        seed=stable_int("bootstrap", task.manifest.seed, "perrec", name),
        draws=interval.draws,
        confidence=interval.confidence,
    )
    value = fsum(column.counted or 0.0 for column in every) / len(every)
    if isinstance(drawn, NoInterval):
        return Average(value=value, why=f"no interval, for {drawn.reason}")
    return Average(value=value, low=drawn.low, high=drawn.high)


def interval_of_means(
    columns: Sequence[Column], *, seed: int, draws: int, confidence: float
) -> Interval | NoInterval:
    """The interval of the mean of the columns' means, by drawing items with all their groups.

    Units that could not be read count 0.
    """
    import numpy as np

    from harness.stats import NoInterval
    from harness.stats.bootstrap import blocks_of_draws
    from harness.stats.intervals import interval_of

    if draws < 1:
        return NoInterval("no draws were asked for")
    items = dict.fromkeys(item for column in columns for item in column.items)
    numbers = {item: number for number, item in enumerate(items)}
    if len(numbers) < 2:
        return NoInterval("fewer than two items: there is nothing to draw from")
    sums, counts = np.zeros((2, len(numbers), len(columns)))
    for place, column in enumerate(columns):
        where = [numbers[item] for item in column.items]
        np.add.at(sums[:, place], where, [value or 0.0 for value in column.values])
        np.add.at(counts[:, place], where, 1.0)
    random = np.random.Generator(np.random.PCG64(seed))
    means = []
    for drawn in blocks_of_draws(len(numbers), draws, random, dtype=np.int64):
        times = np.stack([np.bincount(one, minlength=len(numbers)) for one in drawn])
        with np.errstate(invalid="ignore"):  # a draw without any group of a cell has no value
            means.append(((times @ sums) / (times @ counts)).mean(axis=1))
    return interval_of(np.concatenate(means), confidence, of="the average")
