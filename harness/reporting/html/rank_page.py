"""The page of `harness report --rank`: by task the ranks of runs, as intervals of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.base.errors import HarnessError
from harness.comparison.compare_runs import compare, main_of
from harness.comparison.document import Comparison, RankInterval, rank_intervals
from harness.comparison.matching import NoneComparable
from harness.contracts.report import Cell, Sheet
from harness.reporting.html.page import page_html, table_of
from harness.reporting.html.picture import Mark, Row
from harness.reporting.html.reported_run import ReportedRun, days_of
from harness.reporting.html.sections import PAIR, numbers_of
from harness.reporting.tables import metric_name
from harness.reporting.text import counted, number
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.score_run import chosen_metrics
from harness.scoring.summary import MetricResult
from harness.tasks.repeats import task_and_repeat

STAMP = "NOT COMPARABLE with published results"
MOST_COLUMNS = 6
"""More runs have no columns in the table over all tasks."""

OVER_ALL = "There is no order over all tasks, as a mean of ranks would hide where runs overlap."


class Board(NamedTuple):
    """Runs of one task that agree in all but their candidate, with their ranks by run.

    `apart` says why they do not stand with the runs of an earlier board of the task.
    """

    task: str
    metric: str
    found: Comparison
    ranks: Mapping[str, RankInterval]
    apart: tuple[str, ...]

    @property
    def values(self) -> dict[str, MetricResult]:
        """By run the value over the units that all ranked runs share, in the order of ranks."""
        common = {run.run: run.common for run in self.found.runs if run.run in self.ranks}
        labels = self.labels()
        order = sorted(
            common, key=lambda run: (self.ranks[run].best, self.ranks[run].worst, labels[run], run)
        )
        return {run: common[run][self.metric] for run in order}

    def labels(self) -> dict[str, str]:
        """By run its label."""
        return {run.run: run.label for run in self.found.runs}

    def rank(self, run: str) -> str:
        """The rank of a run; alone it has none, as its 1 would be no win."""
        ranks = self.ranks[run]
        if len(self.ranks) == 1:
            return "alone"
        return str(ranks.best) if ranks.best == ranks.worst else f"{ranks.best}–{ranks.worst}"


def rank_page(runs: Sequence[ReportedRun], *, title: str = "", unread: Sequence[str] = ()) -> str:
    """The page that ranks these runs by task; `unread` says which others could not be read."""
    repeated = [run.label for run in runs if any("@" in task.task.name for task in run.tasks)]
    problems = [f"{run.label}: {line}" for run in runs for line in run.problems]
    if repeated:
        problems.append(f"Of the repeats of {', '.join(repeated)} the first one is ranked.")
    boards: list[Board] = []
    tasks = grouped((task.task.name, task) for run in runs for task in run.tasks)
    for name, of_task in tasks.items():
        if task_and_repeat(name)[1] == 1:
            boards += _boards(task_and_repeat(name)[0], of_task, problems)
    return page_html(
        "rank.j2", title=title or f"Ranks of {counted(len(runs), 'run')}",
        facts=[counted(len(runs), "run"), counted(len(boards), "table"), *days_of(runs)],
        unread=unread, boards=[_shown(board) for board in boards], problems=problems,
        everything=table_of(_over_all(boards)) if len(boards) > 1 else None,
    )  # fmt: skip


def _boards(name: str, tasks: Sequence[FinishedTask], problems: list[str]) -> Iterator[Board]:
    """The boards of a task, the largest first; what has no place on any is added to `problems`."""
    left: dict[str, FinishedTask] = {}
    for task in tasks:
        left.setdefault(task.run, task)
    if copies := len(tasks) - len(left):
        problems.append(f"{name}: {copies} left out as a copy of another run here")
    newest = tasks[-1]
    metric = main_of(newest, chosen_metrics(newest.task, newest.benchmark))[0]
    apart: dict[str, tuple[str, ...]] = {}
    while left:
        try:
            found = compare([*left.values()], only=(metric,)).comparison
        except NoneComparable as error:
            problems += [f"{name}, {one.label}: {', '.join(one.because)}" for one in error.refused]
            return
        except HarnessError as error:
            problems.append(f"{name}: {error}")
            return
        ranked = [run for run in found.runs if metric in run.common]
        for run in found.runs:
            if run not in ranked:
                why = run.metrics[metric].undefined or "it has no value"
                problems.append(f"{name}, {run.label}: not ranked: {why}")
        if ranked:
            better = ranked[0].common[metric].higher_is_better
            names = [run.run for run in ranked]
            ranks = rank_intervals(names, found.differences, higher_is_better=better)
            why_apart = dict.fromkeys(why for run in names for why in apart.get(run, ()))
            yield Board(name, metric, found, ranks, tuple(why_apart))
        apart = {one.run: one.because for one in found.refused}
        left = {run: task for run, task in left.items() if run in apart}


def _heading(board: Board) -> str:
    heading = f"{board.task}: {metric_name(board.metric, next(iter(board.values.values())))}"
    return f"{heading}, apart: {', '.join(board.labels().values())}" if board.apart else heading


def _over_all(boards: Sequence[Board]) -> Sheet:
    """A row for each board: the rank and value of each run, or of the first three of many."""
    labels = list(dict.fromkeys(label for board in boards for label in board.labels().values()))
    few = len(labels) <= MOST_COLUMNS
    rows: list[tuple[Cell, ...]] = []
    for board in boards:
        ranks = {
            board.labels()[run]: f"{board.rank(run)} ({number(result.value)})"
            for run, result in board.values.items()
        }
        first = ", ".join(f"{label} {rank}" for label, rank in [*ranks.items()][:3])
        rows.append((_heading(board), *(map(ranks.get, labels) if few else (len(ranks), first))))
    return Sheet(
        title="",
        columns=("task", *(labels if few else ("runs", "first, by rank"))),
        rows=tuple(rows),
        notes=("ranks, with the value in brackets", OVER_ALL),
    )


def _shown(board: Board) -> dict[str, Any]:
    """A board as the template shows it: a picture of its ranks, their tables, and notes."""
    found, labels, values = board.found, board.labels(), board.values
    models = {run.run: run.model for run in found.runs}
    first = next(iter(values.values()))
    colours = {run: place for place, run in enumerate(values)}
    row = Row(
        metric=metric_name(board.metric, first), words=first.description.replace("`", ""),
        marks=[
            Mark(labels[run], colours[run], one.value, one.interval, board.rank(run),
                 number(one.value))
            for run, one in values.items()
        ],
    )  # fmt: skip
    ranks = tuple(
        (labels[run], board.rank(run), one.value, *(one.interval or (None, None)), one.n,
         models[run])
        for run, one in values.items()
    )  # fmt: skip
    note = (
        f"values with {first.confidence:.0%} intervals over the units that all ranked runs share; "
        f"a rank needs p below {1 - first.confidence:.3g}"
    )
    columns = ("run", "rank", board.metric, "low", "high", "n", "model")
    pairs = tuple(numbers_of(each, labels) for each in found.differences)
    roles = ", ".join(f"{role} {name}" for role, name in found.roles.items())
    notes = [
        *(f"{STAMP}: {'; '.join(why)}" for why in [found.not_comparable_because] if why),
        *(f"Apart from the runs before: {'; '.join(why)}" for why in [board.apart] if why),
        f"version {found.version} of the task{f'; {roles}' if roles else ''}",
        *found.doubts,
        *([found.oracle.warning] if found.oracle and found.oracle.warning else []),
    ]
    return {
        "heading": _heading(board), "row": row, "notes": notes,
        "ranks": table_of(Sheet(title="", columns=columns, rows=ranks, notes=(note,), digits=3)),
        "pairs": table_of(Sheet(title="", columns=PAIR, rows=pairs, digits=3)),
    }  # fmt: skip
