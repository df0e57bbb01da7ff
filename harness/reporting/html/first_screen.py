"""The first screen of a report: what was measured, on whom, and the answer in one table."""

from __future__ import annotations

from collections.abc import Sequence

from harness.contracts.stage import CANDIDATE
from harness.reporting.html.markup import Html, element, joined
from harness.reporting.html.provenance import chosen_of
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.result_lines import Line, lines_of
from harness.reporting.html.result_matrix import conditions_of, matrix_html
from harness.reporting.html.run_differences import Differences
from harness.reporting.html.sheet_html import in_words, notes_html
from harness.reporting.html.untested import untested_pairs
from harness.reporting.html.verdict import verdict_html
from harness.reporting.tables import data_name
from harness.scoring.summary import TaskSummary, main_metrics
from harness.tasks.repeats import task_and_repeat

CONFIDENCE = 0.95
"""The confidence of intervals where no task is finished."""

FEW_TASKS = 4
"""What more tasks ask is shown when the reader asks for it."""


def first_screen(runs: Sequence[ReportedRun], found: Differences) -> Html:
    """The verdict, the stamp, what was measured on whom, and the answer in one table."""
    lines = lines_of(runs, found)
    asked = element("p", "No task of these runs is finished.", class_="note")
    if measured := _measured(runs):
        pairs = (joined([element("dt", name), about]) for name, about in measured)
        title = "What each task asks, and of whom"
        asked = element("details", element("summary", title),
                        element("dl", *pairs, class_="measured"),
                        open=len(measured) <= FEW_TASKS)  # fmt: skip
    table = matrix_html(runs, lines, untested_pairs(found.untested))
    return joined([
        verdict_html(runs, lines, found), _stamp(runs),
        element("div", table, _notes(runs, lines), class_="results"),
        asked,
    ])  # fmt: skip


def _notes(runs: Sequence[ReportedRun], lines: Sequence[Line]) -> Html:
    metrics = (one for run in runs for each in run.summaries for one in each.metrics.values())
    confidences = sorted({metric.confidence for metric in metrics}) or [CONFIDENCE]
    surely = " or ".join(f"{confidence:.0%}" for confidence in confidences)
    bound = " or ".join(f"{1 - confidence:.3g}" for confidence in confidences)
    which = ", as the task says" if len(confidences) > 1 else ""
    notes = [
        f"In brackets is the {surely} interval of each value alone, over people or what the "
        "section of the benchmark names; ↑ means that more is better, ↓ that less is. Underlined "
        "is the best value of a row, if it was tested against the others and stays the best "
        "however lost units count and on the units that both runs have; in bold if established as "
        "better than each other run with a value, also without lost units. A difference is "
        "established if its interval leaves out 0 and its p "
        f"value after Holm, which is raised for the number of tests, is below {bound}{which}. The "
        "first metric of a task decides which value is best there.",
        "n is how many units, such as people, were asked about. A value says how many of them were "
        "lost and why, and leaves them out unless it says as what they count.",
    ]
    if any(one.lost for line in lines for one in line.values.values()):
        notes.append(
            "A unit is lost if nothing that a model answered about it could be used. A value may "
            "also lack parts of its units, such as one of several questions about a person, while "
            "no unit is missing; one reply that was not read may cost several parts."
        )
    if any(one.repeats > 1 for line in lines for one in line.values.values()):
        notes.append(
            "×2 is the mean over two repeats, and counts each unit twice. The figures of each "
            "benchmark, and comparisons with a run without repeats, are of the first one alone."
        )
    conditions = conditions_of(lines)
    notes += [f"({at}) A run may stand next to these if: {why}." for why, at in conditions.items()]
    return notes_html(notes)


def _stamp(runs: Sequence[ReportedRun]) -> Html | None:
    """The warning above everything, with the runs and tasks that each reason is of."""
    because: dict[str, dict[str, set[str]]] = {}
    finished: dict[str, set[str]] = {}
    for run in runs:
        for summary in run.summaries:
            task = task_and_repeat(summary.task)[0]
            finished.setdefault(run.label, set()).add(task)
            for why in summary.not_comparable_because:
                because.setdefault(why, {}).setdefault(run.label, set()).add(task)
    if not because:
        return None
    lines = []
    for why, whose in because.items():
        named = [
            label if tasks == finished[label] else f"{label} on {', '.join(sorted(tasks))}"
            for label, tasks in whose.items()
        ]
        first, *others = whose.values()
        if whose.keys() == finished.keys() and all(tasks == first for tasks in others):
            named = [f"on {', '.join(sorted(first))}"]
        of = "" if whose == finished else f" ({'; '.join(named)})"
        lines.append(element("li", f"{in_words(why)}{of}"))
    title = element("strong", "NOT COMPARABLE with published results")
    return element("div", title, element("ul", *lines), class_="stamp", role="note")


def _measured(runs: Sequence[ReportedRun]) -> list[tuple[str, Html]]:
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
        others = [
            f"{role}: {', '.join(dict.fromkeys(each.roles[role] for each in like))}"
            for role in summary.roles
            if role != CANDIDATE
        ]
        chosen = chosen_of(run.manifest.tasks[summary.task].data)
        for main in main_metrics(summary.main, summary.metrics)[:1]:
            result = summary.metrics[main]
            many = result.n + sum(result.missing.values())
            of = f" of {summary.units:,}" if many != summary.units else ""
            but = " (the others do not count in this metric)" if of else ""
            chosen.append(f"n of {main}: {many:,}{of} units{but}")
        facts = [*chosen, f"data: {data_name(summary.data)}", *others]
        small = element("span", f"{'; '.join(facts)}.", class_="note")
        found.append((name, element("dd", f"{about} ", small)))
    return found
