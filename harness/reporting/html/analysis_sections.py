"""What the analyses of plugins show in a report; one that fails costs its own place alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from harness.analysis.report_notes import told_apart, with_notes
from harness.base.errors import HarnessError, PluginError
from harness.contracts.report import Sheet
from harness.registry.data_tools import make_tool, run_tool
from harness.registry.hookspecs import ANY_BENCHMARK
from harness.reporting.html.figure_html import report_html
from harness.reporting.html.key_words import KeyWords
from harness.reporting.html.markup import Html, element, joined
from harness.reporting.html.reported_run import ReportedRun, runs_together
from harness.reporting.html.sheet_html import notes_html
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.registry import AnalysisRegistration, Plugins
    from harness.scoring.finished_task import FinishedTask

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
        title = element("summary", f"{len(silent)} of {len(registrations)} analyses are not shown")
        parts.append(element("details", title, element("ul", *silent)))
    return joined(parts)


def _report(
    registration: AnalysisRegistration,
    tasks: Sequence[FinishedTask],
    options: Mapping[str, Any],
    shown: list[Sheet],
) -> Html:
    analysis: Any = make_tool(registration)
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
