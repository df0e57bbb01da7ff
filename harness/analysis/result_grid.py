"""Grids of results: a row for each model and setting, a cell for each task, and an average.

A benchmark declares its grid once and its analyses fill it from the tasks of stored runs:

    GRID = ResultGrid(
        name="quiz",
        headings={"easy": "easy", "hard": "hard"},
        cell=lambda task: task.options.level,
        setting=lambda task: "three shots" if task.options.shots else "",
    )

    def run(tasks, options):
        rows = GRID.rows(tasks, ("accuracy",))
        cells = GRID.filled(rows, "accuracy")
        lines = [GRID.line(row, "accuracy", cells) for row in rows]
        return Report(sheets=(GRID.sheet("accuracy", lines, cells),))
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any, Generic, TypeVar

from harness.analysis.score_columns import MOST_UNREADABLE, ScoreColumn, score_columns
from harness.base.hashing import digest
from harness.contracts.published import PublishedResult
from harness.contracts.report import Cell, Sheet
from harness.scoring.finished_task import FinishedTask, additions_of
from harness.scoring.means import group_of, interval_of_mean

CellT = TypeVar("CellT", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class GridRow(Generic[CellT]):
    """One model in one setting: the task of each cell, and columns of its scores.

    `apart` is the run, and the task if needed, if there are other rows of this model and setting.
    """

    model: str
    setting: str
    apart: str
    tasks: Mapping[CellT, FinishedTask]
    columns: Mapping[CellT, Mapping[str, ScoreColumn]]

    @property
    def name(self) -> str:
        """The name of the row in tables."""
        return row_name(self.model, self.apart, self.setting)

    @property
    def first(self) -> FinishedTask:
        """The row's first task, for properties that all its tasks share."""
        return next(iter(self.tasks.values()))

    def of(self, metric: str) -> dict[CellT, ScoreColumn]:
        """One column of the scores by cell, for the cells with units in it."""
        return {cell: found[metric] for cell, found in self.columns.items() if found[metric].values}


