"""The page of `harness report`: one file that shows what runs measured, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from harness.reporting.html.answers import samples_of
from harness.reporting.html.compared_runs import ComparedRuns, compared_runs, short
from harness.reporting.html.limits import Limit, limits_of
from harness.reporting.html.page import page_html
from harness.reporting.html.picture import MOST_IN_LEGEND, difference_rows, result_rows
from harness.reporting.html.provenance import command_of
from harness.reporting.html.reported_run import ReportedRun, days_of
from harness.reporting.html.results import Result, results_of
from harness.reporting.html.sections import (
    analyses_of,
    costs_table,
    difference_tables,
    failures_of,
    values_table,
)
from harness.reporting.text import counted, number
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.registry import Plugins

NAMED = 3


def report_page(
    runs: Sequence[ReportedRun],
    plugins: Plugins,
    *,
    title: str = "",
    unread: Sequence[str] = (),
    samples: int = 20,
    labels: Sequence[str] = (),
    by: str | None = None,
    bases: Sequence[str] = (),
) -> str:
    """The report of these runs as one page; `unread` says which other runs could not be read.

    It shows so many `samples` of each task. `labels` are files of people's labels,
    with which judges are compared. `by` is a slice of the data, within whose parts the runs are
    compared too. The runs are compared with that of `bases` which agrees with them, else with the
    best one.
    """
    found = compared_runs(runs, by, bases)
    results = results_of(runs, found)
    analyses, silent = analyses_of(runs, plugins, labels)
    names = [run.label for run in runs]
    answer, why = _answer(runs, results, found)
    limits = [Limit("a run could not be read", (why,)) for why in unread]
    tasks = dict.fromkeys(task_and_repeat(one)[0] for run in runs for one in run.manifest.tasks)
    facts = [counted(len(runs), "run"), counted(len(tasks), "task"), *days_of(runs)]
    return page_html(
        "report.j2",
        title=title or (", ".join(names) if len(names) <= NAMED else counted(len(runs), "run")),
        facts=facts, answer=answer, why=why, runs=names,
        in_legend=1 < len(names) <= MOST_IN_LEGEND, named=len(names) > MOST_IN_LEGEND,
        limits=[*limits, *limits_of(runs, results, found)],
        rows=result_rows(results, names), values=values_table(results),
        differences=difference_rows(found.document),
        difference_tables=[*difference_tables(found.document)],
        compared=found, failures=failures_of(runs), costs=costs_table(runs),
        samples=[*samples_of(runs, samples)],
        about_samples="What changed" if len(runs) > 1 else "The worst samples",
        analyses=analyses, silent=silent, origins=[
            (run.label, command_of(run.manifest),
             msgspec.json.format(msgspec.json.encode(run.manifest), indent=1).decode())
            for run in runs
        ],
    )  # fmt: skip


def _answer(
    runs: Sequence[ReportedRun], results: Sequence[Result], found: ComparedRuns
) -> tuple[str, str]:
    """The sentence at the top of the page, and how far it can be trusted."""
    people = max(
        (one.users for run in runs for each in run.summaries for one in each.metrics.values()),
        default=0,
    )
    if len(runs) > 1:
        answer = found.document.verdict()
        if not answer:
            return "No two of these runs can be compared on a task.", "; ".join(found.problems[:1])
        tests = counted(len(found.document.tested()), "test")
        if answer.startswith(("undecided", "no test")):  # and with no name of a run
            answer = f"{answer[0].upper()}{answer[1:]}"
        return f"{answer}.", f"Paired over {people:,} people, p after Holm for {tests}."
    first, group = [], None
    for result in results:
        if group and result.tasks < group.tasks:
            continue
        group = result if result.is_group else None
        first += [result] if result.first else []
    (run,) = runs
    with_value = {one.name: one for one in first if one.values[run.label].value is not None}
    if not with_value:
        return f"{run.label} has no result.", "; ".join(one.values[run.label].why for one in first)
    why = f"Each value is over up to {people:,} people, with its interval."
    why += " A second run shows what differs." if with_value else ""
    if len(with_value) > 1:
        beside = [row.ending for row in result_rows([*with_value.values()], [run.label])]
        known = [one for one in beside if one is not None]
        above = sum(one.kind == "wins" for one in known)
        worse = sum(one.kind == "worse" for one in known)
        if not known:
            return f"{run.label} has results on {len(with_value)} tasks.", why
        answer = f"{run.label} is better than the best baseline on {above} of {len(known)} tasks"
        return f"{answer} and worse on {worse or 'none'}.", why
    (one,) = with_value.values()
    value = one.values[run.label].value
    rule = one.rules[0] if one.rules else None
    beside_rule = f", where {rule.short} has {short(rule.value)}" if rule else ""
    return f"{run.label} has {number(value)} in {one.metric} on {one.name}{beside_rule}.", why
