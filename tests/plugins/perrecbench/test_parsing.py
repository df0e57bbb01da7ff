"""What is read of an answer, and by which rule it is not."""

import gzip
import json

import pytest
from harness_perrecbench.parsing import SideReader, rating_reader, read_order

from harness import Parsed, Unreadable

read_rating = rating_reader()


def outcome(found):
    """Value and rung of what was read, or the cause why it was not."""
    return (found.value, found.rung) if isinstance(found, Parsed) else found.cause


LATER = '```json\n{"predicted_rating": 2}\n```\nOn second thought: {"predicted_rating": 4}'
BESIDE = '{"average_rating": 3.9, "predicted_score": 4, "reason": 1, "predicted_ranking": [1]}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"predicted_rating": 4}', (4.0, "strict")),
        ('{"predicted_rating": 1}', (1.0, "strict")),
        ('{"predicted_rating": 0.5e1}', (5.0, "strict")),
        ('{"Predicted Rating": 4}', (4.0, "strict")),
        # As the authors' examples of few-shot prompts have it.
        ('{{"predicted_rating": 4.0}}', (4.0, "brackets")),
        ('So: {"predicted_rating": " 4.5 "}', (4.5, "quoted")),
        # Of several objects the last, and of several keys the last that was asked for counts.
        (LATER, (4.0, "brackets")),
        ('{"rating": 4} {"reason": "tea"}', "schema"),
        ('{"rating": 4} {"rating": 7}', "out_of_range"),
        ('{"rating": 4} {"rating": NaN}', "schema"),
        (BESIDE, (4.0, "strict")),
        ('{"predicted_rating": 7, "rating": 4}', "out_of_range"),
        ('{"answer": {"predicted_rating": 4}}', "schema"),
        ('{"reason": {"rating": 2}, "rating": 4}', (4.0, "strict")),
        # The very key that was asked for wins over later ones.
        ('{"predicted_rating": 2, "user_average_rating": 4.1}', (2.0, "strict")),
        ('{"Predicted_Rating": 2, "score": 5}', (2.0, "strict")),
        ("", "empty"),
        ('{"rating": 3, "rating": 4}', "no_json"),
        ('{"predicted_rating": {"rating": 4}}', "schema"),
        ('{"predicted_rating": "1e0"}', "schema"),
        ('{"predicted_rating": "٤"}', "schema"),
        ('{"predicted_rating": 0.99}', "out_of_range"),
        ('{"predicted_rating": 5.01}', "out_of_range"),
        ('{"predicted_rating": "10"}', "out_of_range"),
    ],
)
def test_a_rating_is_read_with_its_rung_or_has_a_cause(text, expected):
    assert outcome(read_rating(text)) == expected


def test_a_failure_tells_what_was_found_and_an_order_outside_of_its_key_is_not_read():
    assert read_rating('{"rating": "4/5"}') == Unreadable("schema", "'4/5' is no number")
    assert read_rating('{"rating": 7}') == Unreadable("out_of_range", "7 is not from 1 to 5")
    assert read_order(2)('{"rank": [1, 4]}').detail == "[1, 4] does not order 1 to 2"
    assert len(read_order(2)(json.dumps({"rank": ["x" * 5000]})).detail) < 120
    assert outcome(read_order(2)("[2, 1]")) == "no_json"
    assert outcome(read_order(2)('{"predicted_rating": 4}')) == "schema"
    assert outcome(read_order(1)(BESIDE)) == ((1,), "strict")


@pytest.mark.parametrize(
    ("members", "value", "expected"),
    [
        (3, "[3, 1, 2]", ((3, 1, 2), "strict")),
        (4, "[1.0, 4.0, 3.0, 2.0]", ((1, 4, 3, 2), "strict")),
        (2, '["2", 1]', ((2, 1), "quoted")), (3, "[1, 3, 3]", "not_a_permutation"),
        (3, "[1, 2]", "not_a_permutation"), (3, "[1, 2, 3, 3]", "not_a_permutation"),
        (3, "[0, 1, 2]", "not_a_permutation"), (3, "[1, 2.5, 3]", "not_a_permutation"),
        (3, '["User1", "User2", "User3"]', "schema"), (3, "[1, 2, true]", "schema"),
        (3, '{"User1": 1, "User2": 2, "User3": 3}', "schema"),
    ],
)  # fmt: skip
def test_an_order_is_a_permutation_of_the_users_numbers(members, value, expected):
    found = outcome(read_order(members)(f'{{"predicted_ranking": {value}}}'))
    assert repr(found) == repr(expected), "whole numbers"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("[1, 3, 3]", ((1, 3, 3), "strict")), ("[1, 2, 2]", "not_a_permutation"),
        ("[1, 1.5, 3]", "not_a_permutation"), ("[2, 3, 3]", "not_a_permutation"),
        ("[1, 3]", "not_a_permutation"),
    ],
)  # fmt: skip
def test_repeated_users_pass_where_length_and_ends_are_right(value, expected):
    assert outcome(read_order(3, repeated=True)(f'{{"ranking": {value}}}')) == expected


