"""The first screen of a report: what was measured, on whom, and the answer in one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.contracts.published import PublishedResult
from harness.contracts.stage import CANDIDATE
from harness.reporting.html.markup import Html, element, joined
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.result_lines import Line, lines_of
from harness.reporting.html.result_matrix import conditions_of, matrix_html
from harness.reporting.html.run_differences import Differences
from harness.reporting.html.sheet_html import Entry, entries_html, notes_html
from harness.reporting.html.untested import why_untested
from harness.reporting.html.verdict import verdict_html
from harness.reporting.tables import data_name
from harness.reporting.text import NOTHING, number
from harness.scoring.summary import TaskSummary
from harness.tasks.repeats import task_and_repeat

FEW_TASKS = 4
"""What more tasks ask is shown when the reader asks for it."""


def first_screen(runs: Sequence[ReportedRun], found: Differences) -> Html:
    """The verdict, the stamp, what was measured on whom, and the answer in one table."""
    lines = lines_of(runs, found)
    measured = _measured(runs)
    asked = _listed(measured)
    if len(measured) > FEW_TASKS:
        title = f"What each of the {len(measured)} tasks asks, and of whom"
        asked = element("details", element("summary", title), asked)
    table = matrix_html(runs, lines, why_untested(found.untested))
    return joined([
        verdict_html(runs, lines, found), _stamp(runs),
        element("div", table, *_notes(lines), class_="results"),
        asked,
    ])  # fmt: skip


def _notes(lines: Sequence[Line]) -> Iterator[Html]:
    """What the marks of the table are, and all published results."""
    notes = [
        "In brackets is the 95% interval over people of each value alone; ↑ means that more is "
        "better, ↓ that less is. n is how many people or other units each model was asked about; "
        "a cell says where fewer have a value, or parts of some were lost.",
    ]
    if any(line.better for line in lines):
        notes.append("In bold is a value that is established as better than all others.")
    if any(one.repeats > 1 for line in lines for one in line.values.values()):
        notes.append(
            "×2 is the mean over two repeats, and counts each unit twice. The figures of each "
            "benchmark, and comparisons with a run without repeats, are of the first one alone."
        )
    if pooled := dict.fromkeys(line.metric for line in lines if line.together):
        notes.append(
            f"{', '.join(pooled)}: against what these runs found together, in their first repeat."
        )
    published = list(dict.fromkeys(one for line in lines for one in line.published))
    conditions = conditions_of(lines)
    notes += [f"({at}) A run may stand next to these if: {why}." for why, at in conditions.items()]
    yield notes_html(notes)
    if published:
        title = f"The {len(published):,} published results"
        yield element("details", element("summary", title), _published(published, conditions))


def _published(results: Sequence[PublishedResult], conditions: Mapping[str, int]) -> Html:
    rows = []
    for one in results:
        bounds = one.low is not None and one.high is not None
        value = number(one.value) + (f" [{number(one.low)}, {number(one.high)}]" if bounds else "")
        see = f"; see ({conditions[one.comparable_if]})" if one.comparable_if else ""
        rows.append([
            Entry(one.model), Entry(one.task), Entry(one.metric), Entry(value, one.value),
            Entry(NOTHING if one.n is None else f"{one.n:,}", one.n), Entry(f"{one.source}{see}"),
        ])  # fmt: skip
    columns = ("model", "task", "metric", "value", "n", "published in")
    return entries_html("Published results", columns, rows, marks=["published"] * len(rows),
                        numbers=(False, False, False, True, True, False))  # fmt: skip


def _stamp(runs: Sequence[ReportedRun]) -> Html | None:
    """The warning above everything, with the runs and tasks that each reason is of."""
    because: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for summary in run.summaries:
            for why in summary.not_comparable_because:
                because.setdefault(why, {}).setdefault(run.label, []).append(summary.task)
    if not because:
        return None
    of_run = {run.label: len(run.summaries) for run in runs if run.summaries}
    lines = []
    for why, whose in because.items():
        named = [
            label if len(tasks) == of_run[label] else f"{label} on {', '.join(tasks)}"
            for label, tasks in whose.items()
        ]
        alike = {tuple(dict.fromkeys(task_and_repeat(one)[0] for one in tasks))
                 for tasks in whose.values()}  # fmt: skip
        if whose.keys() == of_run.keys() and len(alike) == 1:
            named = [f"on {', '.join(*alike)}"] if named != [*of_run] else named
        everywhere = named == [*of_run]
        lines.append(element("li", why if everywhere else f"{why} ({'; '.join(named)})"))
    title = element("strong", "NOT COMPARABLE with published results")
    return element("div", title, element("ul", *lines), class_="stamp", role="note")


def _listed(measured: Sequence[tuple[str, Html]]) -> Html:
    if not measured:
        return element("p", "No task of these runs is finished.", class_="note")
    pairs = (joined([element("dt", name), about]) for name, about in measured)
    return element("dl", *pairs, class_="measured")


def _measured(runs: Sequence[ReportedRun]) -> list[tuple[str, Html]]:
    """What each task asks, and of whom."""
    first: dict[str, tuple[ReportedRun, TaskSummary]] = {}
    for run in runs:
        for summary in run.summaries:
            first.setdefault(task_and_repeat(summary.task)[0], (run, summary))
    found = []
    for name, (run, summary) in first.items():
        like = [
            each for one in runs for each in one.summaries
            if task_and_repeat(each.task)[0] == name and each.roles.keys() >= summary.roles.keys()
        ]  # fmt: skip
        about = str(run.manifest.tasks[summary.task].definition.get("description", ""))
        people = max((each.users for each in summary.metrics.values()), default=0)
        alone = all(each.users == each.n for each in summary.metrics.values())
        whom = f"{summary.units:,} units, of {people:,} people with a score"
        others = [
            f"{role}: {', '.join(dict.fromkeys(each.roles[role] for each in like))}"
            for role in summary.roles
            if role != CANDIDATE
        ]
        facts = [
            f"{summary.units:,} people" if alone else whom,
            f"data: {data_name(summary.data)}",
            *others,
        ]
        small = element("span", f"{'; '.join(facts)}.", class_="note")
        found.append((name, element("dd", f"{about} ", small)))
    return found
