"""The parts of a report about runs themselves: differences, repeats, replies, judges, origin."""

from __future__ import annotations

from collections import Counter
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
from harness.reporting.text import number, reasons
from harness.scoring.summary import RoleUse, StageSummary, main_metrics, over_repeats

if TYPE_CHECKING:
    from harness.registry import AnalysisRegistration, Plugins
    from harness.scoring.comparison_document import Comparison
    from harness.scoring.finished_task import FinishedTask
    from harness.scoring.paired_differences import Difference

RUNGS = ("strict", "fenced", "brackets", "repaired", "regex", "text", "rule")
CUT, REFUSED = "truncated", "refused"
PANEL, PEOPLE = "judge-panel", "judge-agreement"
APART = (
    "A run stands apart where something other than its candidate differs, as the reason says: "
    "data, people, an option, a judge or another role. A role that is not bound is often played by "
    "the candidate itself: give all runs the same, such as --role predictor=SPEC, to compare them."
)
MOST_COMPARED = 12
"""More runs than this are compared with `harness compare`, as each pair takes its time."""


def comparisons_of(runs: Sequence[ReportedRun]) -> tuple[list[Comparison], list[str]]:
    """The comparisons of all runs with the best one of each task, and why others are missing."""
    from harness.scoring.comparable import comparison_set
    from harness.scoring.comparison import adjusted, compare, main_of
    from harness.scoring.score_run import chosen_metrics

    if not 1 < len(runs) <= MOST_COMPARED:
        many = f"{len(runs)} runs are too many to compare each with the best one here"
        return [], [f"{many}: `harness compare RUN RUN` compares some"] if len(runs) > 1 else []
    found, problems, alone = [], [], []
    by_name: dict[str, list[FinishedTask]] = {}
    for task in (task for run in runs for task in run.tasks):
        by_name.setdefault(task.task.name, []).append(task)
    for name, tasks in by_name.items():
        if len(tasks) < 2:
            alone.append(f"{name} ({tasks[0].label})")
            continue
        only = main_of(tasks[0], chosen_metrics(tasks[0].task, tasks[0].benchmark))
        values = {
            task.run: result.value * (1 if result.higher_is_better else -1)
            for task in comparison_set(tasks).members
            for metric in only[:1]
            if (result := task.summary.metrics.get(metric)) is not None and result.value is not None
        }
        best = max(values, key=values.__getitem__) if values else None
        try:
            found.append(compare(tasks, only=only, against=best).comparison)
        except HarnessError as error:
            problems.append(f"{name}: {error.problem}")
    if alone:
        problems.append(f"Finished by one run alone, so not compared: {', '.join(alone)}.")
    return list(adjusted(found)), problems


def answers(comparisons: Sequence[Comparison]) -> tuple[list[str], list[str]]:
    """Which run is better in words, and the comparisons that establish no difference.

    Each task has its run with the best value compared with each other, by the rule of
    `harness compare`: p after Holm and the interval must both tell them apart.
    """
    found: tuple[list[str], list[str]] = ([], [])
    for one in comparisons:
        labels = {run.run: run.label for run in one.runs}
        for each in one.differences:
            higher = one.runs[0].metrics[each.metric].higher_is_better
            said = _answer(one.task, each, labels, higher=higher)
            found[not established(each)].append(said)
    return found


def standing(comparisons: Sequence[Comparison]) -> str:
    """In how many of its comparisons each run is ahead, whether that is established or not."""
    ahead: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for one in comparisons:
        labels = {run.run: run.label for run in one.runs}
        for each in one.differences:
            pair = labels[each.first], labels[each.second]
            of.update(pair)
            if each.value:
                higher = one.runs[0].metrics[each.metric].higher_is_better
                ahead[pair[(each.value > 0) != higher]] += 1
    first = sorted(of, key=lambda label: -ahead[label] / of[label])
    counts = (f"{label} in {ahead[label]:,} of its {of[label]:,}" for label in first)
    return f"Ahead on the units in common, established or not: {', '.join(counts)}."


def established(each: Difference) -> bool:
    """Whether two runs differ: p after Holm is small, and the interval is on one side of 0."""
    return (
        each.value is not None
        and each.interval is not None
        and not each.interval[0] <= 0 <= each.interval[1]
        and each.p_holm is not None
        and each.p_holm < 1 - each.confidence
    )


def _answer(task: str, each: Difference, labels: dict[str, str], *, higher: bool) -> str:
    first, second = labels[each.first], labels[each.second]
    start = f"{task}, {each.metric}"
    if each.value is None or each.interval is None or each.p_holm is None:
        why = each.no_interval or each.no_p or "the value of one is undefined"
        return f"{start}: whether {first} or {second} is better cannot be said, for {why}."
    ahead = (each.value > 0) == higher
    winner, loser = (first, second) if ahead else (second, first)
    ends = sorted(end if each.value > 0 else -end for end in each.interval)
    p = "<0.001" if each.p_holm < 0.001 else number(each.p_holm)
    shown = (
        f"{number(abs(each.value))} [{number(ends[0])}, {number(ends[1])}] on {each.n:,} units in "
        f"common, p after Holm {p}"
    )
    if established(each):
        return f"{start}: {winner} is better than {loser}, by {shown}."
    if not each.value:
        return f"{start}: no difference between {first} and {second} is established ({shown})."
    return f"{start}: {winner} is ahead of {loser}, but no difference is established ({shown})."


def comparison_html(comparisons: Sequence[Comparison], problems: Sequence[str]) -> Html:
    """The differences between the runs with their intervals, and which runs stand apart."""
    parts = []
    for one in comparisons:
        labels = {run.run: run.label for run in one.runs}
        rows: list[tuple[Cell, ...]] = [
            (
                f"{labels[each.first]} − {labels[each.second]}",
                metric_name(each.metric, one.runs[0].metrics[each.metric]), each.value,
                *(each.interval or (None, None)), each.n, each.p, each.p_holm,
            )
            for each in one.differences
        ]  # fmt: skip
        notes = [f"{each.label} stands apart: {', '.join(each.because)}" for each in one.refused]
        if one.oracle and (pooled := {each.metric for each in one.differences}
                           & {*one.oracle.metrics}):  # fmt: skip
            notes.append(
                f"{', '.join(sorted(pooled))}: against what these runs found together. In the "
                "table of results each run stands alone, so that it is not there."
            )
        columns = ("difference", "metric", "value", "low", "high", "n", "p", "p (Holm)")
        if rows or notes:
            sheet = Sheet(
                title=one.task, columns=columns, rows=tuple(rows), digits=3,
                notes=(*notes, *one.doubts),
            )  # fmt: skip
            parts.append(sheet_html(sheet, level=3) if rows else joined([
                element("h3", one.task), notes_html(sheet.notes)
            ]))  # fmt: skip
    about = (
        "Each run against the one with the best value of the task, on the units that both have. "
        "Below 0 the first of the two has the lower value; ↑ or ↓ says which is better. Given are "
        "intervals of the paired bootstrap over people, p of the paired permutation test, adjusted "
        "after Holm for all tests here. The best run was chosen by its value, so that a small lead "
        "may be luck, or because it lost the harder units: look at what is missing."
    )
    if any(one.refused for one in comparisons):
        problems = [APART, *problems]
    return joined([element("p", about, class_="note"), *parts, notes_html(problems)])


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
