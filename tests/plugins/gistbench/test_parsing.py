"""What is read of the candidate's answers."""

import json

import pytest
from harness_gistbench.parsing import LONGEST_NAME, Answer, Named, read_interests

from harness.outcomes import Parsed, Unreadable

NBA = '{"interest": "NBA Highlights", "evidence": [1, 4]}'
JAZZ = '{"interest": "Modal Jazz", "evidence": [2]}'
BOTH = (Named("NBA Highlights", ("1", "4")), Named("Modal Jazz", ("2",)))


def read(text):
    outcome = read_interests(text)
    assert isinstance(outcome, Parsed), outcome
    return outcome.value, outcome.rung


@pytest.mark.parametrize(
    ("text", "rung"),
    [
        (f"[{NBA}, {JAZZ}]", "strict"),
        (f"Here they are:\n```json\n[{NBA}, {JAZZ}]\n```\nDone.", "fenced"),
        (f"I counted [1] and [4], so: [{NBA}, {JAZZ}] is my answer.", "brackets"),
        (f"[{NBA}, {JAZZ}", "repaired"),
        (f'{{"interests": [{NBA}, {JAZZ}]}}', "strict"),
        (f'{{"user": "ada", "profile": [{NBA}, {JAZZ}], "count": 2}}', "strict"),
        (f"{NBA}\n{JAZZ}", "brackets"),
        (f"```\n{NBA}\n{JAZZ}\n```", "brackets"),
        ("- NBA Highlights: 1, 4\n- Modal Jazz: 2", "regex"),
        ("1. **NBA Highlights** (1, 4)\n2. **Modal Jazz** (2)", "regex"),
        ("What I see:\n* NBA Highlights - evidence: 1 and 4\n* Modal Jazz [ids: #2]", "regex"),
        ("NBA Highlights: 1; 4\nModal Jazz: 2", "regex"),
    ],
)
def test_the_same_answer_is_read_out_of_many_forms(text, rung):
    answer, found = read(text)

    assert answer.interests == BOTH
    assert (answer.malformed, found) == (0, rung)


def test_a_single_interest_is_a_list_of_one():
    assert read(NBA)[0].interests == BOTH[:1]
    assert read(f"My answer is {NBA}.")[0].interests == BOTH[:1]


def test_identifiers_may_be_numbers_or_texts_and_each_counts_once():
    text = '[{"interest": "Jazz", "evidence": [7, "7", 7.0, " #7 ", "vid_9", null, true]}]'

    assert read(text)[0].interests == (Named("Jazz", ("7", "vid_9", "None", "True")),)


def test_one_identifier_need_not_be_in_a_list():
    assert read('[{"interest": "Jazz", "evidence": 7}]')[0].interests == (Named("Jazz", ("7",)),)
    assert read('[{"interest": "Jazz", "evidence": "7"}]')[0].interests == (Named("Jazz", ("7",)),)


def test_other_keys_will_do_where_nothing_else_can_be_meant():
    text = '[{"topic": "Jazz", "ids": [7], "confidence": 0.9}]'

    assert read(text)[0].interests == (Named("Jazz", ("7",)),)


def test_an_empty_list_is_an_answer_and_says_that_there_is_no_interest():
    assert read("[]")[0] == Answer(interests=())
    assert read('{"interests": []}')[0] == Answer(interests=())


def test_an_answer_that_was_cut_is_read_up_to_the_cut():
    answer, rung = read(f'[{NBA}, {JAZZ}, {{"interest": "Salsa dan')

    assert (answer.interests, answer.malformed, rung) == (BOTH, 1, "repaired")


def test_entries_that_are_no_interest_are_left_out_and_counted():
    bad = [
        {"interest": "  ", "evidence": [1]},
        {"interest": "No evidence"},
        {"interest": 5, "evidence": [1]},
        {"interest": "x" * (LONGEST_NAME + 1), "evidence": [1]},
        {"interest": "Nested", "evidence": [[1]]},
        "Modal Jazz",
    ]

    answer, _ = read(json.dumps([*bad, json.loads(NBA)]))

    assert (answer.interests, answer.malformed) == (BOTH[:1], 6)


def test_an_interest_that_cites_nothing_is_an_interest():
    assert read('[{"interest": "Jazz", "evidence": []}]')[0].interests == (Named("Jazz", ()),)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "empty"),
        ("I could not find any interest.", "no_json"),
        ("The interests are as follows: see items 1 and 2 for jazz", "no_json"),
        ("[1, 2, 3]", "schema"),
        ('{"liked": [1], "skipped": [2]}', "schema"),
        ('["NBA Highlights", "Modal Jazz"]', "schema"),
        ('{"error": "no interests"}', "schema"),
        ('"jazz"', "schema"),
    ],
)
def test_what_holds_no_interests_is_unreadable(text, cause):
    outcome = read_interests(text)

    assert isinstance(outcome, Unreadable)
    assert outcome.cause == cause


def test_prose_with_a_number_behind_a_colon_is_no_interest():
    assert isinstance(read_interests("Interests found: 3"), Unreadable)
    assert isinstance(read_interests("I looked at all lines.\nInterests found: 3"), Unreadable)


def test_ten_thousand_interests_are_read():
    many = [{"interest": f"interest {n}", "evidence": [n]} for n in range(10_000)]

    assert len(read(json.dumps(many))[0].interests) == 10_000


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    [
        "- " + "1," * 100_000,
        "- jazz: " + "1, " * 100_000 + "x",
        "- " + "evidence " * 50_000 + ": x",
        ":" * 200_000,
        "(" * 200_000 + "1",
        ("- a: " + "1 and " * 500 + "\n") * 200,
        "[" * 100_000,
        '{"interest": ' * 20_000,
        (NBA + "\n") * 2_000,
    ],
)
def test_hostile_text_ends(text):
    assert read_interests(text) is not None


def test_a_server_may_be_asked_for_the_very_form_the_prompt_asks_for():
    import jsonschema

    jsonschema.validate(json.loads(f"[{NBA}]"), read_interests.schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"interests": []}, read_interests.schema)
