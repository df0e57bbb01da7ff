"""The first screen of a report: what was measured, on whom, and the answer in one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.contracts.published import PublishedResult
from harness.contracts.stage import CANDIDATE
from harness.reporting.html.markup import Html, element, joined
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.result_lines import Line, lines_of
from harness.reporting.html.result_matrix import conditions_of, matrix_html
from harness.reporting.html.run_differences import Differences
from harness.reporting.html.sheet_html import Entry, entries_html, notes_html
from harness.reporting.html.untested_rows import untested
from harness.reporting.html.verdict import verdict_html
from harness.reporting.tables import data_name, missing_share, thought_out
from harness.reporting.text import NOTHING, number, reasons, share
from harness.scoring.paired_differences import is_established
from harness.scoring.summary import RoleUse, TaskSummary, main_metrics
from harness.tasks.repeats import task_and_repeat

TOGETHER = (
    "; against what these runs found together, so that it stands here and not in a summary; the "
    "first repeat counts"
)

LOOSE = 0.1
"""If a larger share of the replies was not read, or needed help, a report says so."""

UNDONE, UNLIKE = 2.0, 1.0
"""How much a run that is not done, and results without a comparison or an interval, weigh next to
a share that is missing."""

HELPED = ("brackets", "repaired")
"""The rungs of replies that were not in the form that was asked for."""

MOST_NEXT = 8
"""More things to look at are shown when the reader asks for them."""

FEW_TASKS = 4
"""What more tasks ask is shown when the reader asks for it."""


class Doubt(NamedTuple):
    """Something to look at: how much it weighs, whose it is, and the part of the page about it."""

    weight: float
    whose: str
    what: str
    part: str


def first_screen(runs: Sequence[ReportedRun], found: Differences) -> Html:
    """The verdict, the stamp, what was measured on whom, and the answer in one table."""
    lines = lines_of(runs, found)
    measured = _measured(runs)
    asked = _listed(measured)
    if len(measured) > FEW_TASKS:
        title = f"What each of the {len(measured)} tasks asks, and of whom"
        asked = element("details", element("summary", title), asked)
    table = matrix_html(runs, lines, untested(runs, found))
    return joined([
        verdict_html(runs, lines, found), _stamp(runs),
        element("div", table, *_key(runs, lines), class_="results"),
        asked,
    ])  # fmt: skip


def _key(runs: Sequence[ReportedRun], lines: Sequence[Line]) -> Iterator[Html]:
    """What the metrics, rules and marks of the table are, and all published results."""
    meanings = {
        line.shown_metric: f"{line.about}{TOGETHER if line.together else ''}"
        for line in lines
        if line.about
    }
    meanings |= {rule.name: f"by rule: {rule.about}" for line in lines for rule in line.rules[:1]}
    pairs = (joined([element("dt", name), element("dd", told)]) for name, told in meanings.items())
    yield element("dl", *pairs, class_="measured note")
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


def look_next(runs: Sequence[ReportedRun], found: Differences) -> Html:
    """What the numbers leave open, the worst first, with the part of the page that says more."""
    doubts = sorted([*_doubts(runs), *_apart(runs, found), *_open_differences(found)],
                    key=lambda doubt: -doubt.weight)  # fmt: skip
    if not doubts:
        doubts = [Doubt(0, "", "Nothing is missing, unread or unlike: read some samples.",
                        "samples")]  # fmt: skip
    lines = [
        element("li", f"{one.whose}: " if one.whose else "", f"{one.what} ", _link(one.part))
        for one in doubts
    ]
    if len(lines) <= 2 * MOST_NEXT:
        return element("ul", *lines)
    more = element("summary", f"{len(lines) - MOST_NEXT:,} smaller ones")
    return joined([
        element("ul", *lines[:MOST_NEXT]),
        element("details", more, element("ul", *lines[MOST_NEXT:])),
    ])  # fmt: skip


def _link(part: str) -> Html:
    names = {"samples": "see its samples", "failures": "see the failures", "reading":
             "see how answers were read", "provenance": "see the command",
             "differences": "see the differences"}  # fmt: skip
    place = "samples" if part == "failures" else part
    return element("a", names[part], href=f"#{place}", data_show=part)


def _doubts(runs: Sequence[ReportedRun]) -> Iterator[Doubt]:
    for run in runs:
        if run.manifest.status != "done":
            status = run.manifest.status.replace("_", " ")
            yield Doubt(UNDONE, run.label, f"the run is {status}.", "provenance")
        for summary in run.summaries:
            whose = f"{run.label} on {summary.task}"
            for name in main_metrics(summary.main, summary.metrics)[:1]:
                result = summary.metrics[name]
                if (lost := missing_share(result)) > 0:
                    causes = f" ({reasons(result.missing)})" if result.missing else ""
                    what = f"{share(lost, 1)} of {name} is missing{causes}."
                    yield Doubt(lost, whose, what, "failures")
                if result.value is not None and result.interval is None:
                    what = f"{name} has no interval: {result.no_interval}."
                    yield Doubt(UNLIKE, whose, what, "samples")
            if spent := thought_out(summary):
                what = f"{spent:,} replies spent their limit on thinking."
                yield Doubt(UNLIKE, whose, what, "reading")
            for stage, use in _candidate(summary):
                calls, read = use.calls, sum(use.rungs.values())
                if calls - read > LOOSE * calls:
                    part = share(calls - read, calls)
                    what = f"{part} of the replies of {stage} were not read."
                    yield Doubt((calls - read) / calls, whose, what, "reading")
                if (helped := sum(use.rungs.get(rung, 0) for rung in HELPED)) > LOOSE * read:
                    part = share(helped, read)
                    what = f"{part} of the replies of {stage} needed repair."
                    yield Doubt(helped / read / 2, whose, what, "reading")


def _candidate(summary: TaskSummary) -> Iterator[tuple[str, RoleUse]]:
    for name, stage in summary.stages.items():
        if CANDIDATE in stage.roles:
            yield name, stage.roles[CANDIDATE]


def _apart(runs: Sequence[ReportedRun], found: Differences) -> Iterator[Doubt]:
    """Which runs were not tested, once for all tasks of one reason."""
    tasks: dict[str, list[str]] = {}
    for task, why in untested(runs, found).items():
        tasks.setdefault(why, []).append(task)
    for why, named in tasks.items():
        yield Doubt(UNLIKE, ", ".join(named), why, "differences")


def _open_differences(found: Differences) -> Iterator[Doubt]:
    """The comparisons that are not decided, in one line."""
    every = [each for _, each, _ in found.tested() if each.interval is not None]
    undecided = [each.users for each in every if not is_established(each)]
    if undecided:
        least, most = min(undecided), max(undecided)
        people = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        what = (
            f"{len(undecided):,} of {len(every):,} comparisons establish no difference on {people} "
            "people: more people would narrow the intervals."
        )
        yield Doubt(UNLIKE, "", what, "differences")
