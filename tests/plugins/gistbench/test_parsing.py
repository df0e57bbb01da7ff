"""What is read of the candidate's answers."""

import json

import pytest
from harness_gistbench.citations import CitedLine, cited_lines, meant
from harness_gistbench.parsing import LONGEST_NAME, Answer, Named, read_interests

from harness.contracts.outcomes import Parsed, Unreadable

NBA = '{"interest": "NBA Highlights", "evidence": [1, 4]}'
JAZZ = '{"interest": "Modal Jazz", "evidence": [2]}'
BOTH = (Named("NBA Highlights", ("1", "4")), Named("Modal Jazz", ("2",)))


def read(text):
    outcome = read_interests(text)
    assert isinstance(outcome, Parsed), outcome
    return outcome.value, outcome.rung


THEIRS = f"[{NBA}, {JAZZ}]"
LARGE = "[7, 9223372036854775808, Infinity, NaN, 1e400]"


@pytest.mark.parametrize(
    ("text", "rung", "others"),
    [
        (THEIRS, "strict", 0),
        (f"Here they are:\n```json\n{THEIRS}\n```\nDone.", "fenced", 0),
        (f"I counted [1] and [4], so: {THEIRS} is my answer.", "brackets", 0),
        (f"[{NBA}, {JAZZ}", "repaired", 0),
        (f"{NBA}\n{JAZZ}", "brackets", 0),
        ("- NBA Highlights: 1, 4\n- Modal Jazz: 2", "regex", 0),
        ("1. **NBA Highlights** (1, 4)\n2. **Modal Jazz** (2)", "regex", 0),
        ("What I see:\n* NBA Highlights - evidence: 1 and 4\n* Modal Jazz [ids: #2]", "regex", 0),
        # Other lists of interests are counted.
        (f"I counted [1] and [4], so: {THEIRS} is my answer, not [].", "brackets", 0),
        (f"```json\n[{JAZZ}]\n```\nNo:\n```json\n{THEIRS}\n```", "fenced", 1),
        (f"Such as {NBA}:\n```json\n{THEIRS}\n```", "fenced", 0),
        (f"[{JAZZ}] or [{NBA}] or {THEIRS}", "brackets", 2),
        (f'```\n{{"interests": [{NBA}]}}\n```\nThe same:\n```\n{THEIRS}\n```', "fenced", 1),
        # What stands around the list is taken off.
        (f'{{"interests": {THEIRS}}}', "strict", 0),
        (f'{{"interests": {THEIRS}, "rejected": [{NBA}]}}', "strict", 0),
        (f'{{"profile": {THEIRS}, "rejected": [], "scores": [1, 2]}}', "strict", 0),
        (f'{{"data": {{"user": "ada", "x": {{"found": {THEIRS}}}}}, "tags": []}}', "strict", 0),
        (f"[{THEIRS}]", "strict", 0),
        (f'[{{"interests": {THEIRS}}}]', "strict", 0),
    ],
)
def test_the_same_answer_is_read_out_of_many_forms(text, rung, others):
    assert read(text) == (Answer(interests=BOTH, passed_over=others), rung)


def test_an_empty_list_behind_a_full_one_is_the_answer_and_the_full_one_is_counted():
    answer, rung = read(f"```\n[{NBA}]\n```\nOn second thought:\n```\n[]\n```")
    assert (answer.interests, answer.passed_over, rung) == ((), 1, "fenced")


def test_what_is_no_interest_in_a_list_is_counted():
    answer, _ = read("I see:\n- NBA Highlights: 1, 4\n- Night trains\n- Modal Jazz: 2\nDone: 7")
    assert (answer.interests, answer.malformed) == (BOTH, 1)
    bad = [
        {"interest": "  ", "evidence": [1]},
        {"interest": "No evidence"},
        {"interest": 5, "evidence": [1]},
        {"interest": "x" * (LONGEST_NAME + 1), "evidence": [1]},
        {"interest": "Nested", "evidence": [[1]]},
        {"user": "ada", "interests": ["NBA Highlights"]},
        "Modal Jazz",
    ]
    answer, _ = read(json.dumps([*bad, json.loads(NBA)]))
    assert (answer.interests, answer.malformed) == (BOTH[:1], 7)


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        ('[7, "7", 7.0, " #7 ", "vid_9", null, true]', ("7", "vid_9", "None", "True")),
        (LARGE, ("7", "9223372036854775808", "Infinity", "NaN", "1e400")),
        ('["[7]", "\'#8\'", "(9)", "“6”", " `a  b` "]', ("7", "8", "9", "6", "a b")),
        ('["[]", "##", 7.5, "tt-0042"]', ("[]", "##", "7.5", "tt-0042")),
        ("7", ("7",)),
        ('"7"', ("7",)),
    ],
)
def test_identifiers_may_be_written_in_many_ways(written, ids):
    text = f'[{{"interest": "Jazz", "evidence": {written}}}]'
    assert read(text) == (Answer(interests=(Named("Jazz", ids),)), "strict")


def test_a_torn_list_and_one_interest_alone_are_read():
    torn = f'[{{"interest": "Jazz", "evidence": {LARGE[:-1]}'
    assert read(torn)[0].interests[0].ids[:3] == ("7", "9223372036854775808", "Infinity")
    assert read(NBA)[0].interests == BOTH[:1]
    assert read(f"My answer is {NBA}.")[0].interests == BOTH[:1]


