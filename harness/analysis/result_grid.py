"""Grids of results: a row for each model and setting, a cell for each task.

A benchmark declares its grid once and its analyses fill it from the tasks of stored runs:

    GRID = ResultGrid(
        headings={"easy": "easy", "hard": "hard"},
        cell=lambda task: task.options.level,
        setting=lambda task: "three shots" if task.options.shots else "",
    )

    def run(tasks, options):
        rows = tuple((row.name, *values_of(row.tasks)) for row in GRID.rows(tasks))
        columns = ("model", *GRID.headings.values())
        return Report(sheets=(Sheet(title="accuracy", columns=columns, rows=rows),))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from harness.base.hashing import digest
from harness.scoring.finished_task import additions_of

if TYPE_CHECKING:
    from harness.scoring.finished_task import FinishedTask

CellT = TypeVar("CellT", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class GridRow(Generic[CellT]):
    """One model in one setting: the task of each cell.

    `apart` is the run, and the task if needed, if there are other rows of this model and setting.
    """

    model: str
    setting: str
    apart: str
    tasks: Mapping[CellT, FinishedTask]

    @property
    def name(self) -> str:
        """The name of the row in tables."""
        return row_name(self.model, self.apart, self.setting)

    @property
    def first(self) -> FinishedTask:
        """The row's first task, for properties that all its tasks share."""
        return next(iter(self.tasks.values()))


@dataclass(frozen=True, kw_only=True)
class ResultGrid(Generic[CellT]):
    """The definition of a grid of results.

    `headings` are all cells in the order of the columns, each with its heading; `cell` gives the
    cell of a task. `setting` describes how a task was asked, empty for the usual way. Tasks whose
    `alike` differs never share a row, such as tasks with other data. `roles` are those that ask the
    same model in all tasks of a row, by default all; name them if cells have different roles.
    """

    headings: Mapping[CellT, str]
    cell: Callable[[FinishedTask], CellT]
    setting: Callable[[FinishedTask], str] = lambda task: ""
    alike: Callable[[FinishedTask], Hashable] = lambda task: task.manifest.limit
    roles: Collection[str] = ()

    def ground(self, task: FinishedTask) -> Hashable:
        """The properties that the tasks of one row share, besides model and setting.

        A digest of the model of each role is equal for all runs that asked the same model.
        """
        known = task.manifest.roles
        entries = [
            (role, known.get(f"{task.task.name}/{role}") or known.get(role))
            for role in sorted(task.summary.roles)
            if not self.roles or role in self.roles
        ]
        models = (
            digest([role, {key: each for key, each in entry.identity.items() if key != "run"}])
            for role, entry in entries
            if entry is not None
        )
        return self.alike(task), task.manifest.seed, *models

    def rows(self, tasks: Iterable[FinishedTask]) -> list[GridRow[CellT]]:
        """The tasks as rows, in the order of the tasks.

        Tasks of several runs of one label share a row if they asked the same model in the same way.
        If two tasks have the same cell, the second starts another row. Tasks without a cell are
        left out.
        """
        found: dict[tuple[Any, ...], dict[CellT, FinishedTask]] = {}
        for task in tasks:
            if (cell := self.cell(task)) not in self.headings:
                continue
            key, number = (task.manifest.label, self.setting(task), self.ground(task)), 0
            while cell in found.get((*key, number), {}):
                number += 1
            found.setdefault((*key, number), {})[cell] = task
        owners = [(key[0], key[1]) for key in found]
        firsts = [next(iter(cells.values())) for cells in found.values()]
        runs, times = additions(firsts), Counter(owners)
        within = Counter((owner, task.run) for owner, task in zip(owners, firsts, strict=True))
        rows = []
        for owner, first, cells in zip(owners, firsts, found.values(), strict=True):
            apart = runs[first.run]
            if within[owner, first.run] > 1:
                apart = f"{apart} {first.task.name}".lstrip()
            ordered = {cell: cells[cell] for cell in self.headings if cell in cells}
            rows.append(
                GridRow(
                    model=owner[0],
                    setting=owner[1],
                    apart=apart if times[owner] > 1 else "",
                    tasks=ordered,
                )
            )
        return rows


def row_name(model: str, apart: str, setting: str) -> str:
    """The name of a model in tables, with its run and setting if they distinguish it."""
    return ", ".join(filter(None, (f"{model} {apart}".rstrip(), setting)))


def additions(tasks: Iterable[FinishedTask]) -> dict[str, str]:
    """By run what tells the runs of these tasks apart where their labels do not."""
    return additions_of(task.manifest for task in tasks)
