"""The runs in a folder, each in short: its model, its tasks, their progress and main metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import DataError, HarnessError
from harness.runs.manifest import Manifest, Status
from harness.runs.progress_file import ProgressNote, read_progress
from harness.runs.run_folder import RunFolder
from harness.scoring.grouping import grouped
from harness.scoring.score_run import read_summary, unfinished_stages
from harness.scoring.summary import main_metrics, over_repeats
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

    `at_work` is None if a process on another machine may be at work in it, and `progress` what it
    last said of its stages.
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
    progress: ProgressNote | None = None


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
                at_work = folder.at_work() if manifest.status == "running" else False
                if (tags or {}).items() <= manifest.tags.items():
                    runs.append(
                        ListedRun(
                            folder=str(folder.path),
                            run=folder.path.name,
                            begun=manifest.sessions[0].started if manifest.sessions else None,
                            model=manifest.label,
                            status=manifest.status,
                            at_work=at_work,
                            limit=manifest.limit,
                            problem=manifest.problem,
                            tasks=tuple(_tasks(folder, manifest)),
                            tags=manifest.tags,
                            progress=None if at_work is False else read_progress(path),
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
    repeats = grouped((task_and_repeat(name)[0], name) for name in manifest.tasks)
    for task, names in repeats.items():
        entries = [manifest.tasks[name] for name in names]
        stages = sum(len(entry.stages) for entry in entries)
        undone = sum(len(unfinished_stages(entry)) for entry in entries)
        about: dict[str, Any] = {
            "task": task, "stages": stages, "stages_done": stages - undone, "repeats": len(names),
        }  # fmt: skip
        found = []
        if not undone:
            try:
                found = [read_summary(folder.summary(name)) for name in names]
            except HarnessError as error:
                about["problem"] = str(error)
        summaries = [one for one in found if one is not None]
        scored = bool(found) and len(summaries) == len(found)
        if scored and (named := main_metrics(summaries[0].main, summaries[0].metrics)):
            result = summaries[0].metrics[named[0]]
            about |= {
                "metric": named[0],
                "missing": sum(sum(one.metrics[named[0]].missing.values()) for one in summaries),
                "higher_is_better": result.higher_is_better,
                "value": result.value,
            }
            if len(summaries) == 1:
                about |= {"interval": result.interval, "n": result.n}
            else:
                about["value"] = over_repeats(summaries)[0].metrics[named[0]].mean
        yield ListedTask(**about, scored=scored)
