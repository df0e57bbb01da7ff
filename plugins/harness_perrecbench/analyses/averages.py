"""Averages over the cells of a grid, from columns of scores, beside those of a paper."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from harness.analysis.result_grid import GridRow, ResultGrid
from harness.contracts.benchmark import Metric
from harness.contracts.report import Cell, Sheet
from harness.reporting.text import reasons
from harness.scoring.aggregate import at_worst
from harness.scoring.means import interval_of_mean, tasks_of_group
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness import FinishedTask, Score
    from harness.contracts.published import PublishedResult
    from harness.runs.manifest import Manifest

CellT = TypeVar("CellT", bound=Hashable)

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


@dataclass(frozen=True, kw_only=True)
class ScoredRow(GridRow[CellT]):
    """A row with columns of its scores."""

    columns: Mapping[CellT, Mapping[str, ScoreColumn]]

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


@dataclass(frozen=True, kw_only=True)
class AveragedGrid(ResultGrid[CellT]):
    """A grid whose rows have averages.

    `name` enters the seeds of intervals where the cells are not the tasks of a group. `label`
    gives the name of a cell in remarks; `units` is the word for what is scored; `empty` is the
    reason for no average if no row has a unit.
    """

    name: str
    label: Callable[[CellT], str] = str
    units: str = "units"
    empty: str = "no unit has a value"

    def scored(
        self, tasks: Iterable[FinishedTask], metrics: Collection[str]
    ) -> list[ScoredRow[CellT]]:
        """The rows of the tasks with columns of these metrics."""
        return [
            ScoredRow(
                **vars(row),
                columns={
                    cell: score_columns(task.scores(), metrics) for cell, task in row.tasks.items()
                },
            )
            for row in self.rows(tasks)
        ]

    def filled(self, rows: Iterable[ScoredRow[CellT]], metric: str) -> tuple[CellT, ...]:
        """The cells in which any row has a unit of a metric, in the order of the columns."""
        there = {cell for row in rows for cell in row.of(metric)}
        return tuple(cell for cell in self.headings if cell in there)

    def line(
        self, row: ScoredRow[CellT], metric: str, cells: Collection[CellT], *, called: str = ""
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
        row: ScoredRow[CellT],
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
        row: ScoredRow[CellT],
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

    def remarks(self, row: ScoredRow[CellT], metric: str, line: Line[CellT]) -> list[str]:
        """The reasons for hidden cells of a line, and for a missing average."""
        remarks = [
            f"{line.names[0]}, {self.label(cell)}: {column.unreadable} of {len(column.values)} "
            f"{self.units} could not be read ({reasons(column.causes)}), over {MOST_UNREADABLE:.0%}"
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
    *,
    named: str = "published: {}",
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
        Line(names=(named.format(model),), cells=found, average=averages.get(model, Average()))
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


def group_of(tasks: Collection[str], manifest: Manifest) -> str | None:
    """The first group of a run whose tasks in the run are these; None if there is no such group."""
    for group in manifest.groups:
        members = tasks_of_group(group, manifest.groups)
        if {name for name in manifest.tasks if task_and_repeat(name)[0] in members} == {*tasks}:
            return group
    return None
