"""The parts of a report about runs: repeats, replies, judges, and the analyses of plugins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from harness.analysis.report_notes import told_apart, with_notes
from harness.base.errors import HarnessError, PluginError
from harness.contracts.report import Cell, Sheet
from harness.registry import ANY_BENCHMARK, made
from harness.registry.data_tools import run_tool
from harness.reporting.html.key_words import KeyWords
from harness.reporting.html.markup import Html, details_html, element, joined
from harness.reporting.html.report_html import notes_html, report_html, sheet_html
from harness.reporting.html.reported_run import ReportedRun, runs_together
from harness.reporting.html.samples import Samples
from harness.reporting.tables import metric_name
from harness.reporting.text import reasons
from harness.scoring.summary import main_metrics, over_repeats
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.registry import AnalysisRegistration, Plugins
    from harness.scoring.finished_task import FinishedTask

RUNGS = ("strict", "fenced", "brackets", "repaired", "regex", "text", "rule")
PANEL, PEOPLE = "judge-panel", "judge-agreement"


def repeats_html(runs: Sequence[ReportedRun]) -> Html | None:
    """The mean and deviation of main metrics over repeats; None if no task was repeated."""
    rows: list[tuple[Cell, ...]] = []
    problems = []
    for run in runs:
        mains = {name for each in run.summaries for name in main_metrics(each.main, each.metrics)}
        try:
            repeated = over_repeats(run.summaries)
        except HarnessError as error:
            problems.append(f"{run.label}: {error}")
            continue
        rows += [
            (run.label, task.task, metric_name(name, spread), spread.mean, spread.sd, spread.n)
            for task in repeated
            for name, spread in task.metrics.items()
            if name in mains and not spread.baseline
        ]
    if not rows:
        return None
    columns = ("model", "task", "metric", "mean", "deviation", "repeats with a value")
    note = ("The deviation shows how much a value changes when the same questions are asked again. "
            "The intervals of Results show how much it may change with other people: the two do "
            "not mix. `harness show` has the other metrics.")  # fmt: skip
    sheet = Sheet(title="", columns=columns, rows=tuple(rows), notes=(note, *problems), digits=3)
    return sheet_html(sheet)


def reading_html(runs: Sequence[ReportedRun]) -> Html:
    """How replies were read, by model, task, stage and role: the share of each rung, and losses."""
    stages = [
        (run.label, summary.task, name, role, use, stage)
        for run in runs
        for summary in run.summaries
        for name, stage in summary.stages.items()
        for role, use in stage.roles.items()
    ]
    rungs = [rung for rung in RUNGS if any(rung in use.rungs for *_, use, _ in stages)]
    rungs += sorted({rung for *_, use, _ in stages for rung in use.rungs} - {*rungs})
    columns = ("model", "task", "stage, role", "replies", "not read, %", "truncated, %",
               "refused, %", *(f"{rung}, %" for rung in rungs), "items", "without a value",
               "because")  # fmt: skip
    unread, read = list[tuple[Cell, ...]](), list[tuple[Cell, ...]]()
    for label, task, name, role, use, stage in stages:
        many = sum(use.rungs.values())
        lost, why = stage.items - stage.done, reasons(stage.failures)
        shares = (use.calls - many, use.truncated, use.refused,
                  *(use.rungs.get(rung, 0) for rung in rungs))  # fmt: skip
        row = (
            label,
            task,
            f"{name}, {role}",
            use.calls,
            *(
                "unknown" if each is UNSET else 100 * each / use.calls if each else None
                for each in shares
            ),
            stage.items,
            lost,
            why or None,
        )
        (read if many == use.calls and not lost else unread).append(row)
    unread.sort(key=lambda row: -float(row[4] or 0))
    notes = (
        "Of the replies, the share that was not read, that reached its token limit (truncated), "
        "that a content filter stopped (refused), and that each step of the parsing ladder read: "
        "strict is what was asked for, and each step to its right needed more help. Some stages "
        "read truncated replies as far as they go.",
        "Many stages ask again if a reply was not read: both replies are counted, and the item has "
        "a value if one of them was read. Items without a value are given with their "
        "causes.",
    )
    first, rest = (unread, read) if unread else (read, [])
    shown = sheet_html(Sheet(title="", columns=columns, rows=tuple(first)))
    if not rest:
        return joined([notes_html(notes), shown])
    folded = sheet_html(Sheet(title="", columns=columns, rows=tuple(rest)))
    title = f"{len(rest):,} stages of which each reply was read"
    return joined([notes_html(notes), shown, details_html(title, folded)])


def judges_html(
    runs: Sequence[ReportedRun], samples: Samples, plugins: Plugins, labels: Sequence[str] = ()
) -> Html | None:
    """Which judge decided what, and how far panels agree, and people; None without judges."""
    rows: list[tuple[Cell, ...]] = []
    panels = []
    for run in runs:
        for task in run.tasks:
            judging = {role for stage in task.benchmark.stages for role in stage.judges}
            for role in sorted(judging & task.summary.roles.keys()):
                entry = run.manifest.player(task.task.name, role)
                members = ", ".join((entry.identity.get("members") or {}) if entry else ())
                counts = samples.verdicts(task, role)
                rows.append((run.label, task.task.name, role, task.summary.roles[role],
                             counts["asked"], counts["none"], counts["votes"],
                             members or None))  # fmt: skip
                panels += [task] if counts["votes"] else []
    if not rows:
        return None
    columns = ("model", "task", "role", "judge", "questions", "no verdict", "votes", "members")
    rows = rows if panels else [row[:-2] for row in rows]
    sheet = Sheet(title="", columns=columns[: len(rows[0])], rows=tuple(rows))
    sure: list[Html] = []
    if panels:
        sure.append(analyses_html(_named(plugins, PANEL), panels))
    if labels:
        tasks = [task for run in runs for task in run.tasks]
        sure.append(analyses_html(_named(plugins, PEOPLE), tasks, {"labels": tuple(labels)}))
    if not sure:
        sure.append(notes_html([
            "One judge decides alone here, so that nothing says how sure it is: a panel of judges "
            "(--judge panel:…) or people's labels (--labels FILE) would."
        ]))  # fmt: skip
    return joined([sheet_html(sheet), *sure])


def _named(plugins: Plugins, name: str) -> list[AnalysisRegistration]:
    return [plugins.analyses[name]] if name in plugins.analyses else []


STAMP = "NOT COMPARABLE"
FOREST = "forest"
NO_WORDS = KeyWords()


def benchmark_sections(
    runs: Sequence[ReportedRun], plugins: Plugins, words: KeyWords
) -> Iterator[tuple[str, Html]]:
    """Each benchmark of the runs with the analyses of its plugin, or why there are none."""
    tasks = [task for run in runs for task in run.tasks]
    for name in dict.fromkeys(summary.benchmark for run in runs for summary in run.summaries):
        of_benchmark = [task for task in tasks if task.benchmark.name == name]
        if not of_benchmark:
            try:
                plugins.benchmark(name)
                why = "none of its tasks could be read; the parts above say why"
            except HarnessError as error:
                why = f"{error.problem}{f'; {error.hint}' if error.hint else ''}"
            yield name, notes_html([f"Its analyses and samples are missing: {why}."])
            continue
        benchmark = of_benchmark[0].benchmark
        shown = [one for one in in_reports(plugins, name) if one.benchmark == name]
        forest = [one for one in in_reports(plugins, name) if one.name == FOREST]
        about = " ".join(filter(None, (benchmark.description, benchmark.paper)))
        analyses = analyses_html([*forest, *shown], of_benchmark, words=words.of(name))
        yield name, joined([element("p", about, class_="note"), analyses])


def in_reports(plugins: Plugins, benchmark: str) -> list[AnalysisRegistration]:
    """The analyses that a report shows for a benchmark, in the order of their registration."""
    return [
        one
        for one in plugins.analyses.everything()
        if one.report and one.benchmark in (benchmark, ANY_BENCHMARK)
    ]


def analyses_html(
    registrations: Sequence[AnalysisRegistration],
    tasks: Sequence[FinishedTask],
    options: Mapping[str, Any] = MappingProxyType({}),
    words: KeyWords = NO_WORDS,
) -> Html:
    """The analyses of these tasks; runs that cannot be compared stand apart, with the reasons."""
    # Repeats of a task are no tasks of their own.
    first = [task for task in tasks if task_and_repeat(task.task.name)[1] == 1]
    groups = runs_together(told_apart(first))
    runs = dict.fromkeys(one.label for one in tasks if task_and_repeat(one.task.name)[1] > 1)
    note = (
        f"Of the repeats of {', '.join(runs)} the first one is shown. Its value may differ from "
        "that of the results, the mean over repeats."
    )
    parts: list[Html | None] = [notes_html([note]) if runs else None]
    said: set[str] = set()
    for number, (group, apart) in enumerate(groups):
        labels = ", ".join(dict.fromkeys(task.label for task in group))
        if number:
            why = "; ".join(apart)
            text = f"Apart, as this cannot be compared with what stands before: {labels}"
            parts += [element("h3", text), element("p", why, class_="warning") if why else None]
        elif len(groups) > 1:
            parts.append(element("h3", labels))
        parts.append(_group_html(registrations, group, options, words, said))
    return joined(parts)


def _group_html(
    registrations: Sequence[AnalysisRegistration],
    tasks: Sequence[FinishedTask],
    options: Mapping[str, Any],
    words: KeyWords,
    said: set[str],
) -> Html:
    parts, silent = [], []
    shown: list[Sheet] = []
    for registration in registrations:
        try:
            report = words.key(_report(registration, tasks, options, shown), said)
        except HarnessError as error:
            found = f" ({error.found})" if error.found and "\n" not in error.found else ""
            why = f"{error.problem}{found}"
            if isinstance(error, PluginError):
                why += f"; `harness analyse {registration.name} RUN` shows the error in full"
            silent.append(element("li", element("strong", registration.name), f": {why}"))
            continue
        title = registration.description or registration.name
        named = element("span", f" ({registration.name})", class_="note")
        parts += [element("h3", title[:1].upper() + title[1:], named), report]
    if silent:
        title = f"{len(silent)} of {len(registrations)} analyses are not shown"
        parts.append(details_html(title, element("ul", *silent)))
    return joined(parts)


def _report(
    registration: AnalysisRegistration,
    tasks: Sequence[FinishedTask],
    options: Mapping[str, Any],
    shown: list[Sheet],
) -> Html:
    analysis: Any = made(registration)
    fields = msgspec.structs.fields(analysis.options)
    if needed := [one.name for one in fields if one.required and one.name not in options]:
        raise PluginError(
            f"it must be given {', '.join(needed)}, which a report cannot do",
            expected="an analysis without required options, or one without `report=True`",
        )
    report = run_tool(
        registration,
        lambda: analysis.run(tasks, msgspec.convert(dict(options), analysis.options)),
    )
    noted = with_notes(report, tasks, repeats=False)
    # The stamp is at each figure, and above everything: a third one would hide the other notes.
    notes = tuple(note for note in noted.notes if not note.startswith(STAMP))
    # The data of the forest's figures are what its tables have, and Results has the rest.
    sheets = () if registration.name == FOREST and noted.figures else noted.sheets
    new = [sheet for sheet in sheets if sheet not in shown]
    shown += new
    noted = msgspec.structs.replace(noted, notes=notes, sheets=tuple(new))
    return run_tool(registration, lambda: report_html(noted))  # type: ignore[arg-type,return-value]
