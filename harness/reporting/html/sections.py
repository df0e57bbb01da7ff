"""The parts of a report below its picture: differences, failures, costs, and analyses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from harness.analysis.report_notes import told_apart
from harness.base.errors import HarnessError, PluginError
from harness.calls.pricing import together
from harness.comparison.document import ComparisonDocument, Difference
from harness.contracts.report import Cell, Report, Sheet
from harness.registry import ANY_BENCHMARK, AnalysisRegistration, Plugins, made
from harness.registry.data_tools import run_tool
from harness.reporting.html.page import Image, Table, image_of, table_of
from harness.reporting.html.reported_run import ReportedRun, runs_together
from harness.reporting.html.results import Result
from harness.reporting.run_lines import paid, tokens
from harness.reporting.tables import metric_name
from harness.reporting.text import duration, reasons
from harness.scoring.finished_task import FinishedTask
from harness.scoring.run_costs import costs_of
from harness.scoring.summary import StageSummary
from harness.tasks.repeats import task_and_repeat

PANEL, PEOPLE = "judge-panel", "judge-agreement"
MOST_BARS = 40


def values_table(results: Sequence[Result]) -> Table:
    """What the picture shows, in numbers: a row for each value."""
    rows: list[tuple[Cell, ...]] = []
    for one in results:
        metric = metric_name(one.metric, one) if one.metric else ""
        for label, value in one.values.items():
            ends = value.interval or (None, None)
            run = f"{label} ×{value.repeats}" if value.repeats > 1 else label
            causes = reasons(value.causes) or None
            rows.append((one.name, metric, run, value.value, *ends, value.of or None,
                         sum(value.causes.values()), causes or value.why or None,
                         value.other if value.missing else None))  # fmt: skip
        rows += [(one.name, metric, rule.name, rule.value, *[None] * 6) for rule in one.rules]
        if best := one.best_published:
            named = f"{best.model}, {best.source}{'' if one.comparable else ', not comparable'}"
            rows.append((one.name, metric, named, best.value, best.low, best.high, best.n,
                         None, None, None))  # fmt: skip
    columns = ("task", "metric", "run, rule or paper", "value", "low", "high", "units", "missing",
               "because", "by the other policy")  # fmt: skip
    levels = {f"{value.confidence:.0%}" for one in results for value in one.values.values()}
    note = (
        f"Low and high are the {' or '.join(sorted(levels))} interval of each value alone, over "
        "people. By the other policy what is missing counts, or is left out if it counts here."
    )
    return table_of(Sheet(title="", columns=columns, rows=tuple(rows), notes=(note,), digits=3))


PAIR = ("difference", "value", "low", "high", "n", "p", "p (Holm)")


def difference_tables(document: ComparisonDocument) -> Iterator[Table]:
    """The differences in numbers, then those within parts of the data."""
    labels = document.labels()
    rows: list[tuple[Cell, ...]] = [
        (one.name, metric_name(one.metric, one), *numbers_of(each, labels))
        for one in document.decisions()
        for each in one.differences
    ]
    yield table_of(Sheet(title="", columns=("task", "metric", *PAIR), rows=tuple(rows), digits=3))
    for one in document.comparisons:
        if one.slices:
            part = one.slices[0].slice
            parts = tuple(
                (each.value, difference.metric, *numbers_of(difference, labels))
                for each in one.slices
                for difference in each.differences
            )
            columns = (part, "metric", *PAIR)
            title = f"{one.task} by {part}"
            yield table_of(Sheet(title=title, columns=columns, rows=parts, digits=3))


def numbers_of(each: Difference, labels: Mapping[str, str]) -> tuple[Cell, ...]:
    """The cells of a difference in a table with the columns `PAIR`."""
    pair = f"{labels[each.first]} − {labels[each.second]}"
    return pair, each.value, *(each.interval or (None, None)), each.n, each.p, each.p_holm


class Failures(NamedTuple):
    """What has no value in each stage of a run, by cause, the largest share first.

    A whole bar is the share `end`. `causes` are by name their colour and meaning. `more` stages
    have no bar.
    """

    bars: list[tuple[str, StageSummary]]
    causes: dict[str, tuple[int, str]]
    end: float
    more: int


def failures_of(runs: Sequence[ReportedRun], words: Mapping[str, str]) -> Failures | None:
    """What has no value and why, with the meanings of `words`; None if everything has one."""
    bars = [
        (f"{run.label} {summary.task} / {name}", stage)
        for run in runs
        for summary in run.summaries
        for name, stage in summary.stages.items()
        if stage.items > stage.done
    ]
    if not bars:
        return None
    bars.sort(key=lambda one: one[1].done / one[1].items)
    largest = 1 - bars[0][1].done / bars[0][1].items
    every = dict.fromkeys(cause for _, stage in bars for cause in stage.failures)
    causes = {one: (at, words.get(one, "")) for at, one in enumerate(every)}
    end = next(bound for bound in (0.01, 0.05, 0.1, 0.25, 0.5, 1.0) if bound >= largest)
    return Failures(bars[:MOST_BARS], causes, end, max(0, len(bars) - MOST_BARS))


def costs_table(runs: Sequence[ReportedRun]) -> Table | None:
    """By run how long it took, what it asked, and what was paid; None if nothing was asked."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        uses = [
            use
            for summary in run.summaries
            for stage in summary.stages.values()
            for use in stage.roles.values()
        ]
        calls, stored = sum(use.calls for use in uses), sum(use.from_store for use in uses)
        untold = sum(use.untold + (use.prompt_tokens is None) for use in uses)
        asked, answered = (
            tokens(sum(getattr(use, name) or 0 for use in uses), untold)
            for name in ("prompt_tokens", "completion_tokens")
        )
        own = costs_of(stage for one in run.summaries for stage in one.stages.values())
        cost = together("", own) if own else None
        rows.append((
            run.label, duration(run.seconds), calls, 100 * stored / calls if calls else None,
            asked, answered, f"{paid(cost)} {cost.currency}" if cost else "no prices given",
        ))  # fmt: skip
    if not any(row[2] for row in rows):
        return None
    columns = ("run", "took, min:s", "calls", "from the store, %", "tokens in", "tokens out",
               "paid")  # fmt: skip
    return table_of(Sheet(title="", columns=columns, rows=tuple(rows)))


