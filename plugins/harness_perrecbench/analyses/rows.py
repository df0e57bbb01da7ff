"""Tasks put together to rows: a model asked in one setting, with a task for each cell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError
from harness.hashing import digest
from harness_perrecbench.analyses.cells import CELLS, Cell, Column, read_columns
from harness_perrecbench.analyses.settings import setting_of

if TYPE_CHECKING:
    from harness import KeptTask


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model asked in one setting: the columns of the task of each cell.

    `apart` is the run, and the task if need be, where rows of the same model and setting repeat.
    """

    model: str
    setting: str
    apart: str
    tasks: Mapping[Cell, KeptTask]
    columns: Mapping[Cell, Mapping[str, Column]]

    @property
    def name(self) -> str:
        """What tables call the row."""
        return called(self.model, self.apart, self.setting)

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
        key, number = (task.manifest.model, setting_of(task), *ground_of(task)), 0
        cell: Cell = (task.options.level, task.options.ask)
        while cell in found.get((*key, number), {}):
            number += 1
        found.setdefault((*key, number), {})[cell] = task
    whose = [(key[0], key[1]) for key in found]
    apart = _told_apart(whose, [next(iter(cells.values())) for cells in found.values()])
    return [
        Row(
            model=model,
            setting=setting,
            apart=told,
            tasks={cell: cells[cell] for cell in CELLS if cell in cells},
            columns={cell: read_columns(cells[cell], names) for cell in CELLS if cell in cells},
        )
        for (model, setting), told, cells in zip(whose, apart, found.values(), strict=True)
    ]


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


def data_of(task: KeptTask) -> tuple[Any, ...]:
    """What tells data that all levels share from other data, with how much of it was taken."""
    data = task.entry.data
    tables = data.get("tables", {})
    of_all_levels = (tables.get(name, {}).get("fingerprint") for name in ("histories", "items"))
    return data.get("origin"), *of_all_levels, task.manifest.limit


def ground_of(task: KeptTask) -> tuple[Any, ...]:
    """What tasks of one row have in common beside their setting: data, seed, and who was asked."""
    return *data_of(task), task.manifest.seed, *_asked(task)


def by_model(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each model, both in the order in which they came."""
    found = defaultdict(list)
    for row in rows:
        found[row.model].append(row)
    return found


def cells_in(rows: Sequence[Row], name: str) -> tuple[Cell, ...]:
    """The cells that any of the rows has a unit of, in the order of Table 1."""
    there = {cell for row in rows for cell in row.of(name)}
    return tuple(cell for cell in CELLS if cell in there)


def called(model: str, apart: str, setting: str) -> str:
    """A model's name for tables, with what tells it from others."""
    return ", ".join(filter(None, (f"{model} {apart}".rstrip(), setting)))


def short_runs(runs: Iterable[str]) -> dict[str, str]:
    """What tables call each run: the end of its name, or all of it where ends are the same."""
    ends = {run: run.rpartition("-")[2] for run in runs}
    times = Counter(ends.values())
    return {run: end if times[end] == 1 else run for run, end in ends.items()}


def _asked(task: KeptTask) -> tuple[str, ...]:
    """A digest of who played each role, whatever the run."""
    known = task.manifest.roles
    entries = [
        (role, known.get(f"{task.task.name}/{role}") or known.get(role))
        for role in sorted(task.summary.roles)
    ]
    return tuple(
        digest([role, {key: each for key, each in entry.identity.items() if key != "run"}])
        for role, entry in entries
        if entry is not None
    )


def _told_apart(whose: Sequence[tuple[str, str]], firsts: Sequence[KeptTask]) -> list[str]:
    """What rows that would be called the same are told apart by: their runs, or else tasks."""
    runs = short_runs(task.run for task in firsts)
    times = Counter(whose)
    within = Counter((who, task.run) for who, task in zip(whose, firsts, strict=True))
    told = []
    for who, task in zip(whose, firsts, strict=True):
        run = runs[task.run]
        alone = run if within[who, task.run] == 1 else f"{run} {task.task.name}"
        told.append(alone if times[who] > 1 else "")
    return told
