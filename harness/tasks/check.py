"""Checks that the metrics, stages and roles of a task exist in its benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from harness.base.errors import TaskError, did_you_mean
from harness.contracts.task import Task
from harness.tasks.locate import locate

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark


def check_against_benchmark(task: Task, benchmark: Benchmark) -> None:
    """Raise TaskError for the first metric, stage or role that the benchmark does not have."""
    for error in mismatches(task, benchmark):
        raise error


def mismatches(task: Task, benchmark: Benchmark) -> Iterator[TaskError]:
    """An error for each metric, stage and role that the benchmark does not have."""
    for index, metric in enumerate(task.metrics):
        if metric not in benchmark.metrics:
            yield _unknown(task, ("metrics", index), "metric", metric, benchmark.metrics)
    asked = {stage.name: (*stage.roles, *stage.judges) for stage in benchmark.stages}
    for stage, roles in task.stages.items():
        if stage not in asked:
            yield _unknown(task, ("stages", stage), "stage", stage, asked)
            continue
        for role in roles:
            if role not in asked[stage]:
                path = ("stages", stage, role)
                yield _unknown(task, path, "role", role, asked[stage], stage=stage)
    known = dict.fromkeys(role for roles in asked.values() for role in roles)
    for role, spec in task.roles.items():
        if role not in known:
            yield _unknown(task, ("roles", role), "role", role, known)
        if spec.same_as is not None and spec.same_as not in known:
            yield _unknown(task, ("roles", role, "same_as"), "role", spec.same_as, known)


def _unknown(
    task: Task,
    path: tuple[str | int, ...],
    kind: str,
    name: str,
    known: Iterable[str],
    *,
    stage: str | None = None,
) -> TaskError:
    known = list(known)
    inside = f"the stage {stage!r} of " if stage else ""
    return TaskError(
        f"{inside}the benchmark {task.benchmark!r} has no {kind} {name!r}",
        where=locate(task, path, of_key=path[-1] == name),
        expected=f"one of {', '.join(known)}" if known else f"no {kind}: the benchmark has none",
        hint=did_you_mean(name, known),
    )
