"""Finds the place of a task's values in its files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.base.errors import TaskError
from harness.contracts.task import Base, Task
from harness.tasks.load import Document, load_file, value_at
from harness.tasks.matrix import expand
from harness.tasks.resolve import merge, where_in


def locate(
    task: Task, path: Sequence[str | int], *, of_key: bool = False, value: Any = None
) -> str:
    """`file:line:column` of a task's value at a path.

    `value` is the task's current value: if the files have another one, it came from `--set`.
    """
    documents: list[Document] = []
    try:
        for source in [*task.bases, *([Base(task.file, task.name)] if task.file else [])]:
            whole = load_file(source.file)
            documents.append(next((one for one in expand(whole) if one.name == source.name), whole))
    except TaskError:  # the files were read before: if they are gone now, only the place is lost
        documents = []
    if not documents:
        return f"task {task.name}"
    if value is not None:
        written: dict[str, Any] = {}
        for document in documents:
            written = merge(written, document.values)
        if value_at(written, path) != value:
            return f"--set, task {task.name}"
    return where_in(documents, path, of_key=of_key)
