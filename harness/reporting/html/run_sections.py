"""The parts of a report about runs themselves: repeats, replies, judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from harness.base.errors import HarnessError
from harness.contracts.report import Cell, Sheet
from harness.reporting.html.analysis_sections import analyses_html
from harness.reporting.html.markup import Html, element, joined
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.samples import Samples
from harness.reporting.html.sheet_html import notes_html, sheet_html
from harness.reporting.tables import metric_name
from harness.reporting.text import reasons
from harness.scoring.summary import main_metrics, over_repeats

if TYPE_CHECKING:
    from harness.registry import AnalysisRegistration, Plugins

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
    title = element("summary", f"{len(rest):,} stages of which each reply was read")
    folded = sheet_html(Sheet(title="", columns=columns, rows=tuple(rest)))
    return joined([notes_html(notes), shown, element("details", title, folded)])


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
