"""The page of `harness report --rank`: by task the ranks of runs, as intervals of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.base.errors import HarnessError
from harness.comparison.compare_runs import compare, main_of
from harness.comparison.document import Comparison, RankInterval, rank_intervals
from harness.comparison.matching import NoneComparable
from harness.contracts.report import Axis, Cell, Figure, Sheet, Spans
from harness.registry import Plugins
from harness.reporting.html.key_words import key_words
from harness.reporting.html.markup import (
    Html,
    details_html,
    element,
    joined,
    page_html,
    read_secrets,
    section_html,
)
from harness.reporting.html.report_html import figure_html, in_words, notes_html, sheet_html
from harness.reporting.html.reported_run import ReportedRun, made_of
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

RANKS = (
    "A rank such as 1–3 is an interval: at least first and at most third, as far as these people "
    "show. One run is above another only where the interval of their paired difference leaves out "
    "0 and the p value, adjusted after Holm for all pairs of its table, is small enough. Runs with "
    "the same ranks are in the order of their names."
)
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


def rank_page(
    runs: Sequence[ReportedRun], plugins: Plugins, *, title: str = "", unread: Sequence[str] = ()
) -> str:
    """The page that ranks these runs by task; `unread` says which others could not be read."""
    read_secrets()
    title = title or f"Ranks of {counted(len(runs), 'run')}"
    repeated = [run.label for run in runs if any("@" in task.task.name for task in run.tasks)]
    problems = [f"{run.label}: {line}" for run in runs for line in run.problems]
    if repeated:
        problems.append(f"Of the repeats of {', '.join(repeated)} the first one is ranked.")
    boards: list[Board] = []
    tasks = grouped((task.task.name, task) for run in runs for task in run.tasks)
    for name, of_task in tasks.items():
        if task_and_repeat(name)[1] == 1:
            boards += _boards(task_and_repeat(name)[0], of_task, problems)
    words, said = key_words(runs, plugins), set[str]()
    sections = [
        (f"ranks-{place}", _heading(board), words.key(_board_html(board), said))
        for place, board in enumerate(boards, 1)
    ]
    if len(boards) > 1:
        sections.insert(0, ("all", "All tasks", sheet_html(_over_all(boards), level=3)))
    if problems:
        sections.append(("left-out", "Left out", notes_html(problems)))
    head = [element("h1", title), element("p", made_of(runs), class_="note"), notes_html([RANKS]),
            notes_html(f"A run could not be read: {why}" for why in unread)]  # fmt: skip
    parts = [section_html(*section) for section in sections]
    return page_html(title, [*head, *parts], sections=[section[:2] for section in sections])


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


def _board_html(board: Board) -> Html:
    found, labels, values = board.found, board.labels(), board.values
    runs = {run.run: run for run in found.runs}
    bounds = [result.interval or (None, None) for result in values.values()]
    confidence = next(iter(values.values())).confidence
    ranks = Sheet(
        title="",
        columns=("run", "rank", board.metric, "low", "high", "n", "model"),
        rows=tuple(
            (labels[run], board.rank(run), result.value, *each, result.n, runs[run].model)
            for (run, result), each in zip(values.items(), bounds, strict=True)
        ),
        notes=(
            f"values with {confidence:.0%} intervals over the units that all ranked runs share; a "
            f"rank needs p below {1 - confidence:.3g}",
        ),
        digits=3,
    )
    spans = Spans(
        label=board.metric,
        names=tuple(labels[run] for run in values),
        low=tuple(low for low, _ in bounds),
        value=tuple(result.value for result in values.values()),
        high=tuple(high for _, high in bounds),
    )
    pairs = Sheet(
        title="",
        columns=("difference", "value", "low", "high", "p", "p (Holm)", "n"),
        rows=tuple(
            (
                f"{labels[each.first]} − {labels[each.second]}", each.value,
                *(each.interval or (None, None)), each.p, each.p_holm, each.n,
            )
            for each in found.differences
        ),
        notes=("over the units that both runs have scored",),
        digits=3,
    )  # fmt: skip
    warning = found.oracle.warning if found.oracle else None
    stamps = [in_words(why) for why in found.not_comparable_because]
    roles = ", ".join(f"{role} {name}" for role, name in found.roles.items())
    notes = [
        *([f"{STAMP}: {'; '.join(stamps)}"] if stamps else []),
        *([f"Apart from the runs before: {'; '.join(board.apart)}"] if board.apart else []),
        f"version {found.version} of the task{f'; {roles}' if roles else ''}",
        *found.doubts,
        *([warning] if warning else []),
    ]
    figure = Figure(title=_heading(board), x=Axis(label=board.metric), y=Axis(label=""),
                    marks=(spans,))  # fmt: skip
    return joined([
        notes_html(notes), sheet_html(ranks), figure_html(figure),
        details_html("The difference of each two runs", sheet_html(pairs)) if pairs.rows else None,
    ])  # fmt: skip
