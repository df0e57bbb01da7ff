"""The names of a task's repeats: `interests`, then `interests@2`, `interests@3`."""

from __future__ import annotations

import msgspec

from harness.contracts.task import Task

SIGN = "@"
"""Not allowed in the names of task files."""


def repeat_name(task: str, number: int) -> str:
    """The name of a task's repeat; they count from 1, and the first has the task's own name."""
    return task if number == 1 else f"{task}{SIGN}{number}"


def task_and_repeat(name: str) -> tuple[str, int]:
    """The name of the task and the number of the repeat in a repeat's name."""
    task, _, number = name.partition(SIGN)
    return task, int(number or 1)


def repeat_of(task: Task, number: int) -> Task:
    """The task with the name of a repeat."""
    return msgspec.structs.replace(task, name=repeat_name(task.name, number))
