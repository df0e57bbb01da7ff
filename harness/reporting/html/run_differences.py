"""The differences between the runs of a report, as `harness compare` computes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from harness.base.errors import HarnessError, UsageError
from harness.contracts.report import Cell, Sheet
from harness.reporting.comparison_tables import missing_tests, p_value
from harness.reporting.html.markup import Html, element, joined
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.sheet_html import notes_html, sheet_html
from harness.reporting.html.untested import Untested, untested_of, untested_sheet
from harness.reporting.tables import metric_name
from harness.reporting.text import number
from harness.scoring.paired_differences import Difference, is_established
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.scoring.changed_units import ChangedUnits
    from harness.scoring.comparison_document import Comparison, ComparisonDocument, MeanDifference
    from harness.scoring.finished_task import FinishedTask

MOST_COMPARED = 12
"""More runs than this are compared with `harness compare`, as each pair takes its time."""

CLOSE = 0.05
"""The bound of p where intervals have 95%."""

NUMBERS = ("value", "low", "high", "n", "p", "p (Holm)")


class Established(NamedTuple):
    """A run that is better than another one in a metric of a task or group."""

    task: str
    metric: str
    winner: str
    loser: str
    p: float | None

    @property
    def shown_p(self) -> str:
        """The p value after Holm in words, empty without one."""
        if self.p is None:
            return ""
        # Rounded it would look as if it were not below the bound.
        close = number(self.p) == number(CLOSE)
        return f"p just below {CLOSE}" if close else f"p {p_value(self.p)}"


class Differences(NamedTuple):
    """The comparisons of the runs of a report, and why others are missing.

    `parts` are the slices that the comparisons could be split by, if they are not. `untested` are
    the runs that differ from the best one of a task in more than their candidate.
    """

    document: ComparisonDocument
    problems: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    untested: tuple[Untested, ...] = ()

    def labels(self) -> dict[str, str]:
        """By run its label."""
        return {run.run: run.label for one in self.document.comparisons for run in one.runs}

    def tested(self) -> Iterator[tuple[str, Difference, bool]]:
        """The name of a task or group, a difference, and whether higher is better.

        The mean over repeats of two runs stands for their repeats.
        """
        means = self.document.mean_differences or ()
        repeats = {
            (task, one.difference.metric, frozenset((one.difference.first, one.difference.second)))
            for one in means
            if one.over == "repeats"
            for task in one.tasks
        }
        for one in means:
            yield one.name, one.difference, one.higher_is_better
        for comparison in self.document.comparisons:
            for each in comparison.differences:
                pair = frozenset((each.first, each.second))
                if (comparison.task, each.metric, pair) not in repeats:
                    metric = comparison.runs[0].metrics[each.metric]
                    yield comparison.task, each, metric.higher_is_better

    def established(self) -> Iterator[Established]:
        """The differences that are established, by the rule of `harness compare`."""
        labels = self.labels()
        for task, each, higher in self.tested():
            if is_established(each):
                pair = labels[each.first], labels[each.second]
                ahead = ((each.value or 0.0) > 0) == higher
                yield Established(task, each.metric, *(pair if ahead else pair[::-1]), each.p_holm)


def differences_of_runs(runs: Sequence[ReportedRun], by: str | None = None) -> Differences:
    """The comparisons of all runs with the best one by each metric; `by` is a slice of the data."""
    from harness.scoring.compared_tasks import ComparedTasks, check_slice
    from harness.scoring.comparison import compare, main_of
    from harness.scoring.comparison_document import ComparisonDocument
    from harness.scoring.score_run import chosen_metrics

    if by is not None and len(runs) < 2:
        raise UsageError("--by compares runs", where="--by", expected="two runs or more")
    if not 1 < len(runs) <= MOST_COMPARED:
        many = f"{len(runs)} runs are too many to compare each with the best one here"
        said = (f"{many}: `harness compare RUN RUN` compares some",) if len(runs) > 1 else ()
        return Differences(ComparisonDocument(comparisons=()), said)
    found = ComparedTasks([], [], [])
    problems, alone = [], []
    by_name: dict[str, list[FinishedTask]] = {}
    for task in (task for run in runs for task in run.tasks):
        by_name.setdefault(task.task.name, []).append(task)
    best: dict[str, dict[str, str]] = {}
    untested: list[Untested] = []
    for name, tasks in by_name.items():
        if len(tasks) < 2:
            if len(by_name[task_and_repeat(name)[0]]) < 2:
                alone.append(f"{name} ({tasks[0].label})")
            continue
        only = main_of(tasks[0], chosen_metrics(tasks[0].task, tasks[0].benchmark))
        # All repeats of a task are compared with the same runs, so that their mean is too.
        against = best.setdefault(task_and_repeat(name)[0], _best(tasks, only))
        try:
            found.compared.append(compare(tasks, only=only, against=against, by=by))
        except HarnessError as error:
            problems.append(f"{name}: {error.problem}")
            continue
        main = found.compared[-1].comparison.main[0]
        untested += untested_of(tasks, found.compared[-1], against.get(main))
    if by is not None:
        check_slice(by, found.compared)
    if alone:
        problems.append(f"Finished by one run alone, so not compared: {', '.join(alone)}.")
    known = {name: None for each in found.compared for name in each.tasks[0].summary.slices or ()}
    parts = (*known,) if by is None else ()
    return Differences(found.document(), (*problems,), parts, (*untested,))


def _best(tasks: Sequence[FinishedTask], metrics: Sequence[str]) -> dict[str, str]:
    """By metric the run with the best value, of those that can be compared."""
    from harness.scoring.comparable import comparison_set

    values: dict[str, dict[str, float]] = {}
    for task in comparison_set(tasks).members:
        for metric in metrics:
            result = task.summary.metrics.get(metric)
            if result is not None and result.value is not None:
                sign = 1 if result.higher_is_better else -1
                values.setdefault(metric, {})[task.run] = sign * result.value
    return {metric: max(known, key=known.__getitem__) for metric, known in values.items()}


def differences_html(found: Differences) -> Html:
    """The differences with their intervals, the units that changed, and those not tested."""
    labels = found.labels()
    parts = [part for one in found.document.comparisons for part in _comparison(one, labels)]
    if means := found.document.mean_differences or ():
        parts.append(sheet_html(_means(means, labels), level=3))
    if found.untested:
        parts.append(sheet_html(untested_sheet(found.untested), level=3))
    notes = [*found.problems]
    if found.parts:
        notes.append(
            "`harness report` with `--by SLICE` adds the differences within each part of the data: "
            f"{', '.join(found.parts)}."
        )
    about = (
        "In each metric, each run against the one with the best value of the task, on the units "
        "that both have. "
        "Below 0 the first of the two has the lower value; ↑ or ↓ says which is better. Given are "
        "intervals of the paired bootstrap over people, p of the paired permutation test, adjusted "
        "after Holm for all tests here. The best run was chosen by its value, so that a small lead "
        "may be luck, or because it lost the harder units: look at what is missing."
    )
    return joined([element("p", about, class_="note"), *parts, notes_html(notes)])


def _comparison(one: Comparison, labels: Mapping[str, str]) -> Iterator[Html]:
    """The differences of a task, those within each part of the data, and the changed units."""
    notes = []
    if any(each.p is not None and each.p_holm is None for each in one.differences):
        notes.append("The mean over repeats is tested below: a single repeat is no further test.")
    if one.oracle and (pooled := {each.metric for each in one.differences} & {*one.oracle.metrics}):
        notes.append(f"{', '.join(sorted(pooled))}: against what these runs found together.")
    metrics = one.runs[0].metrics
    sheet = Sheet(
        title=one.task, columns=("difference", "metric", *NUMBERS), digits=3,
        rows=tuple(
            (_pair(each, labels), metric_name(each.metric, metrics[each.metric]), *_numbers(each))
            for each in one.differences
        ),
        notes=(*notes, *one.doubts, *missing_tests(one.differences)),
    )  # fmt: skip
    if sheet.rows:
        yield sheet_html(sheet, level=3)
    elif notes:
        yield joined([element("h3", one.task), notes_html(sheet.notes)])
    if one.slices:
        yield sheet_html(_sliced(one, labels))
    changed = [each for each in one.changed or () if each.metric in one.main[:1]]
    if changed:
        title = f"{one.task}: units that changed most"
        yield element("details", element("summary", title), sheet_html(_changed(changed, labels)))


def _sliced(one: Comparison, labels: Mapping[str, str]) -> Sheet:
    parts = one.slices or ()
    without = [
        f"{part.slice} {part.value}, {line}"
        for part in parts
        for line in missing_tests(part.differences)
    ]
    return Sheet(
        title=f"{one.task} by {parts[0].slice}",
        columns=(parts[0].slice, "difference", "metric", *NUMBERS), digits=3,
        rows=tuple(
            (part.value, _pair(each, labels), each.metric, *_numbers(each))
            for part in parts
            for each in part.differences
        ),
        notes=tuple(without),
    )  # fmt: skip


def _changed(changed: Sequence[ChangedUnits], labels: Mapping[str, str]) -> Sheet:
    """The largest changes of each pair of runs, with the command that shows the first run's."""
    rows: list[tuple[Cell, ...]] = [
        (
            unit.unit, f"{labels[each.first]} − {labels[each.second]}", unit.first - unit.second,
            unit.first, unit.second, unit.commands[0],
        )
        for each in changed
        for unit in each.largest
    ]  # fmt: skip
    notes = [
        f"{labels[each.first]} against {labels[each.second]}, {each.metric}: {each.better:,} "
        f"better, {each.worse:,} worse, {each.same:,} the same"
        for each in changed
    ]
    notes.append(
        "Counted are the units that each run of the task has a value of, so that they may be fewer "
        "than n, which counts those of the two runs."
    )
    columns = ("unit", "difference", "change", "first", "second", "shown by")
    return Sheet(title="", columns=columns, rows=tuple(rows), digits=3, notes=tuple(notes))


def _means(means: Sequence[MeanDifference], labels: Mapping[str, str]) -> Sheet:
    rows: list[tuple[Cell, ...]] = [
        (
            f"{one.name}, over {one.over}", _pair(one.difference, labels), one.difference.metric,
            *_numbers(one.difference),
        )
        for one in means
    ]  # fmt: skip
    notes = [
        f"{one.name}, {one.difference.metric}: deviation over the repeats, "
        + ", ".join(f"{labels[run]} {number(value)}" for run, value in one.deviations.items())
        for one in means
        if one.deviations is not UNSET
    ]
    notes += missing_tests([one.difference for one in means])
    columns = ("mean", "difference", "metric", *NUMBERS)
    return Sheet(
        title="Means over tasks and repeats", columns=columns, rows=tuple(rows), digits=3,
        notes=tuple(notes),
    )  # fmt: skip


def _pair(each: Difference, labels: Mapping[str, str]) -> str:
    return f"{labels[each.first]} − {labels[each.second]}"


def _numbers(each: Difference) -> tuple[Cell, ...]:
    return each.value, *(each.interval or (None, None)), each.n, each.p, each.p_holm
