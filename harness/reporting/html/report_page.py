"""The page of `harness report`: one file that shows what runs measured, and how."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.contracts.outcomes import CAUSES
from harness.registry import Plugins
from harness.reporting.html.answers import samples_of
from harness.reporting.html.compared_runs import ComparedRuns, compared_runs
from harness.reporting.html.limits import Limit, limits_of
from harness.reporting.html.page import page_html
from harness.reporting.html.picture import MOST_IN_LEGEND, Row, difference_rows, result_rows
from harness.reporting.html.provenance import command_of
from harness.reporting.html.reported_run import ReportedRun, days_of
from harness.reporting.html.results import results_of
from harness.reporting.html.sections import (
    analyses_of,
    costs_table,
    difference_tables,
    failures_of,
    values_table,
)
from harness.reporting.text import counted
from harness.tasks.repeats import task_and_repeat

NAMED = 3
SAMPLES = 20
"""So many samples the tasks share, of which each has three or more."""


def report_page(
    runs: Sequence[ReportedRun],
    plugins: Plugins,
    *,
    title: str = "",
    unread: Sequence[str] = (),
    samples: int | None = None,
    labels: Sequence[str] = (),
    by: str | None = None,
    bases: Sequence[str] = (),
) -> tuple[str, str]:
    """The report of these runs as one page, and its first words; `unread` says which other runs
    could not be read.

    It shows so many `samples` of each task, else some that all tasks share. `labels` are files of
    people's labels, with which judges are compared. `by` is a slice of the data, within whose parts
    the runs are compared too. `bases` are the runs that others are compared with, in place of the
    best.
    """
    found = compared_runs(runs, by, bases)
    results = results_of(runs, found)
    analyses, silent = analyses_of(runs, plugins, labels)
    names = [run.label for run in runs]
    rows = result_rows(results, names)
    answer, why = _answer(runs, rows, found)
    limits = [Limit("a run could not be read", (why,)) for why in unread]
    tasks = dict.fromkeys(task_and_repeat(one)[0] for run in runs for one in run.manifest.tasks)
    facts = [counted(len(runs), "run"), counted(len(tasks), "task"), *days_of(runs)]
    words = {**CAUSES, **{word: why for run in runs for task in run.tasks
                          for word, why in task.benchmark.words.items()}}  # fmt: skip
    samples = max(3, SAMPLES // max(len(tasks), 1)) if samples is None else samples
    page = page_html(
        "report.j2",
        title=title or (", ".join(names) if len(names) <= NAMED else counted(len(runs), "run")),
        facts=facts, answer=answer, why=why, runs=names,
        in_legend=1 < len(names) <= MOST_IN_LEGEND, named=len(names) > MOST_IN_LEGEND,
        limits=[*limits, *limits_of(runs, results, found)],
        rows=rows, values=values_table(results),
        differences=difference_rows(found.document),
        difference_tables=[*difference_tables(found.document)],
        words=words, compared=found, failures=failures_of(runs, words), costs=costs_table(runs),
        samples=[*samples_of(runs, samples)],
        about_samples="What changed" if len(runs) > 1 else "The worst samples",
        analyses=analyses, silent=silent, origins=[
            (run.label, command_of(run.manifest),
             msgspec.json.format(msgspec.json.encode(run.manifest), indent=1).decode())
            for run in runs
        ],
    )  # fmt: skip
    apart = [f"{run} is not compared: {why}." for run, why in found.apart]
    return page, " ".join(filter(None, (answer, why, *apart)))


def _answer(
    runs: Sequence[ReportedRun], rows: Sequence[Row], found: ComparedRuns
) -> tuple[str, str]:
    """The sentence at the top of the page, and how far it can be trusted."""
    tops = [row for row in rows if row.name]
    if len(runs) > 1:
        answer = found.document.verdict()
        if not answer:
            return "No two of these runs can be compared on a task.", "; ".join(found.problems[:1])
        if answer.startswith(("undecided", "no test")):  # and with no name of a run
            answer = f"{answer[0].upper()}{answer[1:]}"
        answer, _, shown = answer.partition(": ")
        tested = found.document.tested()
        tests, people = counted(len(tested), "test"), max((one.users for one in tested), default=0)
        left = sum(row.ending is None for row in tops)
        but = f" {left} of {len(tops)} tasks are not compared." if left else ""
        shown = f"{shown}. " if shown else ""
        return f"{answer}.", f"{shown}Paired over {people:,} people, p after Holm for {tests}.{but}"
    label = runs[0].label
    valued = [row for row in tops if row.marks[0].value is not None]
    if not valued:
        return f"{label} has no result.", "; ".join({row.marks[0].text: 0 for row in tops})
    without = len(tops) - len(valued)
    but = f" {without} of {len(tops)} tasks have no value." if without else ""
    metrics = (one for each in runs[0].summaries for one in each.metrics.values())
    people = max((one.users for one in metrics), default=0)
    why = f"Over up to {people:,} people; a second run shows what differs.{but}"
    beside = [row.ending.kind for row in valued if row.ending]
    if len(valued) > 1 and beside:
        of = f"{beside.count('wins')} of {len(beside)} tasks"
        answer = f"{label} is better than the best baseline on {of}"
        return f"{answer} and worse on {beside.count('worse') or 'none'}.", why
    row, *others = valued
    answer = f"{label} has {row.marks[0].text} in {row.metric.partition(' ')[0]} on {row.name}"
    answer += f", {row.ending.words}, {row.ending.how}" if row.ending else ""
    return f"{answer}{f' (and on {len(others)} more below)' if others else ''}.", why
