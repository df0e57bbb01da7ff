"""What a task file must look like, and how each breach of it reads to a person."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import TaskError, did_you_mean
from harness.tasks.load import Document

if TYPE_CHECKING:
    from jsonschema import ValidationError

SHOWN = 80
"""How many characters of a found value an error repeats."""


class Where(Protocol):
    """Tells where the value, or the key, at a path stands."""

    def __call__(self, path: Sequence[str | int], *, of_key: bool = False) -> str: ...


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of task and group files."""
    text = files("harness.tasks").joinpath("schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def document_errors(document: Document) -> list[TaskError]:
    """Everything in a file that the schema does not allow, in the order of its lines."""
    kind = _kind_of(document)
    if isinstance(kind, TaskError):
        return [kind]
    return _errors(kind, document.values, document.where)


def completeness_errors(values: Mapping[str, Any], where: Where) -> list[TaskError]:
    """What a task lacks once its bases are merged in."""
    return _errors("complete", values, where)


def part_errors(part: str, value: Any, where: str) -> list[TaskError]:
    """What is wrong with one part of a task that was changed at `where`."""

    def changed(path: Sequence[str | int], *, of_key: bool = False) -> str:
        return where

    return _errors("task", {"task": "changed", part: value}, changed)


def raise_first(errors: Sequence[TaskError]) -> None:
    """Raise the first error, if there is one, telling how many more there are."""
    if not errors:
        return
    first = errors[0]
    if len(errors) > 1:
        more = f"{len(errors) - 1} more in the same file: `harness validate` tells all"
        first.hint = f"{first.hint}; {more}" if first.hint else more
    raise first


def short(value: Any) -> str:
    """A value as it stands in a message."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def dotted(path: Sequence[str | int]) -> str:
    """A path as a person writes it: `data.tables.items.columns`, `metrics[2]`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")


def _kind_of(document: Document) -> str | TaskError:
    if "task" in document.values and "group" in document.values:
        return TaskError(
            "a file is either a task or a group",
            where=document.where(["group"], of_key=True),
            found="both `task` and `group`",
            expected="one of them",
        )
    if document.is_group:
        return "group"
    if "task" in document.values:
        return "task"
    return TaskError(
        "names neither a task nor a group",
        where=document.where([]),
        found=f"the keys {', '.join(document.values) or '(none)'}",
        expected="`task: NAME` or `group: NAME`",
    )


@functools.cache
def _validator(definition: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": schema()["$defs"]})


def _errors(definition: str, values: Any, where: Where) -> list[TaskError]:
    breaches = list(_validator(definition).iter_errors(values))
    ill_typed = [breach.absolute_path for breach in breaches if breach.validator == "type"]
    found = [
        error
        for breach in breaches
        # Of a value that is of the wrong kind altogether, its bounds say nothing new.
        if breach.validator == "type" or breach.absolute_path not in ill_typed
        for error in _explained(breach, where)
    ]
    return sorted(found, key=_place)


def _place(error: TaskError) -> tuple[int, ...]:
    numbers = str(error.where).rsplit(":", 2)[1:]
    return tuple(int(number) for number in numbers if number.isdigit())


def _explained(breach: ValidationError, where: Where) -> Iterator[TaskError]:
    path = list(breach.absolute_path)
    rule: Any = breach.schema
    instance: Any = breach.instance
    if breach.validator == "additionalProperties":
        known = list(rule["properties"])
        for key in instance:
            if key not in known:
                yield TaskError(
                    f"unknown key {key!r}" + (f" in `{dotted(path)}`" if path else ""),
                    where=where([*path, key], of_key=True),
                    expected=f"one of {', '.join(known)}",
                    hint=did_you_mean(key, known),
                )
    elif breach.validator == "required":
        # jsonschema tells of one missing key at a time, and only in its message which.
        missing = next(key for key in rule["required"] if f"'{key}' is a" in breach.message)
        meaning = _described(definition_of(path, missing))
        yield TaskError(
            f"`{dotted([*path, missing])}` is missing",
            where=where(path, of_key=True),
            expected=f"`{missing}`" + (f": {meaning}" if meaning else ""),
        )
    else:
        wanted, meaning = _wanted(breach.validator, rule), _described(rule)
        yield TaskError(
            f"`{dotted(path)}` cannot be used",
            where=where(path),
            found=short(instance),
            expected=f"{wanted} ({meaning})" if meaning and meaning != wanted else wanted,
        )


def definition_of(path: Sequence[str | int], key: str) -> dict[str, Any]:
    """The part of the schema that describes a key of a task file; empty where none does."""
    definition: dict[str, Any] = schema()["$defs"]["task"]
    for part in [*path, key]:
        inner = definition.get("properties", {}).get(part) or definition.get("additionalProperties")
        if not isinstance(inner, dict):
            return {}
        reference = inner.get("$ref", "").rpartition("/")[2]
        definition = {**schema()["$defs"].get(reference, {}), **inner}
    return definition


def _described(rule: Mapping[str, Any]) -> str | None:
    return rule.get("description")


_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "keys and values",
    "null": "null",
}


def _wanted(validator: Any, rule: Any) -> str:
    bound = rule.get(validator)
    phrases: dict[str, Callable[[], str]] = {
        "type": lambda: " or ".join(
            _TYPES[one] for one in ([bound] if isinstance(bound, str) else bound)
        ),
        "enum": lambda: f"one of {', '.join(map(str, bound))}",
        "pattern": lambda: str(rule.get("description", f"text of the form {bound}")),
        "minimum": lambda: f"at least {bound}",
        "maximum": lambda: f"at most {bound}",
        "exclusiveMinimum": lambda: f"more than {bound}",
        "exclusiveMaximum": lambda: f"less than {bound}",
        "minItems": lambda: "a list that is not empty" if bound == 1 else f"a list of {bound}",
        "maxItems": lambda: f"a list of {bound}",
        "minLength": lambda: "text that is not empty",
        "minProperties": lambda: "at least one key",
        "uniqueItems": lambda: "each entry once",
    }
    return phrases[validator]()