def test_an_object_is_an_interest_only_where_a_key_says_so():
    for text in (
        '{"reasoning": "No interest meets the conditions.", "interests": []}',
        '{"user_id": "42", "interests": []}',
        '{"interests": [], "evidence": "none that would do"}',
        '{"note": "nothing", "found": []}',
    ):
        assert read(text)[0] == Answer(interests=()), text
    for text in (
        '{"note": "see", "interests": ["NBA", "Cooking"]}',
        '[{"user_id": "42", "interests": ["NBA"]}]',
        '{"topic": "Jazz", "ids": [7]}',
    ):
        assert isinstance(read_interests(text), Unreadable), text
    assert read('{"interest": "Jazz", "ids": [7]}')[0].interests == (Named("Jazz", ("7",)),)
    assert read('{"topic": "Jazz", "evidence": [7]}')[0].interests == (Named("Jazz", ("7",)),)
    assert read('{"topic": "Jazz", "evidence": "7"}')[0].interests == (Named("Jazz", ("7",)),)


def test_nothing_found_may_be_said_inside_other_brackets():
    for text in ("[[]]", '{"result": {"interests": []}}', '[{"interests": []}]'):
        assert read(text)[0] == Answer(interests=()), text


@pytest.mark.parametrize(
    ("last", "interests", "malformed", "rung"),
    [
        ('{"interest": "Salsa dan', BOTH, 1, "repaired"),
        ('{"interest": "Salsa", "evidence": [3', (*BOTH, Named("Salsa", ("3",))), 0, "repaired"),
        ('{"thought": "that is all"}', BOTH, 1, "brackets"),
        ('{"interest": "Salsa"}', BOTH, 1, "brackets"),
    ],
)
def test_objects_one_after_another_are_counted_as_in_a_list(last, interests, malformed, rung):
    answer, found = read(f"{NBA}\n{JAZZ}\n{last}")
    assert (answer.interests, answer.malformed, found) == (interests, malformed, rung)
    assert read(f"{NBA}\n{last}")[0].malformed == malformed


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "empty"),
        ("I could not find any interest.", "no_json"),
        ("[1, 2, 3]", "schema"),
        ('["NBA Highlights", "Modal Jazz"]', "schema"),
        ('{"error": "no interests"}', "schema"),
    ],
)
def test_what_holds_no_interests_is_unreadable(text, cause):
    outcome = read_interests(text)
    assert isinstance(outcome, Unreadable)
    assert outcome.cause == cause


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    [
        "- " + "1," * 100_000,
        "(" * 200_000 + "1",
        ("- a: " + "1 and " * 500 + "\n") * 200,
        "[" * 100_000,
        '{"interest": ' * 20_000,
        (NBA + "\n") * 900 + '{"interest": "' * 10_000,
        ("- a: " + "1 - " * 900 + "x\n") * 50,
        ("- a: [1" + " " * 3_000 + "x\n") * 50,
        '{"a": [], "b": ' * 60 + json.dumps([{"interest": "x"}] * 9_000) + "}" * 60,
    ],
)
def test_hostile_text_ends(text):
    assert read_interests(text) is not None


def test_a_server_may_be_asked_for_the_very_form_the_prompt_asks_for():
    import jsonschema

    jsonschema.validate(json.loads(f"[{NBA}]"), read_interests.schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"interests": []}, read_interests.schema)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("2", ["2"]),
        ("ID 1, [2] and 003", ["1", "2", "3"]),
        ("1 & 2", ["1", "2"]),
        ("1 2 3", ["1", "2", "3"]),
        ("1-3", ["1", "2", "3"]),
        ("2 to 4", ["2", "3", "4"]),
        ("4-2", ["4-2"]),
        ("3-9", ["3-9"]),
        ("0-2", ["0-2"]),
        ("1, nothing", ["1", "nothing"]),
    ],
)
def test_what_a_citation_of_numbers_means(text, ids):
    assert [*meant(text, {"1", "2", "3", "4"}, are_numbers=True)] == ids


def test_what_is_one_identifier_is_not_divided():
    assert [*meant("1-3", {"1", "2", "3"}, are_numbers=False)] == ["1-3"]
    known = {"1, 2", "1", "2"}
    assert [*meant("1, 2", known, are_numbers=True)] == ["1, 2"]


@pytest.mark.parametrize(
    ("line", "name", "ids"),
    [
        ("- Night trains: 2, 5", "Night trains", ["2", "5"]),
        ("* **Night trains** (items 2 and 5)", "Night trains", ["2", "5"]),
        ("1. Night trains – [2][5]", "Night trains", ["2", "5"]),
        ("(3) Night trains (supporting evidence: #2; 5).", "Night trains", ["#2", "5"]),
        ("- Films: noir: 1-3", "Films: noir", ["1-3"]),
        ("• Trains — supported by ids 4", "Trains", ["4"]),
    ],
)
def test_a_line_of_a_list_names_and_cites(line, name, ids):
    assert cited_lines(line) == [CitedLine(name, ids)]


def test_a_line_cites_where_it_is_one_of_a_list_or_among_its_like():
    text = "Interests:\n- Trains: 1\n- Boats, of all kinds\nThat is all."
    assert cited_lines(text) == [CitedLine("Trains", ["1"]), "- Boats, of all kinds"]
    assert cited_lines("Trains: 1\nBoats: 2, 3") == [
        CitedLine("Trains", ["1"]), CitedLine("Boats", ["2", "3"]),
    ]  # fmt: skip
    assert cited_lines("The person watched two: 1\nNothing else can be said.") is None
    assert cited_lines("Trains: 1") is None
    assert cited_lines("") is None
    assert cited_lines("- (1, 2)") is None
    assert cited_lines("- Trains [1] and boats [2]: 3") is None
    assert cited_lines(f"- {'a' * 3_990}: 1") == [CitedLine("a" * 3_990, ["1"])]
    assert cited_lines(f"- {'a' * 4_000}: 1") is None
