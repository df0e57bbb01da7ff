"""What a report says of its runs: whether they are comparable, repeats, and labels apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from harness.contracts.report import Report
from harness.scoring.finished_task import FinishedTask, labels_of
from harness.scoring.grouping import grouped
from harness.tasks.repeats import task_and_repeat


def with_notes(report: Report, tasks: Sequence[FinishedTask]) -> Report:
    """The report, preceded by notes on results that are not comparable with published ones, and on
    tasks of which the run has other repeats; the former are the stamp of every figure too.
    """
    notes = []
    for task in tasks:
        name, number = task_and_repeat(task.task.name)
        many = sum(task_and_repeat(each)[0] == name for each in task.manifest.tasks)
        if many > 1:
            notes.append(
                f"{name}: repeat {number} of {many} ({task.label}); --task chooses another"
            )
    report = msgspec.structs.replace(report, notes=(*dict.fromkeys(notes), *report.notes))
    reasons = grouped(
        (why, task.label) for task in tasks for why in task.summary.not_comparable_because
    )
    if not reasons:
        return report
    # A reason that is not common to all tasks names its tasks: an analysis may leave runs out.
    described = [
        why if len(whose) == len(tasks) else f"{why} ({', '.join(dict.fromkeys(whose))})"
        for why, whose in reasons.items()
    ]
    note = f"NOT COMPARABLE with published results: {', '.join(described)}"
    figures = tuple(msgspec.structs.replace(each, stamp=note) for each in report.figures)
    return msgspec.structs.replace(report, notes=(note, *report.notes), figures=figures)


def told_apart(tasks: Sequence[FinishedTask]) -> list[FinishedTask]:
    """The tasks, those of several runs with one label labelled so that these are told apart."""
    runs: dict[tuple[str, str], set[str]] = {}
    for task in tasks:
        runs.setdefault((task.task.name, task.label), set()).add(task.run)
    repeated = {label for (_, label), of_label in runs.items() if len(of_label) > 1}
    labels = labels_of(task.manifest for task in tasks)
    return [
        replace(task, label=labels[task.run]) if task.label in repeated else task for task in tasks
    ]
