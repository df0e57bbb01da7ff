"""`--set`: changes of what chosen tasks say."""

from __future__ import annotations

import functools
import json
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from harness.base.errors import TaskError, UsageError, did_you_mean
from harness.base.redaction import redacted_args
from harness.contracts.model import Sampling
from harness.contracts.task import Column, DelimitedSpec, HubSpec, IntervalSpec, RoleSpec, Task
from harness.tasks.load import read_value
from harness.tasks.repeats import task_and_repeat
from harness.tasks.task_schema import part_errors, raise_first

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark

LONGEST = 60
"""Characters of a value that tables show."""

PARTS = ("options", "data", "roles", "stages", "interval", "least_scored", "metrics")
"""The parts of a task that a path may begin with; any other path is one of its options."""

Shape: TypeAlias = "Mapping[str, Shape] | EllipsisType | None"
"""What may stand below a path: named keys, anything, or nothing."""


def parse_change(text: str) -> tuple[str, Any]:
    """`KEY=VALUE` as a path and a value, the value read as YAML."""
    path, equals, value = text.partition("=")
    path = path.strip()
    if not equals or not all(path.split(".")):
        raise UsageError(
            "not a change", where="--set", found=text, expected="[TASK.]PATH=VALUE, as window=10"
        )
    try:
        return path, read_value(value)
    except TaskError as error:
        raise UsageError(
            "the value cannot be read",
            where=f"--set {path}",
            found=value,
            expected="a value as YAML has it: 3, 1e-5, true, [a, b], {a: 1}, text",
            hint="quotes make any value text",
        ) from error


def shown_changes(changes: Mapping[str, Any]) -> str:
    """The changes as `--set` takes them, long values cut, and none of what is named like a key."""
    told = []
    for path, value in changes.items():
        (safe,) = redacted_args({path.rpartition(".")[2]: value}).values()
        text = safe if isinstance(safe, str) else json.dumps(safe, ensure_ascii=False, default=str)
        told.append(f"{path}={text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}")
    return ", ".join(told)


def apply_changes(
    tasks: Sequence[Task],
    changes: Mapping[str, Any],
    *,
    benchmark: Callable[[str], Benchmark] | None = None,
) -> tuple[Task, ...]:
    """The tasks with every change made in all of them that have its path.

    A path that begins with a task's or a benchmark's name means those tasks alone. `benchmark`
    finds benchmarks by name: their options, roles and stages then count where the YAML is silent.
    """
    changed = list(tasks)
    for written, value in changes.items():
        aimed, path = _aim(changed, written)
        shapes = {task.name: _shape(task, benchmark) for task in aimed}
        holders = {task.name for task in aimed if _holds(shapes[task.name], path)}
        if not holders:
            raise _nowhere(written, path, shapes)
        changed = [
            _change(task, path, value, written) if task.name in holders else task
            for task in changed
        ]
    return tuple(changed)


def changes_in(
    task: Task,
    changes: Mapping[str, Any],
    *,
    among: Sequence[Task],
    benchmark: Callable[[str], Benchmark] | None = None,
) -> dict[str, Any]:
    """Those of the changes that were made in one of the tasks they were given for."""
    made = {}
    for written, value in changes.items():
        aimed, path = _aim(among, written)
        if task.name in {one.name for one in aimed} and _holds(_shape(task, benchmark), path):
            made[written] = value
    return made


def _aim(tasks: Sequence[Task], written: str) -> tuple[list[Task], tuple[str, ...]]:
    """The tasks that a path is meant for, and the path inside them, its part first."""
    path = tuple(written.split("."))
    aimed = list(tasks)
    if len(path) > 1 and path[0] not in PARTS:
        named = [
            task for task in tasks if path[0] in (task.name, task_and_repeat(task.name)[0])
        ] or [task for task in tasks if path[0] == task.benchmark]
        if named:
            aimed, path = named, path[1:]
    return aimed, path if path[0] in PARTS else ("options", *path)


