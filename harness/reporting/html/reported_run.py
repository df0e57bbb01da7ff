"""The runs of a report: what of them is known, and which of them stand together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from harness.base.errors import HarnessError
from harness.comparison.matching import comparison_set
from harness.reporting.text import counted
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.score_run import read_summary
from harness.scoring.summary import TaskSummary
from harness.tasks.repeats import task_and_repeat


@dataclass(frozen=True, kw_only=True)
class ReportedRun:
    """A run of a report, called by its label; `problems` say what of it is not shown, and why.

    `summaries` are of all tasks that were scored, `tasks` of those whose plugin is there.
    """

    label: str
    folder: RunFolder
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
        folder=folder,
        manifest=manifest,
        tasks=tuple(tasks),
        summaries=tuple(known[name] for name in manifest.tasks if name in known),
        problems=tuple(more),
    )


def made_of(runs: Sequence[ReportedRun]) -> str:
    """How many runs these are, of which labels and days, and how many tasks are finished."""
    models = list(dict.fromkeys(run.label for run in runs))
    tasks = {task_and_repeat(one.task)[0] for run in runs for one in run.summaries}
    days = sorted({run.manifest.sessions[0].started[:10] for run in runs if run.manifest.sessions})
    when = f", made on {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    named = f": {', '.join(models)}" if len(models) <= 12 else ""
    return f"{counted(len(runs), 'run')}{named}; {counted(len(tasks), 'finished task')}{when}."


def runs_together(
    tasks: Sequence[FinishedTask],
) -> list[tuple[list[FinishedTask], dict[str, None]]]:
    """The tasks of runs that can be compared in all their tasks together, the largest set first.

    Behind each set is why it stands apart from those before.
    """
    found = []
    left = list(tasks)
    apart: dict[str, dict[str, None]] = {}
    while left:
        refused = _refused(left)
        if len(refused) == len({task.run for task in left}):
            del refused[left[0].run]
        kept = [task for task in left if task.run not in refused]
        found.append((kept, {why: None for task in kept for why in apart.get(task.run, ())}))
        left = [task for task in left if task.run in refused]
        apart = refused
    return found


def _refused(tasks: Sequence[FinishedTask]) -> dict[str, dict[str, None]]:
    """The runs that cannot be compared with most of the others in one of their tasks, and why."""
    named: dict[str, dict[str, list[str]]] = {}
    for name, of_task in grouped((task.task.name, task) for task in tasks).items():
        for each in comparison_set(of_task).refused:
            for line in each.because:
                named.setdefault(each.run, {}).setdefault(line, []).append(name)
    return {
        run: {f"{line} ({', '.join(names)})": None for line, names in lines.items()}
        for run, lines in named.items()
    }
