"""Tasks of stored runs as comparisons and analyses read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.errors import DataError
from harness.results.folder import RunFolder
from harness.results.manifest import Manifest, TaskEntry
from harness.results.scoring import Unfinished, read_summary, task_options
from harness.results.summary import TaskSummary
from harness.tasks.task import Task

if TYPE_CHECKING:
    from harness.pipeline.benchmark import Benchmark, Score


@dataclass(frozen=True, kw_only=True)
class KeptTask:
    """One finished task of one stored run.

    `label` is what tables call the run: its model, with the run's name where models repeat.
    `options` are the benchmark's own, typed.
    """

    label: str
    path: Path
    manifest: Manifest
    entry: TaskEntry
    task: Task
    benchmark: Benchmark
    options: Any
    summary: TaskSummary

    @property
    def run(self) -> str:
        """The name of the run."""
        return self.manifest.run_id

    def scores(self) -> Iterator[Score[Any]]:
        """The scores as the run kept them, a unit at a time, with their details typed."""
        from harness.pipeline.benchmark import Score

        details = self.benchmark.details or Any
        decoder: msgspec.json.Decoder[Score[Any]] = msgspec.json.Decoder(
            Score[details]  # type: ignore[valid-type]
        )
        path = RunFolder(self.path).scores(self.task.name)
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield decoder.decode(line)
                except msgspec.DecodeError as error:
                    raise DataError(
                        "a score cannot be understood",
                        where=f"{path}:{number}",
                        found=str(error),
                        hint="`harness score` writes the scores of a run anew",
                    ) from error


def kept_task(
    folder: RunFolder, manifest: Manifest, name: str, benchmark: Benchmark, *, label: str
) -> KeptTask:
    """A finished task of a stored run; raises Unfinished where it has no summary."""
    summary = read_summary(folder.summary(name))
    if summary is None:
        raise Unfinished(
            f"task {name!r} is not finished",
            where=str(folder.path),
            expected="a task with a summary",
            hint="give the run's command again: it goes on where it stopped",
        )
    entry = manifest.tasks[name]
    task = entry.task()
    return KeptTask(
        label=label,
        path=folder.path,
        manifest=manifest,
        entry=entry,
        task=task,
        benchmark=benchmark,
        options=task_options(task, benchmark),
        summary=summary,
    )
