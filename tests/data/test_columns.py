"""What each type takes and refuses, from text and from typed values."""

from datetime import datetime
from decimal import Decimal

import pytest

from harness.contracts.task import Column
from harness.data.read import Unfit, converter

TEXT = [
    ("string", " a ", " a "),
    ("integer", "42", 42),
    ("integer", " -7.0 ", -7),
    ("integer", "9007199254740993", 9007199254740993),
    ("number", "3", 3.0),
    ("number", "-.5e1", -5.0),
    ("boolean", "True", True),
    ("boolean", "0", False),
    ("list", '["a", 1]', ["a", 1]),
    ("object", '{"a": 1}', {"a": 1}),
    ("any", "x", "x"),
]
BAD_TEXT = [
    ("integer", "7.5"),
    ("integer", "1_000"),
    ("integer", "٣"),
    ("integer", "9" * 5000),
    ("number", "nan"),
    ("number", "inf"),
    ("number", "1e999"),
    ("boolean", "yes"),
    ("list", "['a']"),
    ("object", "[1]"),
]
VALUES = [
    ("string", 7, "7"),
    ("string", datetime(2026, 1, 2, 3, 4), "2026-01-02T03:04:00"),
    ("integer", 7.0, 7),
    ("number", 7, 7.0),
    ("number", Decimal("0.5"), 0.5),
    ("boolean", False, False),
    ("list", [1], [1]),
    ("object", {"a": 1}, {"a": 1}),
    ("any", b"x", b"x"),
]
BAD_VALUES = [
    ("string", 7.0),
    ("string", True),
    ("string", b"x"),
    ("string", "\ud800"),
    ("integer", "7"),
    ("integer", True),
    ("integer", 7.5),
    ("integer", 1e300),
    ("number", float("nan")),
    ("number", float("inf")),
    ("number", 10**400),
    ("number", True),
    ("boolean", 1),
    ("list", "[1]"),
    ("object", [1]),
]


@pytest.mark.parametrize(
    ("text", "kind", "cell", "expected"),
    [*((True, *row) for row in TEXT), *((False, *row) for row in VALUES)],
)
def test_text_and_values_become_the_declared_type(text, kind, cell, expected):
    value = converter(Column(type=kind), text=text)(cell)
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "kind", "cell"),
    [*((True, *row) for row in BAD_TEXT), *((False, *row) for row in BAD_VALUES)],
)
def test_what_would_lose_something_is_refused(text, kind, cell):
    with pytest.raises(Unfit):
        converter(Column(type=kind), text=text)(cell)


def test_one_of_names_the_choices_and_guesses_none():
    convert = converter(Column(one_of=("like", "dislike")), text=True)
    assert convert("like") == "like"
    with pytest.raises(Unfit) as caught:
        convert("disslike")
    assert caught.value.expected == "one of: like, dislike"
    assert caught.value.hint is None
