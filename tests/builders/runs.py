"""What a stored run is made of: give what the test is about, the rest is as usual."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from harness.base.hashing import LINE, sealed
from harness.contracts.benchmark import NoOptions
from harness.contracts.records import JournalLine, Score
from harness.contracts.task import DataSpec, Task
from harness.runs.atomic_files import sealed_file
from harness.runs.journal import JournalWriter
from harness.runs.manifest import Manifest, Session, StageEntry, TaskEntry, task_definition
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import FinishedTask
from harness.scoring.summary import MetricResult, TaskSummary

KEY = "a" * 32


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The item of a line in a journal."""

    id: str
    user: str
    text: str = ""


def make_task(name: str = "t", **fields: Any) -> Task:
    """A task of the benchmark `toy` without tables and metrics."""
    usual = {"version": 1, "benchmark": "toy", "data": DataSpec(tables={}), "metrics": ()}
    return Task(name=name, **{**usual, **fields})


def make_entry(task: Task, *stages: StageEntry, **fields: Any) -> TaskEntry:
    """What a manifest says of a task, whose folder has its name."""
    usual = {"folder": task.name, "definition": task_definition(task), "content": "c"}
    return TaskEntry(stages=stages, **{**usual, **fields})


def make_manifest(**fields: Any) -> Manifest:
    """The manifest of a finished run of the model `m` without tasks."""
    usual: dict[str, Any] = {
        "run_id": "r", "run_key": "k", "status": "done", "model": "m", "seed": 0, "limit": None,
        "asked": {}, "settings": {}, "tasks": {},
    }  # fmt: skip
    return Manifest(**{**usual, **fields})


def make_summary(task: str = "t", **fields: Any) -> TaskSummary:
    """The comparable summary of a task without units, metrics and stages."""
    usual: dict[str, Any] = {
        "format": 1, "version": 1, "content": "c", "benchmark": "b", "model": "m", "roles": {},
        "data": {}, "comparable": True, "not_comparable_because": (), "limit": None, "seed": 0,
        "units": 0, "metrics": {}, "stages": {},
    }  # fmt: skip
    return TaskSummary(task=task, **{**usual, **fields})


def make_metric(value: float | None, *, n: int, **fields: Any) -> MetricResult:
    """A metric of which nothing is missing, of n units of n users, without an interval."""
    usual: dict[str, Any] = {
        "users": n, "interval": None, "confidence": 0.95, "missing": {}, "counted_as_worst": None,
        "higher_is_better": True, "description": "",
    }  # fmt: skip
    return MetricResult(value=value, n=n, **{**usual, **fields})


def make_finished_task(
    path: Path, task: Task, *, summary: TaskSummary | None = None, **fields: Any
) -> FinishedTask:
    """A finished task; its label, manifest, entry and benchmark must be given."""
    usual = {"options": NoOptions(), "summary": summary}
    return FinishedTask(path=path, task=task, **{**usual, **fields})


def keep_task(
    path: Path, task: Task, *stages: StageEntry, benchmark: Any, scores: Iterable[Score[Any]] = (),
    summary: TaskSummary | None = None, entry: Mapping[str, Any] = MappingProxyType({}),
    label: str = "", options: Any = None, **manifest: Any,
) -> FinishedTask:  # fmt: skip
    """A finished task, with these scores, of a run that has the name of its folder.

    `entry` is what its manifest says of it, and `manifest` what it says of the run.
    """
    write_scores(RunFolder(path), task.name, scores)
    made = make_entry(task, *stages, **entry)
    model = manifest.get("model", label or path.name)
    usual: dict[str, Any] = {
        "run_id": path.name, "run_key": path.name, "model": model,
        "tasks": {task.name: made}, "sessions": (Session(started="2026-01-01T00:00:00+00:00"),),
    }  # fmt: skip
    return make_finished_task(
        path, task, label=label or path.name, entry=made, benchmark=benchmark,
        options=options or NoOptions(),
        summary=summary or make_summary(task.name, benchmark=task.benchmark, model=model),
        manifest=make_manifest(**{**usual, **manifest}),
    )  # fmt: skip


def make_line(
    number: int, item: Any, outcome: Any, *, stage: str = KEY, **fields: Any
) -> JournalLine[Any, Any]:
    """The line of a journal on an item, which may be a mapping."""
    id, user = (item["id"], item["user"]) if isinstance(item, dict) else (item.id, item.user)
    return JournalLine(
        key=f"{number:032x}", stage=stage, user=user, id=id, item=item, outcome=outcome, **fields
    )


def write_journal(path: Path, *lines: JournalLine[Any, Any]) -> None:
    """Append lines to a journal."""
    with JournalWriter(path) as journal:
        for line in lines:
            journal.append(line)


def keep_records(task: FinishedTask, stage: str, pairs: Sequence[tuple[Any, Any]]) -> FinishedTask:
    """The finished task with a journal of this stage, from pairs of an item and its outcome."""
    entry = StageEntry(name=stage, key=stage[0] * 32, file=f"1-{stage}.jsonl", items=len(pairs))
    lines = (
        make_line(number, item, outcome, stage=entry.key)
        for number, (item, outcome) in enumerate(pairs)
    )
    write_journal(task.path / task.entry.folder / entry.file, *lines)
    others = (one for one in task.entry.stages if one.name != stage)
    kept = msgspec.structs.replace(task.entry, stages=(*others, entry))
    return replace(task, entry=kept)


def write_scores(folder: RunFolder, task: str, scores: Iterable[Score[Any]]) -> None:
    """Write the scores of a task where its run keeps them."""
    path = folder.scores(task)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (sealed(msgspec.json.encode(score) + b"\n", LINE) for score in scores)
    path.write_bytes(b"".join(lines))


def write_sealed(path: Path, values: dict[str, Any]) -> None:
    """Write a manifest or summary as its run would, with the right checksum."""
    path.write_bytes(sealed_file({k: v for k, v in values.items() if k != "crc32"}))
