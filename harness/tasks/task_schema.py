"""Checks task files against the types in `harness.contracts.task`, with errors for people."""

from __future__ import annotations

import functools
import json
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union

import msgspec

from harness.base.errors import TaskError, did_you_mean
from harness.contracts.task import GroupFile, Key, TaskFile
from harness.tasks.load import Document

SHOWN = 80
"""The most characters of a value in an error."""


Where = Callable[..., str]
"""Finds the place of the value at a path, or with `of_key` of the key."""


def document_errors(document: Document) -> list[TaskError]:
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
        return sorted(_misfits(TaskFile, document.values, [], document.where), key=_place)
    return [
        TaskError(
            "the file defines neither a task nor a group",
            where=document.where([]),
            found=f"the keys {', '.join(document.values) or '(none)'}",
            expected="`task: NAME` or `group: NAME`",
        )
    ]


def errors_of(kind: Any, document: Document) -> list[TaskError]:
    """All violations of a type in one file, with its missing keys, in the order of lines."""
    found = [*_misfits(kind, document.values, [], document.where)]
    return sorted([*found, *_gaps(kind, document.values, [], document.where)], key=_place)


def completeness_errors(values: Mapping[str, Any], where: Where) -> list[TaskError]:
    """The required keys that a task lacks after merging its bases."""
    return sorted(_gaps(TaskFile, values, [], where), key=_place)


def part_errors(part: str, value: Any, where: str) -> list[TaskError]:
    """All violations of the schema in one part of a task, which was changed at `where`."""
    hint = typing.get_type_hints(TaskFile, include_extras=True)[part]
    return [*_misfits(hint, value, [part], lambda path, *, of_key=False: where)]


def raise_first(errors: Sequence[TaskError]) -> None:
    """Raise the first error, if there is one, with the number of further ones."""
    if not errors:
        return
    first = errors[0]
    if len(errors) > 1:
        more = f"{len(errors) - 1} more in the same file: `harness validate` lists all"
        first.hint = f"{first.hint}; {more}" if first.hint else more
    raise first


def short(value: Any) -> str:
    """A value for an error, cut if it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def dotted(path: Sequence[str | int]) -> str:
    """A path as text: `data.tables.items.columns`, `metrics[2]`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")


def _place(error: TaskError) -> tuple[int, ...]:
    numbers = str(error.where).rsplit(":", 2)[1:]
    return tuple(int(number) for number in numbers if number.isdigit())


@functools.cache
def _keys(kind: Any) -> Mapping[str, Any] | None:
    """The type of each key of a type with fixed keys; None for any other type."""
    if isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or typing.is_typeddict(kind)):
        return typing.get_type_hints(kind, include_extras=True)
    if typing.get_origin(kind) is dict:
        names, value = typing.get_args(kind)
        if typing.get_origin(names) is Literal:
            return dict.fromkeys(typing.get_args(names), value)
    return None


@functools.cache
def _needed(kind: Any) -> Sequence[str]:
    """The required keys; those of a task after merging its bases."""
    if kind is TaskFile:
        return ("version", "benchmark", "data", "metrics")
    if kind is GroupFile:
        return ("group", "tasks")
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [one.name for one in msgspec.structs.fields(kind) if one.required]
    return ()


@functools.cache
def _parts(hint: Any) -> tuple[tuple[Any, ...], tuple[Key, ...], str | None]:
    """The parts of a type hint: alternatives, bounds, and the meaning for people."""
    kind, *notes = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
    bounds = tuple(note for note in notes if isinstance(note, Key))
    # `SomeSampling` is annotated with the type that lists its keys.
    kind = next((note for note in notes if isinstance(note, type)), kind)
    is_union = typing.get_origin(kind) in (Union, types.UnionType)
    meanings = [one.meaning for one in bounds if one.meaning]
    if not meanings and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        meanings = (kind.__doc__ or "").splitlines()[:1]
    alternatives = typing.get_args(kind) if is_union else (kind,)
    return alternatives, bounds, meanings[-1] if meanings else None


