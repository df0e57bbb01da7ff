"""What the repeats of a task are called: `interests`, then `interests@2`, `interests@3`."""

from __future__ import annotations

import msgspec

from harness.contracts.task import Task

SIGN = "@"
"""Stands in no name that a task file can give."""


def repeat_name(task: str, number: int) -> str:
    """The name of a task's repeat; repeats count from 1, and the first is the task itself."""
    return task if number == 1 else f"{task}{SIGN}{number}"


def task_and_repeat(name: str) -> tuple[str, int]:
    """The task that a name belongs to, and which of its repeats it is."""
    task, _, number = name.partition(SIGN)
    return task, int(number or 1)


def repeat_of(task: Task, number: int) -> Task:
    """The task under the name of its repeat."""
    return msgspec.structs.replace(task, name=repeat_name(task.name, number))