@dataclass(frozen=True, kw_only=True)
class Average:
    """The mean of a row's cells; None, with the reason in `why`, if a cell has no value."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Line(Generic[CellT]):
    """A row of a sheet: its names, a value for each cell, and the average."""

    names: tuple[str, ...]
    cells: Mapping[CellT, float | int | None]
    average: Average = field(default_factory=Average)


def same_roles(task: FinishedTask, only: Collection[str] = ()) -> tuple[str, ...]:
    """A digest of the model of each role: equal for all runs that asked the same model."""
    known = task.manifest.roles
    entries = [
        (role, known.get(f"{task.task.name}/{role}") or known.get(role))
        for role in sorted(task.summary.roles)
        if not only or role in only
    ]
    return tuple(
        digest([role, {key: each for key, each in entry.identity.items() if key != "run"}])
        for role, entry in entries
        if entry is not None
    )


@dataclass(frozen=True, kw_only=True)
class ResultGrid(Generic[CellT]):
    """The definition of a grid of results.

    `name` enters the seeds of intervals where the cells are not the tasks of a group. `headings`
    are all cells in the order of the columns, each with its heading; `cell` gives the cell of a
    task. `setting` describes how a task was asked, empty for the usual way. Tasks whose `alike`
    differs never share a row, such as tasks with other data. `roles` are those that ask the same
    model in all tasks of a row, by default all; name them if cells have different roles. `label`
    gives the name of a cell in remarks; `units` is the word for what is scored; `empty` is the
    reason for no average if no row has a unit.
    """

    name: str
    headings: Mapping[CellT, str]
    cell: Callable[[FinishedTask], CellT]
    setting: Callable[[FinishedTask], str] = lambda task: ""
    alike: Callable[[FinishedTask], Hashable] = lambda task: task.manifest.limit
    roles: Collection[str] = ()
    label: Callable[[CellT], str] = str
    units: str = "units"
    empty: str = "no unit has a value"

    def ground(self, task: FinishedTask) -> Hashable:
        """The properties that the tasks of one row share, besides model and setting."""
        return self.alike(task), task.manifest.seed, *same_roles(task, self.roles)

    def rows(self, tasks: Iterable[FinishedTask], metrics: Collection[str]) -> list[GridRow[CellT]]:
        """The tasks as rows with columns of these metrics, in the order of the tasks.

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
        apart = _distinctions(owners, [next(iter(cells.values())) for cells in found.values()])
        return [
            GridRow(
                model=model,
                setting=setting,
                apart=distinction,
                tasks={cell: cells[cell] for cell in self.headings if cell in cells},
                columns={
                    cell: score_columns(cells[cell].scores(), metrics)
                    for cell in self.headings
                    if cell in cells
                },
            )
            for (model, setting), distinction, cells in zip(
                owners, apart, found.values(), strict=True
            )
        ]

    def filled(self, rows: Iterable[GridRow[CellT]], metric: str) -> tuple[CellT, ...]:
        """The cells in which any row has a unit of a metric, in the order of the columns."""
        there = {cell for row in rows for cell in row.of(metric)}
        return tuple(cell for cell in self.headings if cell in there)

    def line(
        self, row: GridRow[CellT], metric: str, cells: Collection[CellT], *, called: str = ""
    ) -> Line[CellT]:
        """One column of a row with its average; units without a value count 0."""
        columns = row.of(metric)
        return Line(
            names=(called or row.name,),
            cells={cell: column.counted for cell, column in columns.items()},
            average=self.average(columns, cells, row=row, metric=metric),
        )

    def line_of_readable(
        self,
        row: GridRow[CellT],
        metric: str,
        cells: Collection[CellT],
        *names: str,
        but: Collection[CellT] = (),
    ) -> Line[CellT]:
        """One column of a row over the units with a value; the cells in `but` stay empty."""
        means = {cell: found.dropped for cell, found in row.of(metric).items() if cell not in but}
        return Line(names=names, cells=means, average=Average(value=mean_of(means, cells)))

    def average(
        self,
        columns: Mapping[CellT, ScoreColumn],
        cells: Collection[CellT],
        *,
        row: GridRow[CellT],
        metric: str,
    ) -> Average:
        """The mean of the cells of a row; units without a value count 0.

        The interval is that of the mean over a group if the cells are the tasks of one, unless the
        metric counts what is missing otherwise.
        """
        from harness.scoring.stats import NoInterval, part_of

        if not cells:
            return Average(why=self.empty)
        for what, count in (
            ("not there", sum(cell not in columns for cell in cells)),
            ("not shown", sum(cell in columns and columns[cell].hidden for cell in cells)),
        ):
            if count:
                return Average(why=f"no average without all cells; {what}: {count} of {len(cells)}")
        every = [columns[cell] for cell in cells]
        tasks = [row.tasks[cell] for cell in cells if cell in row.tasks]
        group = None
        if len(tasks) == len(cells) and len({task.run for task in tasks}) == 1:
            group = group_of([task.task.name for task in tasks], row.first.manifest)
        drawn = interval_of_mean(
            [part_of(column.units, weight=1 / len(every)) for column in every],
            name=group or self.name,
            metric=metric,
            seed=row.first.manifest.seed,
            how=row.first.task.interval,
        )
        value = fsum(column.counted or 0.0 for column in every) / len(every)
        if isinstance(drawn, NoInterval):
            return Average(value=value, why=f"no interval, for {drawn.reason}")
        return Average(value=value, low=drawn.low, high=drawn.high)

    def remarks(self, row: GridRow[CellT], metric: str, line: Line[CellT]) -> list[str]:
        """The reasons for hidden cells of a line, and for a missing average."""
        remarks = [
            f"{line.names[0]}, {self.label(cell)}: {column.unreadable} of {len(column.values)} "
            f"{self.units} could not be read ({_counts(column.causes)}), over {MOST_UNREADABLE:.0%}"
            for cell, column in row.of(metric).items()
            if column.hidden
        ]
        return [*remarks, f"{line.names[0]}: {line.average.why}"] if line.average.why else remarks

    def sheet(
        self,
        title: str,
        lines: Sequence[Line[CellT]],
        cells: Collection[CellT] | None = None,
        *,
        first: tuple[str, ...] = ("model",),
        notes: Iterable[str] = (),
        digits: int = 2,
    ) -> Sheet:
        """The lines with some or all cells; averages and bounds if any line has one."""
        shown = tuple(self.headings) if cells is None else tuple(cells)
        averages = any(line.average.value is not None for line in lines)
        bounds = any(line.average.low is not None for line in lines)
        average = "avg." if len(shown) == len(self.headings) else f"avg. of {len(shown)}"

        def row(line: Line[CellT]) -> tuple[Cell, ...]:
            known = line.average
            return (
                *line.names,
                *(line.cells.get(cell) for cell in shown),
                *((known.value,) if averages else ()),
                *((known.low, known.high) if bounds else ()),
            )

        return Sheet(
            title=title,
            columns=(
                *first,
                *(self.headings[cell] for cell in shown),
                *((average,) if averages else ()),
                *(("low", "high") if bounds else ()),
            ),
            rows=tuple(map(row, lines)),
            notes=tuple(notes),
            digits=digits,
        )


