"""The runs in a folder, each in short: its model, its tasks, their progress and main metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from harness.base.errors import DataError, HarnessError
from harness.runs.manifest import Manifest, Status, TaskEntry
from harness.runs.run_folder import RunFolder
from harness.scoring.score_run import read_summary, unfinished_stages
from harness.scoring.summary import TaskSummary, main_metrics, over_repeats
from harness.tasks.repeats import task_and_repeat


class ListedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a run with its repeats: its progress and its main metric.

    With several `repeats` the value is their mean. `metric` is None until every repeat is finished
    and scored; `value` is None if the metric has none. `missing` counts the units without a score.
    `problem` is why a summary is unreadable.
    """

    task: str
    stages: int
    stages_done: int
    repeats: int
    scored: bool
    metric: str | None = None
    value: float | None = None
    interval: tuple[float, float] | None = None
    n: int | None = None
    missing: int = 0
    higher_is_better: bool | None = None
    problem: str | None = None


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in short; `model` is its label.

    `at_work` is None if a process on another machine may be at work in it.
    """

    folder: str
    run: str
    begun: str | None
    model: str
    status: Status
    at_work: bool | None
    limit: int | None
    problem: str | None
    tasks: tuple[ListedTask, ...]
    tags: dict[str, str] = {}


class Unlisted(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that is no run, or whose manifest cannot be read, and why."""

    folder: str
    because: str


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The runs in a folder, the newest first, and the other folders in it."""

    folder: str
    runs: tuple[ListedRun, ...]
    damaged: tuple[Unlisted, ...]
    others: tuple[Unlisted, ...]


def list_runs(place: Path, tags: Mapping[str, str] | None = None) -> Listing:
    """All runs in a folder, or those with all these tags; none if the folder does not exist."""
    runs: list[ListedRun] = []
    damaged: list[Unlisted] = []
    others: list[Unlisted] = []
    for path in _inside(place):
        folder = RunFolder(path)
        try:
            if not path.is_dir():
                continue
            if folder.manifest_file.exists():
                manifest = folder.manifest()
                if (tags or {}).items() <= manifest.tags.items():
                    runs.append(
                        ListedRun(
                            folder=str(folder.path),
                            run=folder.path.name,
                            begun=manifest.sessions[0].started if manifest.sessions else None,
                            model=manifest.label,
                            status=manifest.status,
                            at_work=folder.at_work() if manifest.status == "running" else False,
                            limit=manifest.limit,
                            problem=manifest.problem,
                            tasks=tuple(_tasks(folder, manifest)),
                            tags=manifest.tags,
                        )
                    )
            else:
                others.append(Unlisted(folder=str(path), because="it has no manifest.json"))
        except HarnessError as error:
            damaged.append(Unlisted(folder=str(path), because=str(error)))
        except OSError as error:
            why = error.strerror or str(error)
            damaged.append(Unlisted(folder=str(path), because=f"{path}: {why}"))
    runs.sort(key=lambda run: (run.begun or "", run.run), reverse=True)
    return Listing(
        folder=str(place), runs=tuple(runs), damaged=tuple(damaged), others=tuple(others)
    )


def _inside(place: Path) -> list[Path]:
    try:
        return sorted(place.iterdir()) if place.is_dir() else []
    except OSError as error:
        raise DataError(
            "the folder of runs cannot be read",
            where=str(place),
            found=error.strerror or str(error),
            hint="check the folder's permissions, or name another with --output_path",
        ) from error


def _tasks(folder: RunFolder, manifest: Manifest) -> Iterator[ListedTask]:
    repeats: dict[str, dict[str, TaskEntry]] = {}
    for name, entry in manifest.tasks.items():
        repeats.setdefault(task_and_repeat(name)[0], {})[name] = entry
    for task, entries in repeats.items():
        stages = [len(entry.stages) for entry in entries.values()]
        undone = [len(unfinished_stages(entry)) for entry in entries.values()]
        listed = ListedTask(
            task=task,
            stages=sum(stages),
            stages_done=sum(stages) - sum(undone),
            repeats=len(entries),
            scored=False,
        )
        if any(undone):
            yield listed
            continue
        try:
            found = [read_summary(folder.summary(name)) for name in entries]
        except HarnessError as error:
            yield msgspec.structs.replace(listed, problem=str(error))
            continue
        summaries = [one for one in found if one is not None]
        yield _with_metric(listed, summaries) if len(summaries) == len(found) else listed


def _with_metric(listed: ListedTask, summaries: list[TaskSummary]) -> ListedTask:
    scored = msgspec.structs.replace(listed, scored=True)
    named = main_metrics(summaries[0].main, summaries[0].metrics)
    if not named:
        return scored
    main = named[0]
    result = summaries[0].metrics[main]
    alone = len(summaries) == 1
    mean = None if alone else over_repeats(summaries)[0].metrics[main].mean
    return msgspec.structs.replace(
        scored,
        metric=main,
        value=result.value if alone else mean,
        interval=result.interval if alone else None,
        n=result.n if alone else None,
        missing=sum(sum(one.metrics[main].missing.values()) for one in summaries),
        higher_is_better=result.higher_is_better,
    )
