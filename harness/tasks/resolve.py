"""Merges tasks with the bases that they extend, and finds the place of a task's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.errors import TaskError
from harness.contracts.task import Base, Task
from harness.tasks.load import Document, load_file, value_at
from harness.tasks.matrix import expand

OWN = ("task", "extends", "abstract")
"""The keys of a file that tasks do not inherit."""

Find = Callable[[str, Document, Sequence[str | int]], Document]
"""Finds the document of a reference, given the document and path of the reference; raises
TaskError."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Resolved:
    """A task merged with its bases, whose `documents` end with the task's; later ones override."""

    values: Mapping[str, Any]
    documents: tuple[Document, ...]

    @property
    def document(self) -> Document:
        """The task's own file."""
        return self.documents[-1]

    def where(self, path: Sequence[str | int], *, of_key: bool = False) -> str:
        """The place of the value at a path, or of the nearest one above it."""
        return where_in(self.documents, path, of_key=of_key)


def where_in(
    documents: Sequence[Document], path: Sequence[str | int], *, of_key: bool = False
) -> str:
    """`file:line:column` in the last document with a value at a path, or above it."""
    for length in range(len(path), 0, -1):
        for document in reversed(documents):
            if document.has(path[:length]):
                return document.where(path, of_key=of_key)
    return documents[-1].where(["task"])


def resolve(document: Document, find: Find) -> Resolved:
    """A task merged with all its bases.

    A base that is reached in several ways counts once, before the tasks that extend it.
    """
    documents: dict[tuple[Path, str], Document] = {}
    _visit(document, find, (), documents)
    values: dict[str, Any] = {}
    for one in documents.values():
        inherited = one is not document
        own = {key: value for key, value in one.values.items() if not (inherited and key in OWN)}
        # Files and folders are relative to the document that names them.
        prompts, data = own.get("prompts"), own.get("data")
        if isinstance(prompts, dict):
            own["prompts"] = {name: _from(one, file) for name, file in prompts.items()}
        if isinstance(data, dict) and "folder" in data:
            own["data"] = {**data, "folder": _from(one, data["folder"])}
        values = merge(values, own)
    return Resolved(values=values, documents=tuple(documents.values()))


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both merged: mappings deeply; any other value of `over` replaces that of `base`."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[key] = merge(below, value) if both else value  # type: ignore[arg-type]
    return merged


def references(document: Document, key: str) -> tuple[tuple[list[str | int], str], ...]:
    """The references under a key, each with its path."""
    given = document.values.get(key, ())
    if isinstance(given, str):
        return (([key], given),)
    if isinstance(given, Sequence) and all(isinstance(one, str) for one in given):
        return tuple(([key, index], one) for index, one in enumerate(given))
    raise TaskError(
        f"`{key}` is invalid",
        where=document.where([key]),
        expected="the name or file of a task, or a list of them",
    )


def _visit(
    document: Document,
    find: Find,
    above: tuple[Document, ...],
    done: dict[tuple[Path, str], Document],
) -> None:
    if document.key in done:
        return
    line = (*above, document)
    for path, reference in references(document, "extends"):
        base = find(reference, document, path)
        if base.is_group:
            raise TaskError(
                f"`extends` names the group {reference!r}",
                where=document.where(path),
                expected="the name of a task",
            )
        on_line = [one.key for one in line]
        if base.key in on_line:
            circle = [*line[on_line.index(base.key) :], base]
            raise TaskError(
                "tasks extend each other in a circle",
                where=document.where(path),
                found=" -> ".join(one.name for one in circle),
            )
        _visit(base, find, line, done)
    done[document.key] = document


def _from(document: Document, named: Any) -> Any:
    return str(document.file.parent / named) if isinstance(named, str) else named


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
