"""JSON Schemas: the schema of a type for a request, and the check of a value."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import PluginError

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

MOST_ERRORS = 20
LISTS_OF_SCHEMAS = ("anyOf", "prefixItems")
SCHEMAS = ("items", "additionalProperties")
FOR_PEOPLE = ("title", "description")
UNSUPPORTED_KEYWORDS = frozenset({"$ref", "default", "discriminator"})
"""Keywords of msgspec's schemas that strict servers reject; they are left out of requests."""


class SchemaCheck:
    """Checks values against a schema, which is compiled at its first use."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    def problem(self, value: Any) -> str | None:
        """The problem of a value; None where it fits the schema."""
        from jsonschema.exceptions import best_match

        error = best_match(itertools.islice(self._validator.iter_errors(value), MOST_ERRORS))
        return None if error is None else f"at {error.json_path}: {error.message}"

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


def wire_schema(kind: Any) -> dict[str, Any]:
    """The schema of a type in the form that strict servers accept; PluginError if it has none.

        wire_schema(list[Interest])["items"]["required"]    # ["name", "cited"]

    References are replaced by their targets. All fields of a Struct that forbids unknown fields are
    required, also fields with a default. The name and the docstring of a Struct are left out, so
    that a better docstring does not change the request.
    """
    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        raise PluginError(
            "a reader's type has no JSON Schema",
            found=str(error).splitlines()[-1],
            expected="a type with a schema in msgspec, such as list[Interest]",
        ) from error
    return _inlined(schema, schema.pop("$defs", {}), ())


def _inlined(
    schema: Mapping[str, Any], named: Mapping[str, Any], above: tuple[str, ...]
) -> dict[str, Any]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in above:
            raise PluginError(
                "a reader's type contains itself",
                found=" -> ".join([*above[above.index(name) :], name]),
                expected="a type without recursion, since servers accept no references",
            )
        above = (*above, name)
        plain = {key: one for key, one in named[name].items() if key not in FOR_PEOPLE}
        schema = {**plain, **schema}
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in UNSUPPORTED_KEYWORDS:
            continue
        if key == "properties":
            made[key] = {name: _inlined(one, named, above) for name, one in value.items()}
        elif key in LISTS_OF_SCHEMAS:
            made[key] = [_inlined(one, named, above) for one in value]
        elif key in SCHEMAS and isinstance(value, dict):
            made[key] = _inlined(value, named, above)
        else:
            made[key] = value
    if made.get("additionalProperties") is False:
        made["required"] = list(made.get("properties", ()))
    return made
