"""The differences between the runs of a report, as `harness compare` computes them, and which runs
were not compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from harness.base.errors import HarnessError, UsageError
from harness.comparison.document import Difference, is_significant
from harness.comparison.matching import named_differences, settings_of
from harness.contracts.report import Cell, Sheet
from harness.reporting.comparison_tables import (
    better_of,
    missing_tests,
    p_value,
    slices_title,
    without_repeats,
)
from harness.reporting.html.markup import Html, details_html, element, joined
from harness.reporting.html.report_html import notes_html, sheet_html
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.tables import metric_name
from harness.reporting.text import counted, number
from harness.scoring.grouping import grouped
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.comparison.compare_runs import Compared, WithoutLost
    from harness.comparison.document import ChangedUnits, Comparison, ComparisonDocument
    from harness.scoring.finished_task import FinishedTask

ALONE = "`harness compare` tests these two without the others"


class Untested(NamedTuple):
    """A run that was not compared with another one of a task, and why."""

    task: str
    run: str
    other: str
    because: tuple[str, ...]


def untested_of(
    tasks: Sequence[FinishedTask], found: Compared, against: str | None
) -> Iterator[Untested]:
    """The runs of a task that stand apart from those that were compared, each against the best of
    those, which is `against`, and against each other."""
    known = {task.run: task for task in tasks}
    best = known[against or found.comparison.runs[0].run]
    refused = found.comparison.refused
    pairs = [(known[each.run], best, each.because) for each in refused]
    agree_in = {run: settings_of(known[run]) for run in (best.run, *(one.run for one in refused))}
    apart = [known[each.run] for each in refused if agree_in[each.run] != agree_in[best.run]]
    for first, second in combinations(apart, 2):
        why = named_differences(agree_in[second.run], agree_in[first.run])
        pairs.append((second, first, why or (ALONE,)))
    for run, other, because in pairs:
        task = task_and_repeat(found.comparison.task)[0]
        yield Untested(task=task, run=run.label, other=other.label, because=because)


def untested_pairs(untested: Sequence[Untested]) -> dict[str, list[tuple[str, str]]]:
    """By task the pairs of its runs that were not tested, each once."""
    found = grouped((one.task, (one.run, one.other)) for one in untested)
    return {task: list(dict.fromkeys(pairs)) for task, pairs in found.items()}


def reasons_untested(untested: Sequence[Untested]) -> Mapping[str, list[str]]:
    """Why runs were not compared, with the tasks that each reason is about."""
    found = grouped(
        (f"{one.run} is not compared with {one.other}: {'; '.join(one.because)}", one.task)
        for one in untested
    )
    return {why: list(dict.fromkeys(tasks)) for why, tasks in found.items()}


MOST_COMPARED = 12
"""More runs than this are compared with `harness compare`, as each pair takes its time."""

POOLED = (
    "measured against what all these runs found together; Samples and `harness show` measure each "
    "run against what it found itself, so that they have other values"
)
"""What is said of a metric that depends on which runs stand together."""

NUMBERS = ("value", "low", "high", "n", "p", "p (Holm)")


class Established(NamedTuple):
    """A run that is better than another one in a metric of a task or group.

    `p` is below the bound, 1 − the confidence of the interval. `without` says what is left of the
    difference without the units that one of them lost, and `holds` whether it is still established.
    """

    task: str
    metric: str
    winner: str
    loser: str
    p: float | None
    bound: float
    without: str = ""
    holds: bool = True

    @property
    def known(self) -> str:
        """The p value after Holm, and whether it is established without lost units, in words."""
        found = []
        if self.p is not None:
            # Rounded it would look as if it were not below the bound.
            close = number(self.p) == number(self.bound)
            found.append(f"p just below {self.bound:.3g}" if close else f"p {p_value(self.p)}")
        if self.without:
            found.append(f"{'also' if self.holds else 'not'} without lost units")
        return "; ".join(found)


class Differences(NamedTuple):
    """The comparisons of the runs of a report, and why others are missing.

    `parts` are the slices that the comparisons could be split by, if they are not. `untested` are
    the runs that differ from the best one of a task in more than their candidate. `without` are by
    task or group, metric and runs the established differences for which lost units count. `bases`
    are the runs that the user chose others to be compared with, in place of the best.
    """

    document: ComparisonDocument
    problems: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    untested: tuple[Untested, ...] = ()
    without: Mapping[tuple[str, str, str, str], WithoutLost] = MappingProxyType({})
    bases: Collection[str] = ()

    def labels(self) -> dict[str, str]:
        """By run its label."""
        return {run.run: run.label for one in self.document.comparisons for run in one.runs}

    def tested(self) -> Iterator[tuple[str, Difference, bool]]:
        """The name of a task or group, a difference, and whether higher is better.

        The mean over repeats of two runs stands for their repeats.
        """
        for one in self.document.mean_differences or ():
            yield one.name, one.difference, one.higher_is_better
        for comparison in self.document.comparisons:
            for each in without_repeats(comparison, self.document):
                metric = comparison.runs[0].metrics[each.metric]
                yield comparison.task, each, metric.higher_is_better

    def established(self) -> Iterator[Established]:
        """The differences that are established, by the rule of `harness compare`."""
        labels = self.labels()
        for task, each, higher in self.tested():
            if is_significant(each):
                better, worse = better_of(each, higher=higher)
                without = self.without.get((task, each.metric, each.first, each.second))
                yield Established(
                    task, each.metric, labels[better], labels[worse], each.p_holm,
                    1 - each.confidence,
                    _without(each, without, labels) if without else "",
                    holds=without is None or without.holds,
                )  # fmt: skip


def _without(each: Difference, found: WithoutLost, labels: Mapping[str, str]) -> str:
    """What is left of a difference of two runs without the units that one of them lost."""
    lost = " and ".join(
        f"the {counted(many, 'unit')} that {labels[run]} lost"
        for run, many in found.lost.items()
        if many
    )
    left = found.left
    if left is None or left.value is None or left.interval is None:
        return f"not established without {lost}"
    sign = 1 if (each.value or 0.0) > 0 else -1
    low, high = sorted(sign * end for end in left.interval)
    moved = sign * left.value
    ahead = f"ahead by {number(moved)}" if moved > 0 else f"not ahead, but {number(moved)}"
    p = "" if left.p_holm is None else f"p {p_value(left.p_holm)}, "
    still = "still established" if found.holds else "not established"
    return f"without {lost}, {ahead} [{number(low)}, {number(high)}], {p}n {left.n:,}, {still}"


def differences_of_runs(
    runs: Sequence[ReportedRun], by: str | None = None, bases: Collection[str] = ()
) -> Differences:
    """The comparisons of all runs with one of `bases`, else with the best one by each metric."""
    from harness.comparison.compare_runs import (
        ComparedTasks,
        best_runs,
        check_slice,
        compare,
        main_of,
        without_lost,
    )
    from harness.comparison.document import ComparisonDocument
    from harness.scoring.score_run import chosen_metrics

    if by is not None and len(runs) < 2:
        raise UsageError(
            "one run has nothing to be compared with", where="--by", expected="two runs or more"
        )
    if not 1 < len(runs) <= MOST_COMPARED:
        many = f"{len(runs)} runs are too many to compare each with the best one here"
        said = (f"{many}: `harness compare RUN RUN` compares some",) if len(runs) > 1 else ()
        return Differences(ComparisonDocument(comparisons=()), said)
    found = ComparedTasks([], [], [])
    problems, alone = [], []
    by_name = grouped((task.task.name, task) for run in runs for task in run.tasks)
    best: dict[str, dict[str, str]] = {}
    untested: list[Untested] = []
    for name, tasks in by_name.items():
        if len(tasks) < 2:
            if len(by_name[task_and_repeat(name)[0]]) < 2:
                alone.append(f"{name} ({tasks[0].label})")
            continue
        metrics = chosen_metrics(tasks[0].task, tasks[0].benchmark)
        only = main_of(tasks[0], metrics)
        # All repeats of a task are compared with the same runs, so that their mean is too.
        against = best.setdefault(task_and_repeat(name)[0], best_runs(tasks, only, bases))
        try:
            parts_by = None if found.compares_repeat_of(name) else by
            found.compared.append(compare(tasks, only=only, against=against, by=parts_by))
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
    document = found.document()
    differences = Differences(document, (*problems,), parts, (*untested,))
    without = {
        (task, each.metric, each.first, each.second): left
        for task, each, _ in differences.tested()
        if is_significant(each)
        and (left := without_lost(each, task, found.compared, document)) is not None
    }
    return differences._replace(without=without, bases=bases)


def differences_html(found: Differences) -> Html:
    """The differences in one table, those within parts of the data, and the units that changed."""
    labels = found.labels()
    every = found.document.comparisons
    parts = [sheet_html(sheet, level=3) for sheet in _tested(found, labels)]
    parts += [sheet_html(_sliced(one, every, labels), level=3) for one in every if one.slices]
    changed = [
        sheet_html(_changed(one.task, own, labels))
        for one in every
        if (own := [each for each in one.changed or () if each.metric in one.main[:1]])
    ]
    if changed:
        parts.append(details_html("The units that changed most, by task", *changed))
    notes = [*found.problems]
    if found.parts:
        notes.append(
            "`harness report` with `--by SLICE` adds the differences within each part of the data: "
            f"{', '.join(found.parts)}."
        )
    other = "the one with the best value of the task"
    chosen = (
        "The best run was chosen by its value, so that a small lead may be luck, or because it "
        "lost the harder units: look at what is missing."
    )
    if found.bases:
        other = ", ".join(dict.fromkeys(labels[run] for run in found.bases if run in labels))
        chosen = ""
    about = (
        f"In each metric, each run against {other}, on the n units "
        "that both have: n is smaller than in Results where one of the two lost some. "
        "Below 0 the first of the two has the lower value; ↑ or ↓ says which is better. Given are "
        "intervals of the paired bootstrap over people, p of the paired permutation test, adjusted "
        f"after Holm for all rows here. {chosen}"
    )
    return joined([element("p", about, class_="note"), *parts, notes_html(notes)])


def _tested(found: Differences, labels: Mapping[str, str]) -> Iterator[Sheet]:
    rows: list[tuple[Cell, ...]] = []
    notes = []
    for one in found.document.comparisons:
        for each in one.differences:
            metric = metric_name(each.metric, one.runs[0].metrics[each.metric])
            rows.append((one.task, _pair(each, labels), metric, *_numbers(each)))
        if one.oracle and (against := {each.metric for each in one.differences}):
            pooled = ", ".join(sorted(against & {*one.oracle.metrics}))
            notes += [f"{one.task}, {pooled}: {POOLED}."] if pooled else []
        said = [*one.doubts, *missing_tests(one.differences)]
        notes += [f"{one.task}: {line}" for line in said]
        if any(each.p is not None and each.p_holm is None for each in one.differences):
            notes.append(f"{one.task}: tested is the mean over repeats, not a repeat alone.")
    for mean in found.document.mean_differences or ():
        each = mean.difference
        metric = f"{each.metric} {'↑' if mean.higher_is_better else '↓'}"
        name = f"{mean.name} (mean of {len(mean.tasks)} {mean.over})"
        rows.append((name, _pair(each, labels), metric, *_numbers(each)))
        notes += [f"{name}: {line}" for line in missing_tests([each])]
        if mean.deviations is not UNSET:
            of_runs = (f"{labels[run]} {number(sd)}" for run, sd in mean.deviations.items())
            notes.append(f"{name}, {each.metric}: deviation {', '.join(of_runs)}")
    notes += [
        f"{each.task}, {each.metric}, {each.winner} against {each.loser}: {each.without}."
        for each in found.established()
        if each.without
    ]
    if rows or notes:
        columns = ("task", "difference", "metric", *NUMBERS)
        yield Sheet(title="", columns=columns, rows=tuple(rows), notes=tuple(notes), digits=3)


def _sliced(one: Comparison, every: Sequence[Comparison], labels: Mapping[str, str]) -> Sheet:
    parts = one.slices or ()
    without = [
        f"{part.slice} {part.value}, {line}"
        for part in parts
        for line in missing_tests(part.differences)
    ]
    return Sheet(
        title=slices_title(one, every),
        columns=(parts[0].slice, "difference", "metric", *NUMBERS), digits=3,
        rows=tuple(
            (part.value, _pair(each, labels), each.metric, *_numbers(each))
            for part in parts
            for each in part.differences
        ),
        notes=tuple(without),
    )  # fmt: skip


def _changed(task: str, changed: Sequence[ChangedUnits], labels: Mapping[str, str]) -> Sheet:
    """The largest changes of each pair of runs, with the command that shows the first run's."""
    rows: list[tuple[Cell, ...]] = [
        (
            unit.unit, _pair(each, labels), unit.first - unit.second,
            unit.first, unit.second, unit.commands[0],
        )
        for each in changed
        for unit in each.largest
    ]  # fmt: skip
    notes = tuple(
        f"{labels[each.first]} against {labels[each.second]}, {each.metric}: {each.better:,} "
        f"better, {each.worse:,} worse, {each.same:,} the same"
        for each in changed
    )
    columns = ("unit", "difference", "change", "first", "second", "shown by")
    return Sheet(title=task, columns=columns, rows=tuple(rows), digits=3, notes=notes)


def _pair(each: Difference | ChangedUnits, labels: Mapping[str, str]) -> str:
    return f"{labels[each.first]} − {labels[each.second]}"


def _numbers(each: Difference) -> tuple[Cell, ...]:
    return each.value, *(each.interval or (None, None)), each.n, each.p, each.p_holm