class Shown(NamedTuple):
    """An analysis of runs that can be compared: its figures, its tables, and its notes."""

    title: str
    name: str
    images: list[Image]
    tables: list[Table]
    notes: tuple[str, ...]


def analyses_of(
    runs: Sequence[ReportedRun], plugins: Plugins, labels: Sequence[str]
) -> tuple[list[Shown], list[str]]:
    """The analyses of the benchmarks of the runs and of their judges; why others are not shown."""
    # Repeats of a task are no tasks of their own.
    first = [task for run in runs for task in run.tasks if task_and_repeat(task.task.name)[1] == 1]
    shown: list[Shown] = []
    silent: list[str] = []
    said: list[Table] = []
    for name in dict.fromkeys(summary.benchmark for run in runs for summary in run.summaries):
        own = [task for task in first if task.benchmark.name == name]
        if not own:
            why = "none of its tasks could be read"
            try:
                plugins.benchmark(name)
            except HarnessError as error:
                why = f"{error.problem}{f'; {error.hint}' if error.hint else ''}"
            silent.append(f"{name}: {why}")
            continue
        groups = runs_together(told_apart(own))
        for registration in _wanted(plugins, own, labels):
            for group in groups:
                try:
                    report, images = _report(registration, group, labels)
                except HarnessError as error:
                    found = f" ({error.found})" if error.found and "\n" not in error.found else ""
                    why = f"{registration.name}: {error.problem}{found}"
                    if isinstance(error, PluginError):
                        why += f"; `harness analyse {registration.name} RUN` shows it in full"
                    silent.append(why)
                    continue
                tables = [one for sheet in report.sheets if (one := table_of(sheet)) not in said]
                said += tables
                title = registration.description or registration.name
                of = ", ".join(dict.fromkeys(task.label for task in group))
                title = f"{title[:1].upper()}{title[1:]}{f': {of}' if len(groups) > 1 else ''}"
                shown.append(Shown(title, registration.name, images, tables, report.notes))
    return shown, [*dict.fromkeys(silent)]


def _wanted(
    plugins: Plugins, tasks: Sequence[FinishedTask], labels: Sequence[str]
) -> list[AnalysisRegistration]:
    names = (tasks[0].benchmark.name, ANY_BENCHMARK)
    wanted = [one for one in plugins.analyses.everything() if one.report and one.benchmark in names]
    judging = {role for stage in tasks[0].benchmark.stages for role in stage.judges}
    judges = [task.manifest.player(task.task.name, role) for task in tasks for role in judging]
    panel = any(judge is not None and judge.identity.get("members") for judge in judges)
    more = [*([PANEL] if panel else []), *([PEOPLE] if labels else [])]
    return [*wanted, *(plugins.analyses[name] for name in more if name in plugins.analyses)]


def _report(
    registration: AnalysisRegistration, tasks: Sequence[FinishedTask], labels: Sequence[str]
) -> tuple[Report, list[Image]]:
    analysis: Any = made(registration)
    given = {"labels": tuple(labels)} if registration.name == PEOPLE else {}
    fields = msgspec.structs.fields(analysis.options)
    if needed := [one.name for one in fields if one.required and one.name not in given]:
        raise PluginError(
            f"it must be given {', '.join(needed)}, which a report cannot do",
            expected="an analysis without required options, or one without `report=True`",
        )
    images: list[Image] = []

    def run() -> Report:
        report: Report = analysis.run(tasks, msgspec.convert(given, analysis.options))
        images.extend(map(image_of, report.figures))
        return report

    return run_tool(registration, run), images