def mean_of(values: Mapping[CellT, float | None], cells: Collection[CellT]) -> float | None:
    """The mean of the cells; None unless every one of them has a value."""
    known = [value for cell in cells if (value := values.get(cell)) is not None]
    return fsum(known) / len(known) if known and len(known) == len(cells) else None


def published_lines(
    results: Iterable[PublishedResult],
    cell: Callable[[PublishedResult], CellT | None],
) -> list[Line[CellT]]:
    """A line for each model of a paper, in the order of the results.

    `cell` gives the cell of a result, or None for the average of a model.
    """
    cells: dict[str, dict[CellT, float]] = defaultdict(dict)
    averages: dict[str, Average] = {}
    for one in results:
        if (place := cell(one)) is None:
            averages[one.model] = Average(value=one.value, low=one.low, high=one.high)
        else:
            cells[one.model][place] = one.value
    return [
        Line(names=(f"published: {model}",), cells=found, average=averages.get(model, Average()))
        for model, found in cells.items()
    ]


def neighbours(lines: Iterable[Line[CellT]], average: float) -> tuple[Line[CellT], ...]:
    """The lines with the next higher and the next lower average, the higher one first.

    Of lines with the same average, the one with the nearest mean of its cells is the nearest.
    """

    def place(line: Line[CellT]) -> tuple[float, float]:
        return line.average.value or 0.0, fsum(value or 0.0 for value in line.cells.values())

    ordered = sorted((line for line in lines if line.average.value is not None), key=place)
    above = [line for line in ordered if (line.average.value or 0.0) >= average]
    below = [line for line in ordered if (line.average.value or 0.0) < average]
    return (*above[:1], *below[-1:])


def row_name(model: str, apart: str, setting: str) -> str:
    """The name of a model in tables, with its run and setting if they distinguish it."""
    return ", ".join(filter(None, (f"{model} {apart}".rstrip(), setting)))


def additions(tasks: Iterable[FinishedTask]) -> dict[str, str]:
    """By run what tells the runs of these tasks apart where their labels do not."""
    return additions_of(task.manifest for task in tasks)


def _distinctions(owners: Sequence[tuple[str, str]], firsts: Sequence[FinishedTask]) -> list[str]:
    """The text that distinguishes rows of the same name: of their runs, and tasks if needed."""
    runs = additions(firsts)
    times = Counter(owners)
    within = Counter((owner, task.run) for owner, task in zip(owners, firsts, strict=True))
    texts = []
    for owner, task in zip(owners, firsts, strict=True):
        run = runs[task.run]
        alone = run if within[owner, task.run] == 1 else f"{run} {task.task.name}".lstrip()
        texts.append(alone if times[owner] > 1 else "")
    return texts


def _counts(causes: Mapping[str, int]) -> str:
    ordered = sorted(causes.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{cause} {many:,}" for cause, many in ordered)
