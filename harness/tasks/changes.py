"""`--set`: changes to tasks on the command line."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import inspect

from harness.base.errors import TaskError, UsageError, did_you_mean
from harness.base.redaction import redacted_args
from harness.contracts.task import Column, IntervalSpec, RoleSpec, TableSpec, Task
from harness.tasks.load import read_value
from harness.tasks.repeats import task_and_repeat
from harness.tasks.shapes import LISTS, bare, keys
from harness.tasks.task_schema import part_errors, raise_all, shape_of

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark

LONGEST = 60

PARTS = ("options", "data", "roles", "stages", "interval", "least_scored", "metrics")
"""The parts of a task that a path may begin with; any other path begins with an option."""

PLAIN_VALUES = (
    inspect.StrType, inspect.IntType, inspect.FloatType, inspect.BoolType, inspect.NoneType,
    inspect.LiteralType, inspect.EnumType, inspect.TupleType, *LISTS,
)  # fmt: skip
"""The types below which there is no path."""

Shape: TypeAlias = "Mapping[str, Shape] | EllipsisType | None"
"""The paths below a path: named keys, any (`...`) or none."""


def parse_change(text: str) -> tuple[str, Any]:
    """The path and the value of `PATH=VALUE`; the value is read as YAML."""
    path, equals, value = text.partition("=")
    path = path.strip()
    if not equals or not all(path.split(".")):
        raise UsageError(
            "not of the form PATH=VALUE",
            where="--set",
            found=text,
            expected="[TASK.]PATH=VALUE, such as window=10",
        )
    try:
        return path, read_value(value)
    except TaskError as error:
        raise UsageError(
            "the value is not valid YAML",
            where=f"--set {path}",
            found=value,
            expected="a YAML value: 3, 1e-5, true, [a, b], {a: 1}, text",
            hint="put quotes around text that YAML would read otherwise",
        ) from error


def format_changes(changes: Mapping[str, Any]) -> str:
    """The changes as arguments of `--set`; long values are cut, secrets redacted."""
    texts = []
    for path, value in changes.items():
        (safe,) = redacted_args({path.rpartition(".")[2]: value}).values()
        text = safe if isinstance(safe, str) else json.dumps(safe, ensure_ascii=False, default=str)
        texts.append(f"{path}={text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}")
    return ", ".join(texts)


def apply_changes(
    tasks: Sequence[Task],
    changes: Mapping[str, Any],
    *,
    benchmark: Callable[[str], Benchmark] | None = None,
) -> tuple[Task, ...]:
    """The tasks with each change applied to all tasks that have its path.

        apply_changes(tasks, {"window": 10, "interests.roles.judge.default": "baseline"})

    A path that begins with the name of a task or benchmark changes only those tasks. `benchmark`
    finds benchmarks by name, so that a path may name options, roles and stages that the task file
    leaves out.
    """
    changed = list(tasks)
    for written, value in changes.items():
        addressed, path = _addressed(changed, written)
        shapes = {task.name: _shape(task, benchmark) for task in addressed}
        holders = {task.name for task in addressed if _holds(shapes[task.name], path)}
        if not holders:
            known = {line for shape in shapes.values() for line in _paths(shape)}
            short = {line.removeprefix("options.") for line in known}
            wanted = ".".join(path).removeprefix("options.")
            options = sorted({name for shape in shapes.values() for name in shape["options"] or ()})  # type: ignore[union-attr]
            raise UsageError(
                f"no chosen task has {wanted!r}",
                where=f"--set {written}",
                expected=f"one of the options {', '.join(options)}, or a path in "
                f"{', '.join(PARTS[1:])}",
                hint=did_you_mean(wanted, short),
            )
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
    """The changes that apply to one task; `among` are all chosen tasks."""
    made = {}
    for written, value in changes.items():
        addressed, path = _addressed(among, written)
        if task.name in {one.name for one in addressed} and _holds(_shape(task, benchmark), path):
            made[written] = value
    return made


def _addressed(tasks: Sequence[Task], written: str) -> tuple[list[Task], tuple[str, ...]]:
    """The tasks that a path addresses, and the path inside them, beginning with one of PARTS."""
    path = tuple(written.split("."))
    addressed = list(tasks)
    if len(path) > 1 and path[0] not in PARTS:
        named = [
            task for task in tasks if path[0] in (task.name, task_and_repeat(task.name)[0])
        ] or [task for task in tasks if path[0] == task.benchmark]
        if named:
            addressed, path = named, path[1:]
    return addressed, path if path[0] in PARTS else ("options", *path)


def _shape(task: Task, benchmark: Callable[[str], Benchmark] | None) -> dict[str, Shape]:
    role = _below(shape_of(RoleSpec))
    sampling = role["sampling"] if isinstance(role, Mapping) else None
    options = _shape_of_values(task.options)
    roles = set(task.roles)
    stages = {stage: set(by_role) for stage, by_role in task.stages.items()}
    if benchmark is not None:
        known = benchmark(task.benchmark)
        options = {**options, **(_below(shape_of(known.options)) or {})}
        for stage in known.stages:
            asked = {*stage.roles, *stage.judges}
            roles |= asked
            stages.setdefault(stage.name, set()).update(asked)
    table, column = _below(shape_of(TableSpec)), _below(shape_of(Column))
    tables = {
        name: {**(table or {}), "columns": dict.fromkeys(spec.columns, column)}
        for name, spec in task.data.tables.items()
    }
    return {
        "options": options,
        "data": {"size": None, "sample": None, "sources": None, "tables": tables},
        "roles": dict.fromkeys(roles, role),
        "stages": {stage: dict.fromkeys(named, sampling) for stage, named in stages.items()},
        "interval": _below(shape_of(IntervalSpec)),
        "least_scored": None,
        "metrics": None,
    }


def _shape_of_values(values: Mapping[str, Any]) -> dict[str, Shape]:
    return {
        name: _shape_of_values(value) if isinstance(value, dict) else None
        for name, value in values.items()
    }


def _below(shape: inspect.Type) -> Mapping[str, Shape] | None:
    """The paths below a type with fixed keys; None for any other type."""
    fields = keys(shape)
    if fields is None:
        return None
    below: dict[str, Shape] = {}
    for name, field in fields.items():
        kind = bare(field.type)
        kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
        plain = all(isinstance(bare(one), PLAIN_VALUES) for one in kinds)
        below[name] = None if plain else _below(kind) or ...
    return below


def _holds(shape: Shape, path: Sequence[str]) -> bool:
    for part in path:
        if shape is ...:
            return True
        if shape is None or part not in shape:
            return False
        shape = shape[part]
    return True


def _paths(shape: Shape) -> Iterable[str]:
    if isinstance(shape, Mapping):
        for name, below in shape.items():
            yield name
            yield from (f"{name}.{rest}" for rest in _paths(below))


def _change(task: Task, path: tuple[str, ...], value: Any, written: str) -> Task:
    part, *rest = path
    # Through JSON, as the schema expects lists instead of tuples.
    now = msgspec.json.decode(msgspec.json.encode(getattr(task, part)))
    then = _with_value(now, rest, value)
    if part == "options":
        if not isinstance(then, dict):
            raise UsageError(
                "the options must be keys and values",
                where=f"--set {written}",
                found=repr(value),
                expected="options by name: {window: 10}",
            )
        return msgspec.structs.replace(task, options=then)
    raise_all(part_errors(part, then, lambda path, *, of_key=False: f"--set {written}"))
    typed = msgspec.convert(then, typing.get_type_hints(Task)[part], strict=True)
    return msgspec.structs.replace(task, **{part: typed})


def _with_value(values: Any, path: Sequence[str], value: Any) -> Any:
    """The values with the one at a path replaced; missing mappings on the path are created."""
    if not path:
        return value
    below = values if isinstance(values, dict) else {}
    return {**below, path[0]: _with_value(below.get(path[0]), path[1:], value)}
