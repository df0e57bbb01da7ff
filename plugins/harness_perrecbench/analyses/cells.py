"""The cells of a table of results: what a task's scores tell of its groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING, TypeAlias

from harness_perrecbench.records import MEMBERS, Ask, Level

if TYPE_CHECKING:
    from harness import KeptTask

Cell: TypeAlias = tuple[Level, Ask]

WAYS: Mapping[Ask, str] = {"pointwise": "point", "pairwise": "pair", "listwise": "list"}
"""The ways of asking for a ranking, and what narrow columns call them."""

CELLS: tuple[Cell, ...] = tuple((level, ask) for level in MEMBERS for ask in WAYS)
"""The nine cells of Table 1, in its order."""

MOST_UNREADABLE = 0.15
"""A cell of which a larger share of the groups is unreadable is not shown."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a task's scores, a value a unit; None where the unit could not be read.

    `items` are what the units are clustered by: groups of one item move together. `causes` say
    why units could not be read.
    """

    items: tuple[str, ...] = ()
    values: tuple[float | None, ...] = ()
    causes: Mapping[str, int] = field(default_factory=dict)

    @property
    def readable(self) -> list[float]:
        """The values of the units that could be read."""
        return [value for value in self.values if value is not None]

    @property
    def unreadable(self) -> int:
        """How many units could not be read."""
        return self.values.count(None)

    @property
    def hidden(self) -> bool:
        """Whether too many units could not be read for the others to speak for all."""
        return self.unreadable > MOST_UNREADABLE * len(self.values)

    @property
    def dropped(self) -> float | None:
        """The mean over the units that could be read."""
        return fsum(self.readable) / len(self.readable) if self.readable else None

    @property
    def counted(self) -> float | None:
        """The mean with 0 for each unit that could not be read; None where that is not shown."""
        return fsum(self.readable) / len(self.values) if self.values and not self.hidden else None


def read_columns(task: KeptTask, names: Collection[str]) -> dict[str, Column]:
    """The named columns of a task's scores; a unit that a column says nothing of is not in it."""
    items: dict[str, list[str]] = defaultdict(list)
    values: dict[str, list[float | None]] = defaultdict(list)
    causes: dict[str, Counter[str]] = {name: Counter() for name in names}
    for score in task.scores():
        for name in names:
            if name in score.values or name in score.missing:
                items[name].append(score.user)
                values[name].append(score.values.get(name))
            if name in score.missing:
                causes[name][score.missing[name]] += 1
    return {
        name: Column(items=tuple(items[name]), values=tuple(values[name]), causes=causes[name])
        for name in names
    }
