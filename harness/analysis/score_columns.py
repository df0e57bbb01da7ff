"""Columns of scores: the values of a task's units and their mean."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import fsum
from typing import Any

from harness.contracts.benchmark import Metric
from harness.contracts.records import Score
from harness.scoring.aggregate import at_worst

COUNTED_0 = Metric(description="what is missing counts 0")

MOST_UNREADABLE = 0.15
"""A column is not shown if a larger share of its units has no value."""


@dataclass(frozen=True, kw_only=True)
class ScoreColumn:
    """One column of a task's scores: a value for each unit, None if the unit has none.

    `at_worst` are the values where what is missing counts 0, parts of units too. `clusters` are the
    users or items of the units: units of one cluster are drawn together. `causes` counts the units
    without a value by cause.
    """

    clusters: tuple[str, ...] = ()
    values: tuple[float | None, ...] = ()
    at_worst: tuple[float, ...] = ()
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
    def units(self) -> list[tuple[str, float]]:
        """Each unit's cluster and value, where what is missing counts 0."""
        return list(zip(self.clusters, self.at_worst, strict=True))

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
        """The mean where what is missing counts 0; None if the column is hidden."""
        return fsum(self.at_worst) / len(self.values) if self.values and not self.hidden else None


def score_columns(scores: Iterable[Score[Any]], names: Collection[str]) -> dict[str, ScoreColumn]:
    """The named columns of some scores; a unit with neither value nor cause is not in a column.

    score_columns(task.scores(), ("accuracy",))["accuracy"].counted
    """
    clusters: dict[str, list[str]] = defaultdict(list)
    values: dict[str, list[float | None]] = defaultdict(list)
    worst: dict[str, list[float]] = defaultdict(list)
    causes: dict[str, Counter[str]] = {name: Counter() for name in names}
    for score in scores:
        for name in names:
            if name in score.values or name in score.missing:
                clusters[name].append(score.user)
                values[name].append(score.values.get(name))
                worst[name].append(at_worst(score, name, COUNTED_0))
            if name in score.missing:
                causes[name][score.missing[name]] += 1
    return {
        name: ScoreColumn(
            clusters=tuple(clusters[name]),
            values=tuple(values[name]),
            at_worst=tuple(worst[name]),
            causes=causes[name],
        )
        for name in names
    }
