"""Task files with a matrix: one task for each combination of its values.

Equal values are shared between the tasks, so that hundreds of tasks cost little more than one.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from harness.base.errors import TaskError, one_of
from harness.tasks.load import Document
from harness.tasks.task_schema import part_errors, raise_all, short

KEY = "matrix"
MOST = 5000
"""The most tasks of one file: a typo in a matrix can create millions of tasks."""

PLACE = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

Scalar: TypeAlias = "str | int | float | bool"
Fill: TypeAlias = "Callable[[Mapping[str, str]], Any]"


def expand(document: Document) -> tuple[Document, ...]:
    """The tasks of a file's matrix, in the order of the matrix; the document itself without one.

    Each task has the values of its combination as options and in place of {key} in every text.
    TaskError if the matrix is invalid.
    """
    if KEY not in document.values or document.is_group:
        return (document,)
    matrix = _matrix(document)
    for name in matrix:
        if document.has(["options", name]):
            raise TaskError(
                f"the option `{name}` is given twice",
                where=document.where(["options", name], of_key=True),
                found=f"`options.{name}` and `{KEY}.{name}`",
                expected=f"the option either in `options` or in `{KEY}`",
            )
    _check_name(document, matrix)
    values = {name: value for name, value in document.values.items() if name != KEY}
    fill = _filler(values, matrix) or (lambda texts: values)
    tasks: dict[str, Document] = {}
    for chosen in itertools.product(*(range(len(listed)) for listed in matrix.values())):
        places = dict(zip(matrix, chosen, strict=True))
        combination = {name: matrix[name][place] for name, place in places.items()}
        filled = dict(fill({name: text_of(value) for name, value in combination.items()}))
        options = filled.get("options", {})
        if isinstance(options, dict):  # the schema reports options that are no mapping
            filled["options"] = {**options, **combination}
        one = replace(
            document,
            values=filled,
            written=document.values,
            moved={("options", name): (KEY, name, place) for name, place in places.items()},
        )
        if one.name in tasks:
            raise TaskError(
                "two tasks of the matrix have the same name",
                where=document.where(["task"]),
                found=one.name,
                expected="text between the {…} that gives every combination its own name",
            )
        tasks[one.name] = one
    return tuple(tasks.values())


def text_of(value: Scalar) -> str:
    """A value of a matrix as text, for names and texts."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _filler(value: Any, keys: Mapping[str, Any]) -> Fill | None:
    """Fills a combination into a value; None if the value is the same in all of them."""
    if isinstance(value, str):
        if not any(name in keys for name in PLACE.findall(value)):
            return None
        return lambda texts: PLACE.sub(lambda found: texts.get(found[1], found[0]), value)
    if isinstance(value, dict):
        inside = {name: fill for name, one in value.items() if (fill := _filler(one, keys))}
        if not inside:
            return None
        return lambda texts: {**value, **{name: fill(texts) for name, fill in inside.items()}}
    if isinstance(value, list):
        fills = [_filler(one, keys) for one in value]
        if not any(fills):
            return None
        return lambda texts: [
            fill(texts) if fill else one for fill, one in zip(fills, value, strict=True)
        ]
    return None


def _matrix(document: Document) -> dict[str, list[Scalar]]:
    matrix: dict[str, list[Scalar]] = document.values[KEY]
    raise_all(part_errors(KEY, matrix, document.where))
    for name, listed in matrix.items():
        if not NAME.fullmatch(name):
            raise TaskError(
                f"a key of `{KEY}` is not the name of an option",
                where=document.where([KEY, name], of_key=True),
                found=name,
                expected="the name of an option: letters, digits and _",
            )
        texts: set[str] = set()
        for place, value in enumerate(listed):
            if text_of(value) in texts:
                raise TaskError(
                    f"`{KEY}.{name}` lists a value twice",
                    where=document.where([KEY, name, place]),
                    found=short(value),
                    expected="each value once",
                )
            texts.add(text_of(value))
    number = math.prod(len(listed) for listed in matrix.values())
    if number > MOST:
        raise TaskError(
            f"`{KEY}` makes too many tasks",
            where=document.where([KEY], of_key=True),
            found=f"{number:,} combinations",
            expected=f"{MOST:,} at most",
        )
    return matrix


def _check_name(document: Document, matrix: Mapping[str, Any]) -> None:
    """Raise TaskError unless the task's name contains every key of the matrix and no other."""
    name, where = document.values.get("task"), document.where(["task"])
    if not isinstance(name, str):
        raise TaskError("`task` is invalid", where=where, found=short(name), expected="a name")
    named = PLACE.findall(name)
    every = ", ".join(f"{{{key}}}" for key in matrix)
    for one in named:
        problem = f"`task` contains {{{one}}}, which is not a key of the matrix"
        one_of(
            one, matrix, problem, TaskError, where=where, found=name,
            listed=f"one of {every.replace('{', '{{').replace('}', '}}')}",
        )  # fmt: skip
    missing = [key for key in matrix if key not in named]
    if missing:
        raise TaskError(
            "several tasks of the matrix would have the same name",
            where=where,
            found=name,
            expected=f"a name that contains {', '.join(f'{{{key}}}' for key in missing)}",
        )
