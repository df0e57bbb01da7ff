"""Checks values against a JSON Schema: fast where they fit, in words where they do not.

jsonschema has the last word on every refusal. On acceptance it is asked only for schemas with
keywords that `_predicate` does not know: for the others a tree of closures is compiled, which
accepts nothing that jsonschema refuses and is some thirty times faster.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from harness.errors import PluginError

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

Predicate = Callable[[Any], bool]

MOST_ERRORS = 20
ANNOTATIONS = frozenset(
    {"title", "description", "examples", "default", "deprecated", "$comment", "$schema", "$id"}
)


class SchemaCheck:
    """One schema, compiled at its first use."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    def problem(self, value: Any) -> str | None:
        """What is wrong with the value, None when it meets the schema."""
        accepts = self._accepts
        if accepts is not None and accepts(value):
            return None
        return self._explain(value)

    @functools.cached_property
    def _accepts(self) -> Predicate | None:
        return _predicate(self._schema)

    @functools.cached_property
    def _validator(self) -> Validator:
        import jsonschema

        kind = jsonschema.Draft202012Validator
        try:
            kind.check_schema(self._schema)
        except jsonschema.SchemaError as error:
            raise PluginError(
                "a reader's schema is no valid JSON Schema", found=error.message
            ) from error
        return kind(self._schema)

    def _explain(self, value: Any) -> str | None:
        from jsonschema.exceptions import best_match

        error = best_match(itertools.islice(self._validator.iter_errors(value), MOST_ERRORS))
        if error is None:
            return None
        return f"at {error.json_path}: {error.message}"


def _predicate(schema: Any) -> Predicate | None:
    """A function that accepts values of the schema, and no others; None when not sure how."""
    if schema is True or schema == {}:
        return lambda _value: True
    if not isinstance(schema, Mapping) or not schema.keys() <= KEYWORDS | ANNOTATIONS:
        return None
    if not isinstance(schema.get("type"), str):
        return _untyped(schema)
    check = BY_TYPE.get(schema["type"])
    return check(schema) if check is not None else None


def _untyped(schema: Mapping[str, Any]) -> Predicate | None:
    keywords = schema.keys() - ANNOTATIONS
    if keywords == {"enum"}:
        return _one_of(schema["enum"])
    if keywords == {"const"}:
        return _one_of([schema["const"]])
    if keywords == {"anyOf"}:
        return _any_of([_predicate(branch) for branch in schema["anyOf"]])
    if keywords == {"type"}:
        return _any_of([_predicate({"type": kind}) for kind in schema["type"]])
    return None


def _any_of(branches: list[Predicate | None]) -> Predicate | None:
    known = [branch for branch in branches if branch is not None]
    if len(known) < len(branches):
        return None
    return lambda value: any(branch(value) for branch in known)


def _one_of(values: list[Any]) -> Predicate | None:
    if not all(type(value) in (str, int) for value in values):
        return None
    known = frozenset(values)
    return lambda value: type(value) in (str, int) and value in known


def _only(schema: Mapping[str, Any], *keywords: str) -> bool:
    return schema.keys() - ANNOTATIONS <= {"type", *keywords}


def _string(schema: Mapping[str, Any]) -> Predicate | None:
    if "enum" in schema and _only(schema, "enum"):
        return _one_of([value for value in schema["enum"] if type(value) is str])
    if not _only(schema, "minLength", "maxLength", "pattern"):
        return None
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    pattern = re.compile(schema["pattern"]) if "pattern" in schema else None
    if least == 0 and most is None and pattern is None:
        return lambda value: type(value) is str

    def accepts(value: Any) -> bool:
        return (
            type(value) is str
            and len(value) >= least
            and (most is None or len(value) <= most)
            and (pattern is None or pattern.search(value) is not None)
        )

    return accepts


def _number(schema: Mapping[str, Any], kinds: tuple[type, ...]) -> Predicate | None:
    if "enum" in schema and _only(schema, "enum"):
        return _one_of([value for value in schema["enum"] if type(value) is int])
    if not _only(schema, "minimum", "maximum"):
        return None
    least = schema.get("minimum", float("-inf"))
    most = schema.get("maximum", float("inf"))
    return lambda value: type(value) in kinds and least <= value <= most


def _array(schema: Mapping[str, Any]) -> Predicate | None:
    if not _only(schema, "items", "minItems", "maxItems", "uniqueItems"):
        return None
    item = _predicate(schema.get("items", True))
    if item is None:
        return None
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    unique = schema.get("uniqueItems", False)

    def accepts(value: Any) -> bool:
        if type(value) is not list or len(value) < least:
            return False
        if most is not None and len(value) > most:
            return False
        if unique and not (
            all(type(one) is str for one in value) and len(set(value)) == len(value)
        ):
            return False
        return all(map(item, value))

    return accepts


def _object(schema: Mapping[str, Any]) -> Predicate | None:
    if not _only(schema, "properties", "required", "additionalProperties"):
        return None
    properties = {name: _predicate(one) for name, one in schema.get("properties", {}).items()}
    known = {name: check for name, check in properties.items() if check is not None}
    extra = schema.get("additionalProperties", True)
    other = _never if extra is False else _predicate(extra)
    if len(known) < len(properties) or other is None:
        return None
    required = frozenset(schema.get("required", ()))

    def accepts(value: Any) -> bool:
        return (
            type(value) is dict
            and value.keys() >= required
            and all(known.get(name, other)(one) for name, one in value.items())
        )

    return accepts


def _never(_value: Any) -> bool:
    return False


def _plain(schema: Mapping[str, Any], kind: type) -> Predicate | None:
    return (lambda value: type(value) is kind) if _only(schema) else None


BY_TYPE: dict[str, Callable[[Mapping[str, Any]], Predicate | None]] = {
    "string": _string,
    "integer": lambda schema: _number(schema, (int,)),
    "number": lambda schema: _number(schema, (int, float)),
    "array": _array,
    "object": _object,
    "boolean": lambda schema: _plain(schema, bool),
    "null": lambda schema: _plain(schema, type(None)),
}
KEYWORDS = frozenset(
    {
        "type", "enum", "const", "anyOf", "minLength", "maxLength", "pattern", "minimum", "maximum",
        "items", "minItems", "maxItems", "uniqueItems", "properties", "required",
        "additionalProperties",
    }
)  # fmt: skip
