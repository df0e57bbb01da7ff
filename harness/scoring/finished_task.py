"""Tasks of stored runs as comparisons and analyses read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from harness.base.errors import DataError, PluginError
from harness.contracts.records import JudgedRecord, Records, Score, record_type
from harness.contracts.task import Task
from harness.runs.journal_index import JournalRecords
from harness.runs.manifest import Manifest, TaskEntry
from harness.runs.run_folder import RunFolder
from harness.scoring.score_run import Unfinished, how_to_finish, read_summary, task_options
from harness.scoring.summary import TaskSummary

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark


@dataclass(frozen=True, kw_only=True)
class KeptTask:
    """One finished task of one stored run.

    `label` is what tables call the run: its model, with the run's name where models repeat.
    `options` are the benchmark's own, typed. `scores_file` is where its scores are when they were
    made under other options than the run's, and so are not the run's own.
    """

    label: str
    path: Path
    manifest: Manifest
    entry: TaskEntry
    task: Task
    benchmark: Benchmark
    options: Any
    summary: TaskSummary
    scores_file: Path | None = None

    @property
    def run(self) -> str:
        """The name of the run."""
        return self.manifest.run_id

    def scores(self) -> Iterator[Score[Any]]:
        """The scores as the run kept them, a unit at a time, with their details typed."""
        details = self.benchmark.details or Any
        decoder: msgspec.json.Decoder[Score[Any]] = msgspec.json.Decoder(
            Score[details]  # type: ignore[valid-type]
        )
        path = self.scores_file or RunFolder(self.path).scores(self.task.name)
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

    def records(self, stage: str) -> Records[Any, Any]:
        """The records of one stage, typed, as the run's journal holds them."""
        return self._journal(stage)

    def judged(self, stage: str) -> Iterable[JudgedRecord]:
        """What judges decided in one stage, item after item, the questions of an item in order."""
        return cast("Iterable[JudgedRecord]", self._journal(stage, JudgedRecord))

    def _journal(self, stage: str, kind: Any = None) -> JournalRecords[Any, Any]:
        kept = {entry.name: entry for entry in self.entry.stages}
        kinds = {each.name: record_type(each.item, each.value) for each in self.benchmark.stages}
        if stage not in kept or stage not in kinds:
            raise PluginError(
                f"no records of a stage {stage!r}",
                where=f"{self.path}, task {self.task.name!r}",
                found=f"stages {', '.join(kept)} of the run, {', '.join(kinds)} of the benchmark",
                expected="a stage of both",
                hint="use the release of the plugin that the manifest names",
            )
        path = self.path / self.entry.folder / kept[stage].file
        return JournalRecords(path, kept[stage].key, kind or kinds[stage])


def labels_of(manifests: Iterable[Manifest]) -> dict[str, str]:
    """What tables call each run, by its name: its model, with that name where models repeat."""
    models = {manifest.run_id: manifest.model for manifest in manifests}
    times = Counter(models.values())
    return {run: model if times[model] == 1 else f"{model} {run}" for run, model in models.items()}


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
            hint=how_to_finish(manifest),
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
