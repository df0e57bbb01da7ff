"""Columns of scores: the values of a task's units, their mean, and the interval of an average."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.contracts.records import Score
    from harness.scoring.stats import Interval, NoInterval

MOST_UNREADABLE = 0.15
"""A column is not shown if a larger share of its units has no value."""


@dataclass(frozen=True, kw_only=True)
class ScoreColumn:
    """One column of a task's scores: a value for each unit, None if the unit has none.

    `clusters` are the users or items of the units: units of one cluster are drawn together.
    `causes` counts the units without a value by cause.
    """

    clusters: tuple[str, ...] = ()
    values: tuple[float | None, ...] = ()
    causes: Mapping[str, int] = field(default_factory=dict)

    @property
    def readable(self) -> list[float]:
        """The values of the units that have one."""
        return [value for value in self.values if value is not None]

    @property
    def unreadable(self) -> int:
        """How many units have no value."""
        return self.values.count(None)

    @property
    def hidden(self) -> bool:
        """Whether too many units have no value to show a mean."""
        return self.unreadable > MOST_UNREADABLE * len(self.values)

    @property
    def dropped(self) -> float | None:
        """The mean over the units that have a value."""
        return fsum(self.readable) / len(self.readable) if self.readable else None

    @property
    def counted(self) -> float | None:
        """The mean with 0 for each unit that has no value; None if the column is hidden."""
        return fsum(self.readable) / len(self.values) if self.values and not self.hidden else None


def score_columns(scores: Iterable[Score[Any]], names: Collection[str]) -> dict[str, ScoreColumn]:
    """The named columns of some scores; a unit with neither value nor cause is not in a column.

    score_columns(task.scores(), ("accuracy",))["accuracy"].counted
    """
    clusters: dict[str, list[str]] = defaultdict(list)
    values: dict[str, list[float | None]] = defaultdict(list)
    causes: dict[str, Counter[str]] = {name: Counter() for name in names}
    for score in scores:
        for name in names:
            if name in score.values or name in score.missing:
                clusters[name].append(score.user)
                values[name].append(score.values.get(name))
            if name in score.missing:
                causes[name][score.missing[name]] += 1
    return {
        name: ScoreColumn(
            clusters=tuple(clusters[name]), values=tuple(values[name]), causes=causes[name]
        )
        for name in names
    }


def interval_of_means(
    columns: Sequence[ScoreColumn], *, seed: int, draws: int, confidence: float
) -> Interval | NoInterval:
    """The interval of the mean of the columns' means, by drawing clusters with all their units.

    Units without a value count 0.
    """
    import numpy as np

    from harness.scoring.stats import NoInterval
    from harness.scoring.stats.bootstrap import blocks_of_draws
    from harness.scoring.stats.intervals import interval_of

    if draws < 1:
        return NoInterval("no draws were asked for")
    clusters = dict.fromkeys(cluster for column in columns for cluster in column.clusters)
    numbers = {cluster: number for number, cluster in enumerate(clusters)}
    if len(numbers) < 2:
        return NoInterval("fewer than two items: there is nothing to draw from")
    sums, counts = np.zeros((2, len(numbers), len(columns)))
    for place, column in enumerate(columns):
        where = [numbers[cluster] for cluster in column.clusters]
        np.add.at(sums[:, place], where, [value or 0.0 for value in column.values])
        np.add.at(counts[:, place], where, 1.0)
    random = np.random.Generator(np.random.PCG64(seed))
    means = []
    for drawn in blocks_of_draws(len(numbers), draws, random, dtype=np.int64):
        times = np.stack([np.bincount(one, minlength=len(numbers)) for one in drawn])
        with np.errstate(invalid="ignore"):  # a draw without any unit of a cell has no value
            means.append(((times @ sums) / (times @ counts)).mean(axis=1))
    return interval_of(np.concatenate(means), confidence, of="the average")
