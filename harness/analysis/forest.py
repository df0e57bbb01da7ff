"""`harness analyse forest`: each metric of each run, with its interval."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from harness.base.errors import one_of
from harness.contracts.report import Axis, Figure, Report, Sheet, Spans
from harness.scoring.grouping import grouped

if TYPE_CHECKING:
    from harness.scoring.finished_task import FinishedTask
    from harness.scoring.summary import MetricResult

MOST_ROWS = 30
"""The most intervals of a figure: with more, names are too small to read."""

MOST_COLOURS = 7
"""With more runs, each task has a figure of its own, as colours would be hard to tell apart."""

ALONE = "intervals are of each run alone: only a paired comparison shows whether two runs differ"


class ForestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics that are shown."""

    metric: Annotated[
        tuple[str, ...], msgspec.Meta(description="show this metric, not each task's main ones")
    ] = ()


class Row(NamedTuple):
    """A metric of one task of one run, which is called by its label."""

    task: str
    run: str
    result: MetricResult

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The bounds of the interval, if there is one."""
        return self.result.interval or (None, None)


def run(tasks: Sequence[FinishedTask], options: ForestOptions) -> Report:
    """A table and figures for each metric, with a row for each task and run."""
    metrics = rows_by_metric(tasks, options.metric)
    return Report(
        sheets=tuple(sheet(title, rows) for title, rows in metrics.items()),
        figures=tuple(each for title, rows in metrics.items() for each in figures(title, rows)),
        notes=tuple(unlike(tasks)),
    )


def rows_by_metric(tasks: Sequence[FinishedTask], wanted: Sequence[str]) -> dict[str, list[Row]]:
    """The rows of each metric by its title; without `wanted`, of the main metrics of each task.

    Tasks stand in the order of their first run. UsageError for a metric that no task has.
    """
    from harness.scoring.summary import main_metrics

    known = dict.fromkeys(name for task in tasks for name in task.summary.metrics)
    for name in wanted:
        problem = f"no task of the runs has a metric {name!r}"
        one_of(name, known, problem, where="--metric", listed="one of {}")
    order = list(dict.fromkeys(task.task.name for task in tasks))
    found: dict[str, list[Row]] = defaultdict(list)
    for task in sorted(tasks, key=lambda each: order.index(each.task.name)):
        metrics = task.summary.metrics
        for name in wanted or main_metrics(task.summary.main or task.benchmark.main, metrics):
            if name in metrics:
                title = f"{name} {'↑' if metrics[name].higher_is_better else '↓'}"
                found[title].append(Row(task.task.name, task.label, metrics[name]))
    return found


def sheet(title: str, rows: Sequence[Row]) -> Sheet:
    """A row for each task and run; the notes have the reasons for what is missing."""
    levels = dict.fromkeys(f"{row.result.confidence:.0%}" for row in rows if row.result.interval)
    notes = [f"low and high: {' or '.join(levels)} interval; {ALONE}"] if levels else []
    for row in rows:
        result = row.result
        if result.value is None:
            notes.append(f"{row.task}, {row.run}: no value, for {result.undefined}")
        elif result.interval is None:
            notes.append(f"{row.task}, {row.run}: no interval, for {result.no_interval}")
    return Sheet(
        title=title,
        columns=("task", "run", "value", "low", "high", "n", "missing"),
        rows=tuple(
            (
                row.task, row.run, row.result.value, *row.ends,
                row.result.units_behind, sum(row.result.missing.values()),
            )
            for row in rows
        ),
        notes=tuple(notes),
        digits=3,
    )  # fmt: skip


def figures(title: str, rows: Sequence[Row]) -> Iterator[Figure]:
    """The rows in figures of at most 30: tasks with a colour for each run, or runs of one task."""
    groups = list(grouped((row.task, row) for row in rows).values())
    runs = len({row.run for row in rows})
    each = max(MOST_ROWS // runs, 1) if runs <= MOST_COLOURS else 1
    for start in range(0, len(groups), each):
        together = [row for group in groups[start : start + each] for row in group]
        for first in range(0, len(together), MOST_ROWS):
            yield figure(title, together[first : first + MOST_ROWS])


def figure(title: str, rows: Sequence[Row]) -> Figure:
    """One figure: the names at its axis are the tasks, or the runs if there is one task."""
    tasks = dict.fromkeys(row.task for row in rows)
    colours = grouped((row.run if len(tasks) > 1 else row.task, row) for row in rows)
    subject = next(iter(colours)) if len(colours) == 1 else f"{len(tasks)} tasks"
    return Figure(
        title=f"{subject}: {title}",
        x=Axis(label=title),
        y=Axis(label=""),
        marks=tuple(
            Spans(
                label=label,
                names=tuple(row.task if len(tasks) > 1 else row.run for row in of_label),
                low=tuple(row.ends[0] for row in of_label),
                value=tuple(row.result.value for row in of_label),
                high=tuple(row.ends[1] for row in of_label),
            )
            for label, of_label in colours.items()
        ),
        note=ALONE,
    )


def unlike(tasks: Sequence[FinishedTask]) -> Iterator[str]:
    """A note for each run of a task that was not asked or judged as the others."""
    from harness.comparison.matching import comparison_set

    for name, of_task in grouped((task.task.name, task) for task in tasks).items():
        for refused in comparison_set(of_task).refused:
            reasons = "; ".join(refused.because)
            yield f"{name}: {refused.label} cannot be compared with the others: {reasons}"
