"""The names of a task's repeats: `interests`, then `interests@2`, `interests@3`."""

from __future__ import annotations

import msgspec

from harness.contracts.task import Task

SIGN = "@"
"""Not allowed in the names of task files."""


def task_and_repeat(name: str) -> tuple[str, int]:
    """The name of the task and the number of the repeat in a repeat's name."""
    task, _, number = name.partition(SIGN)
    return task, int(number or 1)


def repeat_of(task: Task, number: int) -> Task:
    """The task with the name of a repeat: the first repeat, number 1, has the task's own name."""
    return task if number == 1 else msgspec.structs.replace(task, name=f"{task.name}{SIGN}{number}")
