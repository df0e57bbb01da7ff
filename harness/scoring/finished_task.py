"""Tasks of stored runs, for comparisons and analyses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from harness.base.errors import DataError, PluginError
from harness.base.hashing import LINE, damage
from harness.contracts.identity import path_parts
from harness.contracts.records import JournalLine, JudgedRecord, Records, Score, record_type
from harness.contracts.task import Task
from harness.runs.journal import Head, JournalIndex, JournalRecords
from harness.runs.manifest import Manifest, StageEntry, TaskEntry
from harness.runs.run_folder import RunFolder
from harness.scoring.aggregate import counted_values
from harness.scoring.score_run import Unfinished, how_to_finish, read_summary, task_options
from harness.scoring.summary import TaskSummary

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark


@dataclass(frozen=True, kw_only=True)
class FinishedTask:
    """One finished task of one stored run.

        for score in task.scores():
            print(score.user, score.values.get("accuracy"), score.missing.get("accuracy"))

    `label` is the label of the run in tables, with an addition if several runs have it.
    `path` is the run's folder, `manifest` its manifest and `entry` the task's part of it. `options`
    are the task's options as the benchmark's type. `scores_file` is given if the task was scored
    with other options than the run's.
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
        """The stored scores, a unit at a time, with typed details."""
        details = self.benchmark.details or Any
        decoder: msgspec.json.Decoder[Score[Any]] = msgspec.json.Decoder(
            Score[details]  # type: ignore[valid-type]
        )
        path = self.scores_file or RunFolder(self.path).scores(self.task.name)
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    if wrong := damage(line, LINE):
                        raise ValueError(wrong)
                    score = decoder.decode(line)
                except ValueError as error:
                    raise DataError(
                        "a score cannot be read",
                        where=f"{path}:{number}",
                        found=str(error),
                        hint="run `harness score RUN` to write the scores again",
                    ) from error
                yield score

    def units(self, metric: str) -> Mapping[str, tuple[str, float]]:
        """By the id of each unit that counts in the metric's value its user and its number."""
        found = self.benchmark.metrics[metric]
        return counted_values(self.scores(), metric, found, self.benchmark.stages_of_others)

    def records(self, stage: str) -> Records[Any, Any]:
        """The typed records of one stage from the run's journal."""
        return self._journal(stage)

    def judged(self, stage: str) -> Iterable[JudgedRecord]:
        """The judges' decisions in one stage, by item, with the questions of an item in order."""
        return cast("Iterable[JudgedRecord]", self._journal(stage, JudgedRecord))

    def journal(
        self,
        stage: StageEntry,
        kind: Any = JournalLine[Any, Any],
        *,
        wanted: Callable[[Head], bool] | None = None,
    ) -> JournalRecords[Any, Any]:
        """Every current record of a stage with its calls, or those whose heads are `wanted`."""
        path = self.path / self.entry.folder / stage.file
        items = stage.items if wanted is None else None
        index = JournalIndex(path, stage.key, items=items, wanted=wanted)
        return JournalRecords(path, stage.key, kind, index=index)

    def _journal(self, stage: str, kind: Any = None) -> JournalRecords[Any, Any]:
        kept = {entry.name: entry for entry in self.entry.stages}
        kinds = {each.name: record_type(each.item, each.value) for each in self.benchmark.stages}
        if stage not in kept or stage not in kinds:
            raise PluginError(
                f"no records of a stage {stage!r}",
                where=f"{self.path}, task {self.task.name!r}",
                found=f"stages {', '.join(kept)} of the run, {', '.join(kinds)} of the benchmark",
                expected="a stage that both have",
                hint="use the release of the plugin that the manifest names",
            )
        path = self.path / self.entry.folder / kept[stage].file
        key = kept[stage].key
        index = JournalIndex(path, key, items=kept[stage].items, finished=True)
        return JournalRecords(path, key, kind or kinds[stage], index=index)


def labels_of(manifests: Iterable[Manifest]) -> dict[str, str]:
    """The label of each run in tables, with an addition if several of these runs have it."""
    known = {manifest.run_id: manifest for manifest in manifests}
    added = additions_of(known.values())
    return {run: f"{one.label} {added[run]}".rstrip() for run, one in known.items()}


def additions_of(manifests: Iterable[Manifest]) -> dict[str, str]:
    """What tells each run from the others with its label: the first that differs between all.

    These are revision, model, day and short id of the run. Empty for a label of one run.
    """
    groups: dict[str, dict[str, Manifest]] = {}
    for manifest in manifests:
        groups.setdefault(manifest.label, {})[manifest.run_id] = manifest
    found: dict[str, str] = {}
    for same in groups.values():
        if len(same) == 1:
            found |= dict.fromkeys(same, "")
            continue
        ways = zip(*map(_additions, same.values()), strict=True)
        texts = next((each for each in ways if all(each) and len({*each}) == len(same)), [*same])
        found |= dict(zip(same, texts, strict=True))
    return found


def _additions(manifest: Manifest) -> tuple[str, ...]:
    """What may tell runs of one label apart, in the order in which it is tried."""
    kind, _, name = manifest.model.partition(":")
    return (
        str(manifest.settings.get("model_args", {}).get("revision", "")),
        "/".join(path_parts(name)[-2:]) or name or kind,
        manifest.sessions[0].started.partition("T")[0] if manifest.sessions else "",
        manifest.run_id.rpartition("-")[2],
        manifest.run_id.partition("-")[0],
    )


def finished_task(
    folder: RunFolder, manifest: Manifest, name: str, benchmark: Benchmark, *, label: str
) -> FinishedTask:
    """A finished task of a stored run; raises Unfinished if it has no summary."""
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
    return FinishedTask(
        label=label,
        path=folder.path,
        manifest=manifest,
        entry=entry,
        task=task,
        benchmark=benchmark,
        options=task_options(task, benchmark),
        summary=summary,
    )
