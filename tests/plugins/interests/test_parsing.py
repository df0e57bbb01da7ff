"""What is read from tidy and from messy replies."""

import pytest
from harness_interests.parsing import from_lines, read_interests
from harness_interests.records import Interest

from harness.contracts.outcomes import Parsed, Unreadable

BAKING = Interest("baking", (1, 4))
BIRDS = Interest("birds", (2,))


@pytest.mark.parametrize(
    ("text", "rung", "interests"),
    [
        ('[{"interest": "baking", "items": [1, 4]}]', "strict", (BAKING,)),
        ("[]", "strict", ()),
        ('I think [{"interest": " baking ", "items": [1, 4, 1]}] fits.', "brackets", (BAKING,)),
        ("[{'interest': 'baking', 'items': [1, 4,]}", "repaired", (BAKING,)),
        ("Interests:\n1. baking: 1, 4\n- birds: items 2\nDone", "regex", (BAKING, BIRDS)),
    ],
)
def test_an_answer_is_read_on_the_rung_it_deserves(text, rung, interests):
    assert read_interests(text) == Parsed(interests, rung)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "empty"),
        ("This person likes bread.", "no_json"),
        ('[{"interest": "baking"}]', "schema"),
        ('[{"interest": "baking", "items": ["rye"]}]', "schema"),
        ('[{"interest": "", "items": [1]}]', "schema"),
    ],
)
def test_what_cannot_be_read_says_why(text, cause):
    outcome = read_interests(text)
    assert isinstance(outcome, Unreadable)
    assert outcome.cause == cause


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("- Night trains: 2, 5", {"interest": "Night trains", "items": [2, 5]}),
        ("3) rye bread: items 7", {"interest": "rye bread", "items": [7]}),
    ],
)
def test_lines_are_a_last_resort(line, answer):
    assert from_lines(line) == [answer]


@pytest.mark.parametrize(
    "text",
    ["no numbers: here", "rye bread 7", ": 3", "a" * 1_000_000, "- " + " " * 500_000 + "x",
     "1" * 500_000, "a: " + "1," * 500_000],
)  # fmt: skip
def test_other_lines_are_nothing_and_long_ones_cost_no_more_than_their_length(text):
    assert from_lines(text) is None
