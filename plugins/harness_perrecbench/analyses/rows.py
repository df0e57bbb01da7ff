"""Tasks put together to rows: a model asked in one setting, with a task for each cell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError
from harness_perrecbench.analyses.cells import CELLS, Cell, Column, read_columns
from harness_perrecbench.analyses.settings import setting_of

if TYPE_CHECKING:
    from harness import KeptTask


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model asked in one setting: the columns of the task of each cell.

    `label` is what tables call the model, `name` that with what is special about the row.
    """

    name: str
    label: str
    setting: str
    tasks: Mapping[Cell, KeptTask]
    columns: Mapping[Cell, Mapping[str, Column]]

    @property
    def first(self) -> KeptTask:
        """One of the row's tasks, for what is the same in all of them."""
        return next(iter(self.tasks.values()))

    def of(self, name: str) -> dict[Cell, Column]:
        """One column of the scores by cell, of the cells that have a unit of it."""
        return {cell: found[name] for cell, found in self.columns.items() if found[name].values}


def rows_of(tasks: Iterable[KeptTask], names: Collection[str]) -> list[Row]:
    """The tasks that ask for rankings as rows, with the named columns, in the order they came in.

    Tasks of several runs make one row where they asked the same model in the same way of the same
    data; of two tasks for one cell the second begins another row.
    """
    found: dict[tuple[Any, ...], dict[Cell, KeptTask]] = {}
    for task in ranked(tasks):
        key, number = (task.label, setting_of(task), *_ground(task)), 0
        cell: Cell = (task.options.level, task.options.ask)
        while cell in found.get((*key, number), {}):
            number += 1
        found.setdefault((*key, number), {})[cell] = task
    times = Counter(key[:2] for key in found)
    return [_row(key, cells, names, alone=times[key[:2]] == 1) for key, cells in found.items()]


def ranked(tasks: Iterable[KeptTask]) -> list[KeptTask]:
    """The tasks that ask for rankings of groups; UsageError where there is none."""
    every = list(tasks)
    found = [task for task in every if (task.options.level, task.options.ask) in CELLS]
    if not found:
        raise UsageError(
            "no task asks for rankings of groups",
            found=", ".join(dict.fromkeys(task.task.name for task in every)),
            expected="a task with ask: pointwise, pairwise or listwise",
        )
    return found


def by_label(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each model, both in the order in which they came."""
    found = defaultdict(list)
    for row in rows:
        found[row.label].append(row)
    return found


def cells_in(rows: Sequence[Row], name: str) -> tuple[Cell, ...]:
    """The cells that any of the rows has a unit of, in the order of Table 1."""
    there = {cell for row in rows for cell in row.of(name)}
    return tuple(cell for cell in CELLS if cell in there)


def _ground(task: KeptTask) -> tuple[Any, ...]:
    """What tasks of one row have in common beside their setting: data and choice."""
    data = task.entry.data
    return data.get("origin"), data.get("comparable"), task.manifest.limit, task.manifest.seed


def _row(
    key: tuple[Any, ...], cells: Mapping[Cell, KeptTask], names: Collection[str], *, alone: bool
) -> Row:
    label, setting = key[:2]
    first = next(iter(cells.values()))
    special = [setting, "" if alone else f"{first.run} {first.task.name}"]
    told = ", ".join(filter(None, special))
    return Row(
        name=f"{label} ({told})" if told else label,
        label=label,
        setting=setting,
        tasks={cell: cells[cell] for cell in CELLS if cell in cells},
        columns={cell: read_columns(cells[cell], names) for cell in CELLS if cell in cells},
    )
