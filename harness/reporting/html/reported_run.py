"""The runs of a report: what of them is known, and which of them stand together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from harness.base.errors import HarnessError
from harness.comparison.matching import comparison_set
from harness.reporting.run_lines import status_text
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.score_run import read_summary
from harness.scoring.summary import TaskSummary


@dataclass(frozen=True, kw_only=True)
class ReportedRun:
    """A run of a report, called by its label; `status` is how far it is.

    `problems` say what of it is not shown, and why. `summaries` are of all
    tasks that were scored, `tasks` of those whose plugin is there.
    """

    label: str
    status: str
    manifest: Manifest
    tasks: tuple[FinishedTask, ...]
    summaries: tuple[TaskSummary, ...]
    problems: tuple[str, ...] = ()

    @property
    def seconds(self) -> float | None:
        """How long the sessions of the run took that have ended; None if none has."""
        took = [
            (
                datetime.fromisoformat(one.ended) - datetime.fromisoformat(one.started)
            ).total_seconds()
            for one in self.manifest.sessions
            if one.ended is not None
        ]
        return sum(took) if took else None


def reported_run(
    folder: RunFolder,
    manifest: Manifest,
    tasks: Sequence[FinishedTask],
    *,
    label: str,
    problems: Sequence[str] = (),
    only: str | None = None,
) -> ReportedRun:
    """A run with the summaries of its tasks, or of the task `only`."""
    known = {task.task.name: task.summary for task in tasks}
    more = [*problems]
    for name in manifest.tasks:
        if name not in known and only in (None, name):
            try:
                if summary := read_summary(folder.summary(name)):
                    known[name] = summary
            except HarnessError as error:
                more.append(str(error))
    return ReportedRun(
        label=label,
        status=status_text(manifest.status, folder.at_work()),
        manifest=manifest,
        tasks=tuple(tasks),
        summaries=tuple(known[name] for name in manifest.tasks if name in known),
        problems=tuple(more),
    )


def days_of(runs: Sequence[ReportedRun]) -> list[str]:
    """The day on which the runs were made, or the first and the last."""
    days = sorted({run.manifest.sessions[0].started[:10] for run in runs if run.manifest.sessions})
    return [" to ".join(dict.fromkeys((days[0], days[-1])))] if days else []


def runs_together(tasks: Sequence[FinishedTask]) -> list[list[FinishedTask]]:
    """The tasks of runs that can be compared in all their tasks together, the largest set first."""
    found = []
    left = list(tasks)
    while left:
        by_task = grouped((task.task.name, task) for task in left)
        apart = {each.run for one in by_task.values() for each in comparison_set(one).refused}
        if len(apart) == len({task.run for task in left}):
            apart.remove(left[0].run)
        found.append([task for task in left if task.run not in apart])
        left = [task for task in left if task.run in apart]
    return found
