"""Scoring of stored records with changed options; no model is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import UsageError
from harness.contracts.task import Task
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import FinishedTask
from harness.scoring.score_run import score_into, task_options
from harness.scoring.settings_differences import describe_differences, differences
from harness.tasks.identity import SHAPING
from harness.tasks.options import typed_options

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark


SCORING = ("metrics", "interval", "least_scored")
"""The parts of any task that only scoring reads."""


@dataclass(frozen=True, kw_only=True)
class Rescoring:
    """A stored task with changed scoring; `changed` are lines such as `window 50 → 100`."""

    task: Task
    benchmark: Benchmark
    changed: tuple[str, ...]


def rescoring(asked: Task, wanted: Task, benchmark: Benchmark) -> Rescoring:
    """The rescoring of the task `asked` as `wanted`."""
    before = _shaping(asked, task_options(asked, benchmark))
    different = differences(before, _shaping(wanted, typed_options(wanted, benchmark.options)))
    free = (*(f"options.{name}" for name in benchmark.scored_with), *SCORING)
    fixed = {
        path: sides
        for path, sides in different.items()
        if not any(path == name or path.startswith(f"{name}.") for name in free)
    }
    if fixed:
        types = {one.encode_name: one.type for one in msgspec.structs.fields(benchmark.options)}
        may_change: list[str] = []  # options within an option have dotted names
        for name in benchmark.scored_with:
            kind = types.get(name)
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                inside = msgspec.structs.fields(kind)
                may_change += [f"{name}.{field.encode_name}" for field in inside]
            else:
                may_change.append(name)
        raise UsageError(
            f"task {asked.name!r} cannot be scored with these changes without asking again",
            found="; ".join(_arrows(fixed)),
            expected=f"changes of {', '.join((*may_change, *SCORING))}",
            hint="start a run with these changes: it reuses stored replies where possible",
        )
    task = msgspec.structs.replace(
        asked, options=wanted.options, **{name: getattr(wanted, name) for name in SCORING}
    )
    return Rescoring(task=task, benchmark=benchmark, changed=_arrows(different))


def rescore(
    into: Path, folder: RunFolder, manifest: Manifest, how: Rescoring, *, label: str
) -> FinishedTask:
    """The rescored task of a run, with its scores in the file `into`; the run is not changed."""
    summary = score_into(into, folder, manifest, how.task, how.benchmark)
    options = task_options(how.task, how.benchmark)
    if how.changed:
        reason = f"scored with {'; '.join(how.changed)}"
        before = task_options(manifest.tasks[how.task.name].task(), how.benchmark)
        asked = {name for stage in how.benchmark.stages for name in stage.options}
        if any(getattr(before, name, None) != getattr(options, name, None) for name in asked):
            reason += ": the prompts were asked with the old values"
        summary = msgspec.structs.replace(
            summary,
            comparable=False,
            not_comparable_because=(*summary.not_comparable_because, reason),
        )
    return FinishedTask(
        label=label,
        path=folder.path,
        manifest=manifest,
        entry=manifest.tasks[how.task.name],
        task=how.task,
        benchmark=how.benchmark,
        options=options,
        summary=summary,
        scores_file=into,
    )


def _shaping(task: Task, options: msgspec.Struct) -> dict[str, Any]:
    shaping = {name: msgspec.to_builtins(getattr(task, name)) for name in SHAPING}
    return {**shaping, "options": msgspec.to_builtins(options)}


def _arrows(different: Any) -> tuple[str, ...]:
    short = {path.removeprefix("options."): sides for path, sides in different.items()}
    return describe_differences(short, between="→")
