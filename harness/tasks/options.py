"""Converts a task's options to its benchmark's type."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

import msgspec

from harness.base.errors import TaskError, did_you_mean
from harness.contracts.task import Task
from harness.tasks.load import value_at
from harness.tasks.locate import locate
from harness.tasks.shapes import Misfit
from harness.tasks.task_schema import dotted, short, typed

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
