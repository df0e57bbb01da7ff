"""The comparison of a report's runs, and what it decides in the words of a page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from harness.base.errors import UsageError
from harness.comparison.compare_runs import compare_tasks
from harness.comparison.document import ComparisonDocument, Decision, least_shown
from harness.comparison.matching import comparison_set
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.text import number
from harness.scoring.grouping import grouped
from harness.tasks.repeats import task_and_repeat

MOST_COMPARED = 12
"""More runs than this are ranked, not compared: each pair takes its time."""

FEW = 3


class ComparedRuns(NamedTuple):
    """The comparison of a report's runs, and why some of them or of their tasks are not in it.

    `apart` are by label and reason the tasks of runs that differ in more than their candidate.
    `slices` are the parts of the data by which the runs could be compared, if they are not. `base`
    is the label of the run that the user chose others to be compared with, in place of the best.
    """

    document: ComparisonDocument
    problems: tuple[str, ...] = ()
    apart: Mapping[tuple[str, str], Sequence[str]] = {}
    slices: tuple[str, ...] = ()
    base: str = ""


def compared_runs(
    runs: Sequence[ReportedRun], by: str | None = None, bases: Collection[str] = ()
) -> ComparedRuns:
    """The comparison of all runs, on each task with one of `bases` if it is there."""
    if by is not None and len(runs) < 2:
        raise UsageError(
            "one run has nothing to be compared with", where="--by", expected="two runs or more"
        )
    if not 1 < len(runs) <= MOST_COMPARED:
        many = f"{len(runs)} runs are too many to compare each with the best one on a page"
        ranks = (f"{many}: `harness report RUN… --rank` ranks them",) if len(runs) > 1 else ()
        return ComparedRuns(ComparisonDocument(comparisons=()), ranks)
    tasks = [task for run in runs for task in run.tasks]
    by_name = grouped((task_and_repeat(task.task.name)[0], task) for task in tasks)
    base_of = {
        name: one.run
        for name, of_runs in by_name.items()
        for one in reversed(comparison_set(of_runs).members)
        if one.run in bases
    }
    found = compare_tasks(tasks, by=by, against=base_of)
    document = found.document()
    apart = grouped(
        ((refused.label, "; ".join(refused.because)), one.task)
        for one in document.comparisons
        for refused in one.refused
    )
    summaries = [one.tasks[0].summary for one in found.compared]
    known = dict.fromkeys(name for one in summaries for name in one.slices or ())
    return ComparedRuns(
        document, tuple(error.problem for error in (*found.failed, *found.skipped)), apart,
        (*known,) if by is None else (),
        ", ".join(run.label for run in runs if run.manifest.run_id in bases),
    )  # fmt: skip


class Ending(NamedTuple):
    """The end of a row: who is better there, in words, and how sure that is."""

    kind: Literal["wins", "worse", "undecided"]
    words: str
    how: str


def endings_of(document: ComparisonDocument) -> dict[tuple[str, str], Ending]:
    """By task or group and metric, the end of its row."""
    labels = document.labels()
    return {
        (one.name, one.metric): ending_of(one, labels)
        for one in document.decisions()
        if one.differences
    }


def ending_of(decision: Decision, labels: Mapping[str, str]) -> Ending:
    """The end of a row with this decision; `labels` are by run."""
    if not decision.better:
        least = max((least_shown(one) or 0.0 for one in decision.undecided), default=None)
        why = next((one.no_interval for one in decision.differences if one.no_interval), None)
        how = f"can show {short(least)}" if least else why or "no difference at all"
        return Ending("undecided", "undecided", how)
    known = [one.difference.p_holm for one in decision.better if one.difference.p_holm is not None]
    p = max(known, default=0.0)
    how = f"p {'<.001' if p < 0.001 else short(p)}" if known else "outside the interval"
    if decision.winner is not None:
        return Ending("wins", f"{labels[decision.winner]} wins", how)
    losers = list(dict.fromkeys(labels[one.loser] for one in decision.better))
    many = f"{len(losers)} of {len(decision.runs)}"
    return Ending("worse", f"{', '.join(losers) if len(losers) < FEW else many} worse", how)


def short(value: float) -> str:
    """A number as a picture has room for it: `.05`, `.21`, `1.32`."""
    text = f"{value:.2f}" if abs(value) >= 0.0995 else f"{value:.3f}".rstrip("0")
    return number(value) if text in ("0.", "-0.") else text.replace("0.", ".", 1)
