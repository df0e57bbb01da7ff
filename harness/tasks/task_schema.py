"""Checks task files against the types in `harness.contracts.task`, with errors for people."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from harness.base.errors import HarnessError, TaskError, did_you_mean
from harness.contracts.task import GroupFile, TaskFile
from harness.tasks.load import Document, value_at
from harness.tasks.shapes import Misfit, keys, misfits

S = TypeVar("S", bound=msgspec.Struct)

SHOWN = 80
"""The most characters of a value in an error."""


Where = Callable[..., str]
"""Finds the place of the value at a path, or with `of_key` of the key."""

shape_of = functools.cache(inspect.type_info)


def document_errors(document: Document) -> list[HarnessError]:
    """All violations of the schema in one file, in the order of lines."""
    if "task" in document.values and document.is_group:
        return [
            TaskError(
                "a file is either a task or a group",
                where=document.where(["group"], of_key=True),
                found="both `task` and `group`",
                expected="either `task` or `group`",
            )
        ]
    if document.is_group:
        return errors_of(GroupFile, document)
    if "task" in document.values:
        found = misfits(shape_of(TaskFile), document.values)
        # What is missing may come from a base.
        return _errors([one for one in found if one.kind != "missing"], document.where)
    return [
        TaskError(
            "the file defines neither a task nor a group",
            where=document.where([]),
            found=f"the keys {', '.join(document.values) or '(none)'}",
            expected="`task: NAME` or `group: NAME`",
        )
    ]


def errors_of(kind: Any, document: Document) -> list[HarnessError]:
    """All violations of a type in one file, with its missing keys, in the order of lines."""
    return _errors([*misfits(shape_of(kind), document.values)], document.where)


def completeness_errors(values: Mapping[str, Any], where: Where) -> list[HarnessError]:
    """The required keys that a task lacks after merging its bases."""
    found = misfits(shape_of(TaskFile), values)
    return _errors([one for one in found if one.kind == "missing"], where)


def part_errors(part: str, value: Any, where: Where) -> list[HarnessError]:
    """All violations of the schema in one part of a task, such as `data`."""
    shape = (keys(shape_of(TaskFile)) or {})[part].type
    return _errors([*misfits(shape, value, (part,))], where)


def typed(
    value: Any,
    kind: type[S],
    error_of: Callable[[Misfit], HarnessError],
    *,
    made: Callable[[Any, Any], Any] | None = None,
) -> S:
    """A value as the type of it; raises the errors of all that does not fit in it.

    `made` makes a value of a type that no file has, as msgspec's `dec_hook` does.
    """
    raise_all(map(error_of, misfits(shape_of(kind), value)))
    try:
        return msgspec.convert(value, kind, strict=True, dec_hook=made)
    except msgspec.ValidationError as error:
        # A struct's own checks, and values of types that no file has.
        problem, _, written = str(error).removesuffix("`").partition(" - at `$")
        steps = re.findall(r"\.(\w+)|\[(\d+)\]", written)
        path = tuple(name or int(index) for name, index in steps)
        found = value_at(value, path)
        misfit = Misfit(kind="invalid", path=path, found=found, expected=problem)
        raise error_of(misfit) from error


def raise_all(errors: Iterable[HarnessError]) -> None:
    """Raise one error that tells all of these in the order of lines, if there are any."""
    ordered = in_order(errors)
    if ordered:
        first, *others = ordered
        first.others = tuple(others)
        raise first


def in_order(errors: Iterable[HarnessError]) -> list[HarnessError]:
    """The errors, and those that they are told with, each by itself in the order of lines."""
    found = [each for one in errors for each in (one, *one.others)]
    for one in found:
        one.others = ()
    return sorted(found, key=_place)


def _place(error: HarnessError) -> tuple[str, tuple[int, ...]]:
    file, *numbers = str(error.where).rsplit(":", 2)
    return file, tuple(int(number) for number in numbers if number.isdigit())


def short(value: Any) -> str:
    """A value for an error, cut if it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def dotted(path: Sequence[str | int]) -> str:
    """A path as text: `data.tables.items.columns`, `metrics[2]`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")


def _errors(found: Sequence[Misfit], where: Where) -> list[HarnessError]:
    errors: list[HarnessError] = []
    for one in found:
        name, above = dotted(one.path), one.path[:-1]
        if one.kind == "missing":
            error = TaskError(
                f"`{name}` is missing", where=where(above, of_key=True), expected=one.expected
            )
        elif one.kind == "unknown":
            error = TaskError(
                f"unknown key {one.path[-1]!r}" + (f" in `{dotted(above)}`" if above else ""),
                where=where(one.path, of_key=True),
                expected=f"one of {', '.join(one.known)}",
                hint=did_you_mean(str(one.path[-1]), one.known),
            )
        else:
            error = TaskError(
                f"`{name}` is invalid",
                where=where(one.path),
                found=short(one.found),
                expected=one.expected,
            )
        errors.append(error)
    return in_order(errors)