def _gaps(hint: Any, value: Any, path: list[str | int], where: Where) -> Iterator[TaskError]:
    """An error for each required key that is missing."""
    (kind, *_), _, _ = _parts(hint)
    keys = _keys(kind)
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from _gaps(typing.get_args(kind)[0], one, [*path, index], where)
    if keys is None or not isinstance(value, dict):
        return
    for key, inner in keys.items():
        if key in value:
            yield from _gaps(inner, value[key], [*path, key], where)
        elif key in _needed(kind):
            _, _, meaning = _parts(inner)
            yield TaskError(
                f"`{dotted([*path, key])}` is missing",
                where=where(path, of_key=True),
                expected=f"`{key}`" + (f": {meaning}" if meaning else ""),
            )


def _misfits(
    hint: Any, value: Any, path: list[str | int], where: Where, above: str | None = None
) -> Iterator[TaskError]:
    """An error for each part of a value that does not match its type."""
    alternatives, bounds, meaning = _parts(hint)
    meaning = meaning or above
    fitting = [one for one in alternatives if _fits(one, value)]
    if len(alternatives) > 1 and fitting:
        yield from _misfits(fitting[0], value, path, where, meaning)
        return
    if fitting:
        wrong = [*_violated(fitting[0], bounds, value)]
    else:
        wrong = [
            " or ".join(
                f"one of {', '.join(typing.get_args(one))}"
                if typing.get_origin(one) is Literal
                else _WORDS[_plain(one)]
                for one in alternatives
            )
        ]
    for wanted in wrong:
        yield TaskError(
            f"`{dotted(path)}` is invalid",
            where=where(path),
            found=short(value),
            expected=f"{wanted} ({meaning})" if meaning and meaning != wanted else wanted,
        )
    if fitting and fitting != [Any]:
        yield from _misfits_inside(fitting[0], value, path, where)


def _misfits_inside(
    kind: Any, value: Any, path: list[str | int], where: Where
) -> Iterator[TaskError]:
    if isinstance(value, list):
        hint = typing.get_args(kind)[0]
        for index, one in enumerate(value):
            yield from _misfits(hint, one, [*path, index], where)
    elif isinstance(value, dict):
        keys = _keys(kind)
        for key, one in value.items():
            if keys is not None and key not in keys:
                yield TaskError(
                    f"unknown key {key!r}" + (f" in `{dotted(path)}`" if path else ""),
                    where=where([*path, key], of_key=True),
                    expected=f"one of {', '.join(keys)}",
                    hint=did_you_mean(key, keys),
                )
            else:
                hint = typing.get_args(kind)[1] if keys is None else keys[key]
                yield from _misfits(hint, one, [*path, key], where)


def _plain(kind: Any) -> Any:
    """The YAML type of a type: str, int, float, bool, None's type, list or dict."""
    kind = typing.get_args(kind)[0] if typing.get_origin(kind) is Annotated else kind
    kind = typing.get_origin(kind) or kind
    if kind is tuple:
        return list
    return kind if kind in _WORDS else dict


def _fits(kind: Any, value: Any) -> bool:
    if kind is Any:
        return True
    if typing.get_origin(kind) is Literal:
        return value in typing.get_args(kind)
    plain = _plain(kind)
    if isinstance(value, bool):
        return plain is bool
    return isinstance(value, (int, float) if plain is float else plain)


_WORDS: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "keys and values",
    types.NoneType: "null",
}
_EMPTY: dict[Any, str] = {
    str: "text that is not empty",
    list: "a list that is not empty",
    dict: "at least one key",
}


def _violated(kind: Any, bounds: Sequence[Key], value: Any) -> Iterator[str]:
    """The bounds that the value violates, in words."""
    inside = typing.get_args(kind)
    if typing.get_origin(kind) is tuple and inside[-1] is not ... and len(value) != len(inside):
        yield f"a list of {len(inside)} values"
    for bound in bounds:
        if bound.ge is not None and value < bound.ge:
            yield f"at least {bound.ge}"
        if bound.le is not None and value > bound.le:
            yield f"at most {bound.le}"
        if bound.gt is not None and value <= bound.gt:
            yield f"more than {bound.gt}"
        if bound.lt is not None and value >= bound.lt:
            yield f"less than {bound.lt}"
        if bound.min_length is not None and len(value) < bound.min_length:
            yield _EMPTY[type(value)]
        if bound.pattern is not None and not re.search(bound.pattern, value):
            yield bound.meaning or f"text of the form {bound.pattern}"
        if bound.one_key and len(value) != 1:
            yield f"exactly one of {', '.join(_keys(kind) or ())}"
        if bound.unique and len({*map(short, value)}) < len(value):
            yield "a list without duplicates"
