"""Answers under one key of the last JSON object of a text."""

import pytest

from harness.contracts.outcomes import Parsed, Unreadable
from harness.parsing import KeyReader, number_in


def to_number(value):
    found = number_in(value)
    return Unreadable("schema", f"{value!r} is no number") if found is None else found


STARS = KeyReader(
    key="stars", like=("rating", "star"), convert=to_number, of_value={"type": "number"}
)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"stars": 4}', Parsed(4.0, "strict")),
        ('{"rating": 1} and then {"stars": 4, "rating": 2}', Parsed(4.0, "brackets")),
        ('{"star count": 1, "My Rating": 2}', Parsed(2.0, "strict")),
        ('{"STARS": " 3.5 "}', Parsed(3.5, "quoted")),
    ],
)
def test_the_asked_key_wins_and_else_the_last_one_like_it(text, read):
    assert STARS(text) == read


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('{"score": 4}', "schema"),
        ('{"stars": "4/5"}', "schema"),
        ('{"stars": true}', "schema"),
        ("four", "no_json"),
    ],
)
def test_what_holds_no_such_answer_is_unreadable(text, cause):
    found = STARS(text)
    assert isinstance(found, Unreadable)
    assert found.cause == cause


def test_a_server_may_enforce_an_object_with_the_key_alone():
    assert STARS.schema == {
        "type": "object",
        "properties": {"stars": {"type": "number"}},
        "required": ["stars"],
        "additionalProperties": False,
    }
    assert KeyReader(key="stars", like=("star",), convert=to_number).schema is None
