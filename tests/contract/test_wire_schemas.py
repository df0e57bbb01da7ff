"""The schemas that servers are asked for: keys of stored calls hold them, so no byte may change."""

import json

import pytest
from harness_gistbench.parsing import read_interests as read_gistbench
from harness_interests.parsing import read_interests
from harness_perrecbench.parsing import rating_reader, read_order

from harness import JsonReader
from harness.cli.scaffold import STAGES, files_of

ASKED = {
    "interests": (
        read_interests,
        '{"type": "array", "items": {"type": "object", "properties": {'
        '"interest": {"type": "string", "minLength": 1}, '
        '"items": {"type": "array", "items": {"type": "integer"}}}, '
        '"required": ["interest", "items"]}}',
    ),
    "gistbench": (
        read_gistbench,
        '{"type": "array", "items": {"type": "object", "properties": {'
        '"interest": {"type": "string", "minLength": 1}, '
        '"evidence": {"type": "array", "items": {"type": ["integer", "string"]}}}, '
        '"required": ["interest", "evidence"]}}',
    ),
    "perrecbench, a rating": (
        rating_reader(),
        '{"type": "object", "properties": {'
        '"predicted_rating": {"type": "number", "minimum": 1, "maximum": 5}}, '
        '"required": ["predicted_rating"], "additionalProperties": false}',
    ),
    "perrecbench, an order": (
        read_order(3),
        '{"type": "object", "properties": {"predicted_ranking": {"type": "array", '
        '"items": {"type": "integer", "minimum": 1, "maximum": 3}, '
        '"minItems": 3, "maxItems": 3}}, '
        '"required": ["predicted_ranking"], "additionalProperties": false}',
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_request_holds_the_same_bytes(name):
    reader, text = ASKED[name]
    assert json.dumps(reader.schema) == text


def test_so_does_one_of_a_new_plugin():
    records = {}
    exec(files_of("themes", "themes", STAGES)["themes/records.py"], records)
    assert json.dumps(JsonReader(type=records["Themes"]).schema) == (
        '{"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}'
    )