@pytest.mark.parametrize(
    ("thought", "text", "expected"),
    [
        (False, "[User A]", ("A", "text")),
        (False, " user a\n", ("A", "text")),
        (False, "UserA", ("A", "text")),
        (False, "[USER b]", ("B", "text")),
        (False, "User A vs B", "both_named"),
        (False, "Users A", "none_named"),
        (False, '"[User A]"', ("A", "regex")),
        (False, "It is User B: User B's ratings say so.", ("B", "regex")),
        (False, "User A and a friend", ("A", "regex")),
        (False, "User A or B", "both_named"),
        (False, "[User A/B]", "both_named"),
        (False, "I prefer User A to User B.", "both_named"),
        (False, "", "empty"),
        (False, "A", "none_named"),
        (False, "User Alice", "none_named"),
        (False, "superuser a", "none_named"),
        # After a thought the last side in brackets counts.
        (True, "[User A]", ("A", "text")),
        (True, "[User A] reads a lot, [User B] cooks. So [User B].", ("B", "regex")),
        (True, "User B is kind, User A is not.\n**[ user A ]**", ("A", "regex")),
        (True, "[User A] fits. Answer: [User A] or [User B]", "both_named"),
        (True, "[User B] fits. Answer: [User A or User B]", "both_named"),
        (True, "My answer is [User B] rather than [User A].", "both_named"),
        (True, "So it is [User A], NOT [User B]", "both_named"),
        (True, "[User A] rather than [User A]", ("A", "regex")),
        (True, "[User A] rather than [User B]. So [User A]", ("A", "regex")),
        (True, "I took [User A] over others.\nFinal answer: [User B]", ("B", "regex")),
        (True, "Rather than [User A], I choose [User B].", ("B", "regex")),
        (True, "User A cooks, so User A", "none_named"),
        (True, "[my notes on User A]", "none_named"),
        (True, "", "empty"),
    ],
)
def test_a_side_is_read_where_exactly_one_is_named(thought, text, expected):
    assert outcome(SideReader(thought=thought)(text)) == expected


def test_a_server_is_asked_for_the_form_that_is_read_but_to_forbid_no_thought():
    number = {"type": "number", "minimum": 1, "maximum": 5}
    assert read_rating.schema["properties"] == {"predicted_rating": number}
    item = {"type": "integer", "minimum": 1, "maximum": 3}
    assert read_order(3).schema["properties"] == {
        "predicted_ranking": {"type": "array", "items": item, "minItems": 3, "maxItems": 3}
    }
    without = rating_reader(thought=True), read_order(3, thought=True), SideReader()
    assert [one.schema for one in without] == [None] * 3
    assert outcome(rating_reader(thought=True)('Tea! {"rating": 4}')) == (4.0, "brackets")


@pytest.mark.parametrize(
    "text",
    [
        '{"rating": ' * 20_000, "user" + " " * 500_000, "[" * 100_000 + "{" * 100_000,
        "[User A] " + "than " * 100_000 + ". [User B]", '{"rating": "' + "4" * 500_000 + '"}',
    ],
)  # fmt: skip
def test_hostile_texts_are_read_as_well(text):
    for read in (read_rating, read_order(4), SideReader(), SideReader(thought=True)):
        assert isinstance(read(text), Parsed | Unreadable)


@pytest.mark.real_data
def test_the_recorded_answers_are_read_as_their_authors_read_them(real_data):
    path = real_data / "perrecbench/outputs/llama-3.1-8b-easy-point-raw-sc5.json.gz"
    recorded = json.loads(gzip.decompress(path.read_bytes()))
    raw = recorded["raw"].items()
    texts = [(item, place, user) for item, [group] in raw for place, user in enumerate(group)]
    assert len(texts) == 400
    assert sum(len(user) for _, _, user in texts) == 2000
    for item, place, user in texts:
        values = [read_rating(text).value for text in user]
        mean = recorded["recorded_mean_of_five"][item][0][place]
        assert sum(values) / 5 == pytest.approx(mean, abs=1e-12)
