"""Converts a task's options to its benchmark's type."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from harness.base.errors import TaskError, did_you_mean
from harness.contracts.task import Task
from harness.tasks.load import value_at
from harness.tasks.locate import locate
from harness.tasks.task_schema import dotted, short
from harness.tasks.wanted import choices, in_words, keys, type_at

S = TypeVar("S", bound=msgspec.Struct)

_UNKNOWN = re.compile(r"unknown field `(?P<name>.*?)`")


def typed_options(task: Task, options_type: type[S]) -> S:
    """A task's options as the benchmark's type, missing ones at their defaults."""
    known = [field.encode_name for field in msgspec.structs.fields(options_type)]
    for name in task.options:
        if name not in known:
            raise _unknown(task, ("options", name), known)
    try:
        return msgspec.convert(task.options, options_type, strict=True)
    except msgspec.ValidationError as error:
        problem, _, written = str(error).removesuffix("`").partition(" - at `$")
        steps = re.findall(r"\.(\w+)|\[(\d+)\]", written)
        path = tuple(name or int(index) for name, index in steps)
        unknown = _UNKNOWN.search(problem)
        if unknown:
            inside = keys(type_at(options_type, path))
            raise _unknown(task, ("options", *path, unknown["name"]), inside) from error
        value = value_at(task.options, path)
        # Errors of a struct's own checks, and of free keys, keep their wording.
        own = not problem.startswith(("Expected `", "Invalid enum value")) or "[...]" in str(error)
        shape = None if own else type_at(options_type, path)
        raise TaskError(
            f"the option `{dotted(path)}` is invalid" if path else "the options are invalid",
            where=locate(task, ("options", *path), value=value),
            found=short(value) if path else None,
            expected=problem if shape is None else in_words(shape),
            hint=did_you_mean(str(value), choices(shape)),
        ) from error


def _unknown(task: Task, path: tuple[str | int, ...], known: list[str]) -> TaskError:
    name = str(path[-1])
    none = "no options: this benchmark has none" if len(path) == 2 else None
    return TaskError(
        f"unknown option `{dotted(path[1:])}` of the benchmark {task.benchmark!r}",
        where=locate(task, path, of_key=True, value=value_at(task.options, path[1:])),
        expected=f"one of {', '.join(known)}" if known else none,
        hint=did_you_mean(name, known),
    )
