"""Where in its files something stands that a task says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.base.errors import TaskError
from harness.contracts.task import Base, Task
from harness.tasks.load import Document, load_file
from harness.tasks.matrix import made_by
from harness.tasks.resolve import merge, where_in


def locate(
    task: Task, path: Sequence[str | int], *, of_key: bool = False, value: Any = None
) -> str:
    """`file:line:column` of what a task's files say at a path.

    With `value`, what the task says there now: where the files say something else, `--set` did it.
    """
    documents = _documents(task)
    if not documents:
        return f"task {task.name}"
    if value is not None and _said(documents, path) != value:
        return f"--set, task {task.name}"
    return where_in(documents, path, of_key=of_key)


def _documents(task: Task) -> list[Document]:
    sources = [*task.bases, *([Base(task.file, task.name)] if task.file else [])]
    try:
        return [_document(source) for source in sources]
    except TaskError:
        # The files were read a moment ago; a place is no reason to fail if they are gone now.
        return []


def _document(source: Base) -> Document:
    written = load_file(source.file)
    return next((one for one in made_by(written) if one.name == source.name), written)


def _said(documents: Sequence[Document], path: Sequence[str | int]) -> Any:
    values: dict[str, Any] = {}
    for document in documents:
        values = merge(values, document.values)
    said: Any = values
    for part in path:
        try:
            said = said[part]
        except (KeyError, IndexError, TypeError):
            return None
    return said
