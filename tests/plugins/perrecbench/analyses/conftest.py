"""Finished tasks of stored runs, written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from harness_perrecbench.benchmark import PERRECBENCH
from harness_perrecbench.records import Options

from harness.contracts.records import Score
from harness.contracts.task import DataSpec, RoleSpec, Task
from harness.runs.manifest import Manifest, RoleEntry, Session, TaskEntry, task_definition
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import FinishedTask
from harness.scoring.summary import TaskSummary

AGREEMENT = ("ptc", "ptc_published", "like_higher_average")


def _score(item: str, found: Any, always: Mapping[str, float]) -> Score[Any]:
    """A number is both taus, a text the cause why there is none, a dict whatever it holds."""
    if isinstance(found, str):
        return Score(
            id=item, user=item, values=dict(always), missing=dict.fromkeys(AGREEMENT, found)
        )
    values = found if isinstance(found, dict) else {"ptc": found, "ptc_published": found}
    return Score(id=item, user=item, values={**always, **values})


@pytest.fixture
def kept(tmp_path):
    """A finished task, from what it found of each item.

    `always` are values that every item has, `because` says why it is not comparable, `more` are
    options. Each model has a run of its own, unless one is named.
    """

    def make(
        model: str,
        found: Mapping[str, Any],
        *,
        level: str = "easy",
        ask: str = "pointwise",
        always: Mapping[str, float] | None = None,
        run: str | None = None,
        label: str | None = None,
        name: str | None = None,
        limit: int | None = None,
        data: Mapping[str, Any] | None = None,
        because: tuple[str, ...] = (),
        prompts: Mapping[str, str] | None = None,
        sampling: Mapping[str, Any] | None = None,
        asked: Mapping[str, Any] | None = None,
        revision: str = "1",
        seed: int = 0,
        kind: type[Options] = Options,
        **more: Any,
    ) -> FinishedTask:
        options = kind(level=level, ask=ask, **more)
        task = Task(
            name=name or "_".join(["perrec", level, ask, *map(str, more.values())]),
            version=1,
            benchmark="perrecbench",
            data=DataSpec(tables={}),
            metrics=("ptc", "ptc_published"),
            options=msgspec.to_builtins(options),
            prompts=dict(prompts or {}),
            roles={"candidate": RoleSpec(sampling=dict(sampling or {}))},
        )
        folder = RunFolder(tmp_path / (run or f"run-of-{model}"))
        path = folder.scores(task.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [_score(item, one, always or {}) for item, one in found.items()]
        path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        entry = TaskEntry(
            folder=task.name,
            definition=task_definition(task),
            content="",
            stages=(),
            data=dict(data or {}),
        )
        return FinishedTask(
            label=label or model,
            path=folder.path,
            manifest=msgspec.structs.replace(
                _manifest(folder, model, entry, limit, dict(asked or {})),
                roles={"candidate": _role(model, revision, run)},
                seed=seed,
            ),
            entry=entry,
            task=task,
            benchmark=PERRECBENCH,
            options=options,
            summary=_summary(task, model, because, len(found), limit),
        )

    return make


def _role(model: str, revision: str, run: str | None) -> RoleEntry:
    identity = {"kind": "served", "name": model, "details": {"revision": revision}, "run": run}
    return RoleEntry(name=model, identity=identity)


def _manifest(
    folder: RunFolder, model: str, entry: TaskEntry, limit: int | None, asked: dict[str, Any]
) -> Manifest:
    return Manifest(
        run_id=folder.path.name,
        run_key=folder.path.name,
        status="done",
        model=model,
        seed=0,
        limit=limit,
        asked=asked,
        settings={},
        tasks={entry.folder: entry},
        sessions=(Session(started="2026-01-01T00:00:00+00:00"),),
    )


def _summary(
    task: Task, model: str, because: tuple[str, ...], units: int, limit: int | None
) -> TaskSummary:
    return TaskSummary(
        format=1,
        task=task.name,
        version=1,
        content="",
        benchmark=task.benchmark,
        model=model,
        roles={"candidate": model},
        data={},
        comparable=not because,
        not_comparable_because=because,
        limit=limit,
        seed=0,
        units=units,
        metrics={},
        stages={},
    )
