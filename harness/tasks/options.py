"""Converts a task's options to its benchmark's type, and checks that what a task names exists:
metrics, stages and roles in its benchmark, columns in its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from harness.base.errors import HarnessError, TaskError, did_you_mean
from harness.contracts.task import Task
from harness.tasks.load import value_at
from harness.tasks.resolve import locate
from harness.tasks.shapes import Misfit
from harness.tasks.task_schema import dotted, raise_all, short, typed

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark

S = TypeVar("S", bound=msgspec.Struct)


def typed_options(task: Task, options_type: type[S]) -> S:
    """A task's options as the benchmark's type, missing ones at their defaults."""
    return typed(task.options, options_type, partial(_unfit, task))


def _unfit(task: Task, one: Misfit) -> TaskError:
    path, value = ("options", *one.path), value_at(task.options, one.path)
    name = dotted(one.path)
    if one.kind == "unknown":
        none = "no options: this benchmark has none" if len(path) == 2 else None
        return TaskError(
            f"unknown option `{name}` of the benchmark {task.benchmark!r}",
            where=locate(task, path, of_key=True, value=value),
            expected=f"one of {', '.join(one.known)}" if one.known else none,
            hint=did_you_mean(str(one.path[-1]), one.known),
        )
    problem = "missing" if one.kind == "missing" else "invalid"
    return TaskError(
        f"the option `{name}` is {problem}" if one.path else "the options are invalid",
        where=locate(task, path[:-1] if one.kind == "missing" else path, value=value),
        found=short(one.found) if one.path and one.kind == "invalid" else None,
        expected=one.expected,
        hint=did_you_mean(str(one.found), one.known),
    )


def checked_options(task: Task, benchmark: Benchmark) -> Any:
    """A task's options as its benchmark's type; raises all that does not fit the benchmark."""
    errors: list[HarnessError] = [*mismatches(task, benchmark)]
    try:
        options = typed_options(task, benchmark.options)
    except TaskError as error:
        errors.append(error)
    raise_all(errors)
    return options


def mismatches(task: Task, benchmark: Benchmark) -> Iterator[TaskError]:
    """An error for each metric, stage and role that the benchmark does not have, and for each fact
    and value that no table can have."""
    yield from _mismatches_of_data(task)
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


def _mismatches_of_data(task: Task) -> Iterator[TaskError]:
    tables = task.data.tables
    for number, fact in enumerate(task.data.known):
        path = ("data", "known", number)
        columns = tables[fact.table].columns if fact.table in tables else {}
        if fact.table not in tables:
            problem, given, known = f"no table {fact.table!r}", fact.table, [*tables]
        elif fact.column is not None and fact.column not in columns:
            problem, given, known = f"no column {fact.column!r}", fact.column, [*columns]
        elif fact.values is not None and fact.column is None:
            problem, given, known = "no column for `values`", "", [*columns]
        else:
            continue
        yield TaskError(
            f"a fact about the published data names {problem} of the task",
            where=locate(task, path),
            expected=f"one of {', '.join(known)}",
            hint=did_you_mean(given, known),
        )
    for table, spec in tables.items():
        for name, column in spec.columns.items():
            wrong = [one for one in column.values.values() if one not in column.one_of]
            if column.one_of and wrong:
                yield TaskError(
                    f"the values of column {name!r} stand for something that is none of its values",
                    where=locate(task, ("data", "tables", table, "columns", name, "values")),
                    found=", ".join(dict.fromkeys(wrong)),
                    expected=f"one of {', '.join(column.one_of)}",
                    hint=did_you_mean(wrong[0], column.one_of),
                )


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
