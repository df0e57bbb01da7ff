"""The parts of a report about runs themselves: repeats, replies, judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.base.errors import HarnessError
from harness.contracts.report import Cell, Sheet
from harness.reporting.html.analysis_sections import analyses_html
from harness.reporting.html.markup import Html, element, joined
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.samples import Samples
from harness.reporting.html.sheet_html import notes_html, sheet_html
from harness.reporting.tables import metric_name
from harness.reporting.text import reasons
from harness.scoring.summary import RoleUse, StageSummary, main_metrics, over_repeats

if TYPE_CHECKING:
    from harness.registry import AnalysisRegistration, Plugins

RUNGS = ("strict", "fenced", "brackets", "repaired", "regex", "text", "rule")
CUT, REFUSED = "truncated", "refused"
PANEL, PEOPLE = "judge-panel", "judge-agreement"


def repeats_html(runs: Sequence[ReportedRun]) -> Html | None:
    """The mean and deviation over repeats; None if no task was repeated."""
    rows: list[tuple[Cell, ...]] = []
    others: list[tuple[Cell, ...]] = []
    problems = []
    for run in runs:
        mains = {name for each in run.summaries for name in main_metrics(each.main, each.metrics)}
        try:
            repeated = over_repeats(run.summaries)
        except HarnessError as error:
            problems.append(f"{run.label}: {error}")
            continue
        for task in repeated:
            for name, spread in task.metrics.items():
                if not spread.baseline:
                    kept = rows if name in mains else others
                    kept.append((run.label, task.task, metric_name(name, spread), spread.mean,
                                 spread.sd, spread.stderr, spread.n, spread.without))  # fmt: skip
    if not rows and not others:
        return None
    columns = ("model", "task", "metric", "mean", "deviation", "standard error", "repeats",
               "without a value")  # fmt: skip
    note = ("The deviation shows how much a value changes when the same questions are asked again. "
            "The intervals above show how much it may change with other people: the two do not "
            "mix.")  # fmt: skip
    sheet = Sheet(title="", columns=columns, rows=tuple(rows), notes=(note, *problems), digits=3)
    if not others:
        return sheet_html(sheet)
    rest = Sheet(title="", columns=columns, rows=tuple(others), digits=3)
    title = element("summary", f"{len(others):,} values of other metrics")
    return joined([sheet_html(sheet), element("details", title, sheet_html(rest))])


def reading_html(runs: Sequence[ReportedRun]) -> Html:
    """How replies were read, by model, task, stage and role: the share of each rung, and losses."""
    uses = [
        (run.label, summary.task, name, role, use, stage)
        for run in runs
        for summary in run.summaries
        for name, stage in summary.stages.items()
        for role, use in stage.roles.items()
    ]
    rungs = [rung for rung in RUNGS if any(rung in use.rungs for *_, use, _ in uses)]
    rungs += sorted({rung for *_, use, _ in uses for rung in use.rungs} - {*rungs})
    columns = ("model", "task", "stage, role", "calls", *(f"{rung}, %" for rung in rungs),
               "not read, %", "items", "truncated", "refused", "other causes")  # fmt: skip
    rows = [
        (label, task, f"{name}, {role}", *_read(use, rungs), *_lost(stage))
        for label, task, name, role, use, stage in uses
    ]
    sheet = Sheet(
        title="", columns=columns, rows=tuple(rows),
        notes=(
            "Of the calls, the share that each step of the parsing ladder read: strict is what was "
            "asked for, and each step to its right needed more help.",
            "Of the items of the stage, how many have no value because replies were cut or refused,"
            " and the other causes.",
        ),
    )  # fmt: skip
    return sheet_html(sheet)


def _read(use: RoleUse, rungs: Sequence[str]) -> list[Cell]:
    shares = [100 * use.rungs.get(rung, 0) / use.calls if use.calls else None for rung in rungs]
    read = sum(use.rungs.values())
    return [use.calls, *shares, 100 * (use.calls - read) / use.calls if use.calls else None]


def _lost(stage: StageSummary) -> list[Cell]:
    other = {cause: many for cause, many in stage.failures.items() if cause not in (CUT, REFUSED)}
    cut, refused = (stage.failures.get(cause, 0) for cause in (CUT, REFUSED))
    return [stage.items, cut, refused, reasons(other) or None]


def judges_html(
    runs: Sequence[ReportedRun], samples: Samples, plugins: Plugins, labels: Sequence[str] = ()
) -> Html | None:
    """Which judge decided what, and how far panels agree, and people; None without judges.

    `labels` are the files of people's labels.
    """
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
                             members or None, counts["asked"], counts["none"],
                             counts["votes"]))  # fmt: skip
                panels += [task] if counts["votes"] else []
    if not rows:
        return None
    columns = ("model", "task", "role", "judge", "members", "questions", "no verdict", "votes")
    sheet = Sheet(title="", columns=columns, rows=tuple(rows))
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
    """The analysis of a name, if its plugin is there."""
    return [plugins.analyses[name]] if name in plugins.analyses else []
