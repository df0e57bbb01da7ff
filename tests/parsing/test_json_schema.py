"""A schema is checked by jsonschema and told in its words; a type gives the schema of a request."""

import json
from typing import Annotated

import msgspec

from harness.parsing.ladder import SchemaCheck, wire_schema


def test_a_problem_says_where():
    numbers = {"type": "array", "items": {"type": "integer"}}
    check = SchemaCheck({"type": "object", "properties": {"a": numbers}})
    assert check.problem({"a": [1, "x"]}) == "at $.a[1]: 'x' is not of type 'integer'"
    assert check.problem({"a": [1]}) is None


class Place(msgspec.Struct, forbid_unknown_fields=True):
    """Where it is."""

    title: Annotated[str, msgspec.Meta(description="as on a map")]
    floor: int | None = None


class House(msgspec.Struct):
    here: Annotated[Place, msgspec.Meta(description="now")]
    before: list[Place]
    by_name: dict[str, Place]
    pair: tuple[Place, int]
    either: Place | int


def test_references_are_replaced_and_what_forbids_more_requires_all():
    place = {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "as on a map"},
            "floor": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["title", "floor"],
        "additionalProperties": False,
    }
    assert wire_schema(House) == {
        "type": "object",
        "properties": {
            "here": {**place, "description": "now"},
            "before": {"type": "array", "items": place},
            "by_name": {"type": "object", "additionalProperties": place},
            "pair": {
                "type": "array",
                "prefixItems": [place, {"type": "integer"}],
                "items": False,
                "minItems": 2,
                "maxItems": 2,
            },
            "either": {"anyOf": [{"type": "integer"}, place]},
        },
        "required": ["here", "before", "by_name", "pair", "either"],
    }


class Cat(msgspec.Struct, tag=True):
    lives: int = 9


class Dog(msgspec.Struct, tag=True):
    pass


def test_structs_that_a_tag_tells_apart_need_no_references():
    assert wire_schema(Cat | Dog) == {
        "anyOf": [
            {
                "type": "object",
                "properties": {"type": {"enum": ["Cat"]}, "lives": {"type": "integer"}},
                "required": ["type"],
            },
            {"type": "object", "properties": {"type": {"enum": ["Dog"]}}, "required": ["type"]},
        ]
    }
    assert "$" not in json.dumps(wire_schema(list[Cat | Dog]))
