"""The fast check agrees with jsonschema on every value, and words come from jsonschema."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.parsing.schema import SchemaCheck, _predicate

KNOWN: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 1, "maxLength": 2},
    {"type": "string", "pattern": "a"},
    {"type": "string", "enum": ["a", "b"]},
    {"enum": ["a", 1, 2]},
    {"const": 1},
    {"type": "integer", "enum": [0, 1]},
    {"type": "integer", "minimum": 0, "maximum": 1},
    {"type": "number", "maximum": 1},
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["string", "null"]},
    {"anyOf": [{"type": "string"}, {"type": "integer", "maximum": 0}]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {}, "b": True}, "additionalProperties": False},
    {"type": "object", "additionalProperties": {"type": "integer"}, "title": "x"},
]
UNKNOWN: list[dict[str, Any]] = [
    {"not": {"type": "string"}},
    {"oneOf": [{"type": "string"}, {"minLength": 2}]},
    {"type": "object", "minProperties": 1},
    {"type": "integer", "multipleOf": 2},
    {"type": "integer", "enum": [0, 1], "minimum": 1},
    {"type": "string", "enum": ["a", "abc"], "minLength": 2},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
    {"enum": [True, None]},
    {"enum": [[1]]},
]
scalars = st.sampled_from(["", "a", "b", "abc", 0, 1, 2, -1, 0.0, 1.0, 0.5, True, False, None])
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=5,
)


@pytest.mark.parametrize("schema", KNOWN)
def test_the_fast_check_knows(schema: dict[str, Any]) -> None:
    assert _predicate(schema) is not None


@pytest.mark.parametrize("schema", UNKNOWN)
def test_the_fast_check_leaves_the_rest_to_jsonschema(schema: dict[str, Any]) -> None:
    assert _predicate(schema) is None


@given(st.sampled_from(KNOWN + UNKNOWN), values)
@settings(max_examples=1000)
def test_it_agrees_with_jsonschema(schema: dict[str, Any], value: Any) -> None:
    valid = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (SchemaCheck(schema).problem(value) is None) == valid
    accepts = _predicate(schema)
    if accepts is not None and accepts(value):
        assert valid


def test_a_problem_says_where() -> None:
    check = SchemaCheck({"type": "object", "properties": {"a": KNOWN[13]}})
    assert check.problem({"a": [1, "x"]}) == "at $.a[1]: 'x' is not of type 'integer'"
    assert check.problem({"a": [1]}) is None