def _shape(task: Task, benchmark: Callable[[str], Benchmark] | None) -> dict[str, Shape]:
    """Every path that a change may name in a task."""
    sampling = _leaves(Sampling.__struct_fields__)
    role: Shape = {**_leaves(RoleSpec.__struct_fields__), "sampling": sampling}
    options = _shape_of_values(task.options)
    roles = set(task.roles)
    stages = {stage: set(by_role) for stage, by_role in task.stages.items()}
    if benchmark is not None:
        known = benchmark(task.benchmark)
        options = {**options, **_shape_of_struct(known.options)}
        for stage in known.stages:
            asked = {*stage.roles, *stage.judges}
            roles |= asked
            stages.setdefault(stage.name, set()).update(asked)
    column = _leaves(Column.__struct_fields__)
    tables: Shape = {
        name: {
            **_leaves(("files", "split", "hub_files", "required", "entries")),
            "delimited": _leaves(DelimitedSpec.__struct_fields__),
            "columns": dict.fromkeys(table.columns, column),
        }
        for name, table in task.data.tables.items()
    }
    hub = _leaves(HubSpec.__struct_fields__)
    return {
        "options": options,
        "data": {"size": None, "sample": None, "hub": hub, "tables": tables},
        "roles": dict.fromkeys(roles, role),
        "stages": {stage: dict.fromkeys(named, sampling) for stage, named in stages.items()},
        "interval": _leaves(IntervalSpec.__struct_fields__),
        "least_scored": None,
        "metrics": None,
    }


def _leaves(names: Iterable[str]) -> dict[str, Shape]:
    return dict.fromkeys(names)


def _shape_of_values(values: Mapping[str, Any]) -> dict[str, Shape]:
    return {
        name: _shape_of_values(value) if isinstance(value, dict) else None
        for name, value in values.items()
    }


@functools.cache
def _shape_of_struct(kind: type[msgspec.Struct]) -> dict[str, Shape]:
    return {field.encode_name: _shape_of_type(field.type) for field in msgspec.structs.fields(kind)}


def _shape_of_type(kind: Any) -> Shape:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _shape_of_struct(kind)
    plain = kind in (str, int, float, bool) or typing.get_origin(kind) in (list, tuple)
    return None if plain else ...


def _holds(shape: Shape, path: Sequence[str]) -> bool:
    for part in path:
        if shape is ...:
            return True
        if shape is None or part not in shape:
            return False
        shape = shape[part]
    return True


def _nowhere(
    written: str, path: tuple[str, ...], shapes: Mapping[str, Mapping[str, Shape]]
) -> UsageError:
    known = {line for shape in shapes.values() for line in _paths(shape)}
    short = {line.removeprefix("options.") for line in known}
    wanted = ".".join(path).removeprefix("options.")
    options = sorted({name for shape in shapes.values() for name in shape["options"] or ()})  # type: ignore[union-attr]
    return UsageError(
        f"no chosen task has {wanted!r}",
        where=f"--set {written}",
        expected=f"one of the options {', '.join(options)}, or a path in {', '.join(PARTS[1:])}",
        hint=did_you_mean(wanted, short),
    )


def _paths(shape: Shape) -> Iterable[str]:
    if isinstance(shape, Mapping):
        for name, below in shape.items():
            yield name
            yield from (f"{name}.{rest}" for rest in _paths(below))


def _change(task: Task, path: tuple[str, ...], value: Any, written: str) -> Task:
    part, *rest = path
    # By way of JSON, so that tuples are the lists that the schema wants.
    now = msgspec.json.decode(msgspec.json.encode(getattr(task, part)))
    then = _placed(now, rest, value)
    if part == "options":
        if not isinstance(then, dict):
            raise UsageError(
                "options are keys and values",
                where=f"--set {written}",
                found=repr(value),
                expected="options by name: {window: 10}",
            )
        return msgspec.structs.replace(task, options=then)
    raise_first(part_errors(part, then, f"--set {written}"))
    kinds = typing.get_type_hints(Task)
    try:
        typed = msgspec.convert(then, kinds[part], strict=True)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{part!r} of the task {task.name!r} cannot be changed so",
            where=f"--set {written}",
            found=repr(value),
            expected=str(error),
        ) from error
    return msgspec.structs.replace(task, **{part: typed})


def _placed(values: Any, path: Sequence[str], value: Any) -> Any:
    """The values with one of them replaced; what is missing on the way to it is made."""
    if not path:
        return value
    below = values if isinstance(values, dict) else {}
    return {**below, path[0]: _placed(below.get(path[0]), path[1:], value)}
