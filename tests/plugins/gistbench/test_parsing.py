"""What is asked of the candidate, and what is read of its answers."""

import itertools
import json
from pathlib import Path
from random import Random

import pytest
from builders.gistbench import Desk, make_window, predicting
from harness_gistbench.baselines import frequent_words
from harness_gistbench.citations import CitedLine, cited_lines, meant
from harness_gistbench.parsing import LONGEST_NAME, Answer, Named, read_interests
from harness_gistbench.records import SIGNALS, Verification
from harness_gistbench.stages.predict import predict

from harness.contracts.outcomes import Parsed, Unreadable
from harness.prompts import Templates

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


def test_nothing_found_may_be_said_behind_a_full_list_or_inside_other_brackets():
    answer, rung = read(f"```\n[{NBA}]\n```\nOn second thought:\n```\n[]\n```")
    assert (answer.interests, answer.passed_over, rung) == ((), 1, "fenced")
    for text in ("[[]]", '{"result": {"interests": []}}', '[{"interests": []}]'):
        assert read(text)[0] == Answer(interests=()), text


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


def test_what_holds_no_interests_is_unreadable():
    for text, cause in {
        "": "empty", "I could not find any interest.": "no_json", "[1, 2, 3]": "schema",
        '["NBA Highlights", "Modal Jazz"]': "schema", '{"error": "no interests"}': "schema",
    }.items():  # fmt: skip
        outcome = read_interests(text)
        assert (type(outcome), outcome.cause) == (Unreadable, cause), text


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


def test_what_a_citation_of_numbers_means():
    for text, ids in {
        "2": ["2"], "ID 1, [2] and 003": ["1", "2", "3"], "1 & 2": ["1", "2"],
        "1 2 3": ["1", "2", "3"], "1-3": ["1", "2", "3"], "2 to 4": ["2", "3", "4"],
        "4-2": ["4-2"], "3-9": ["3-9"], "0-2": ["0-2"], "1, nothing": ["1", "nothing"],
    }.items():  # fmt: skip
        assert [*meant(text, {"1", "2", "3", "4"}, are_numbers=True)] == ids, text
    # What is one identifier is not divided.
    assert [*meant("1-3", {"1", "2", "3"}, are_numbers=False)] == ["1-3"]
    assert [*meant("1, 2", {"1, 2", "1", "2"}, are_numbers=True)] == ["1, 2"]


def test_a_line_names_and_cites_where_it_is_one_of_a_list_or_among_its_like():
    for line, name, ids in (
        ("- Night trains: 2, 5", "Night trains", ["2", "5"]),
        ("* **Night trains** (items 2 and 5)", "Night trains", ["2", "5"]),
        ("1. Night trains – [2][5]", "Night trains", ["2", "5"]),
        ("(3) Night trains (supporting evidence: #2; 5).", "Night trains", ["#2", "5"]),
        ("- Films: noir: 1-3", "Films: noir", ["1-3"]),
        ("• Trains — supported by ids 4", "Trains", ["4"]),
    ):
        assert cited_lines(line) == [CitedLine(name, ids)]
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


TEMPLATES = Templates([Path(__file__).resolve().parents[3] / "prompts"])
WORDING = {"thing": "song", "things": "songs"}


def shown(prompt, role, **variables):
    """A prompt as one text."""
    messages = TEMPLATES.need("gistbench", prompt, role).render({**WORDING, **variables})
    return "\n".join(message.content for message in messages)


async def predicted(signals=SIGNALS, **options):
    """What the candidate is shown under some thresholds, for a dataset with some signals."""
    scripted = Desk("[]", **predicting(**WORDING, **options))
    await predict(make_window(signals=signals), scripted)
    return shown("predict", "candidate", **scripted.asked[0][2])


async def test_the_thresholds_of_verification_are_told():
    numbers = Verification(
        min_explicit_positive=11, min_implicit_positive=12, mixed_explicit_positive=13,
        mixed_implicit_positive=14, max_implicit_negative=15, max_explicit_negative=16,
    )  # fmt: skip
    text = await predicted(verification=numbers)
    for number in range(11, 15):
        assert text.count(f"at least {number} different songs") == 1
    assert "at most 15 different songs with an implicit negative" in text
    assert "at most 16 different songs with an explicit negative" in text
    assert "at least 2 " not in text
    assert (
        "- at least 1 different song with an explicit positive engagement together with at least "
        "2 different songs with an implicit positive engagement\n"
    ) in await predicted()


async def test_signals_that_a_dataset_lacks_are_not_spoken_of_and_one_condition_is_no_choice():
    words = {signal: signal.replace("_", " ") for signal in SIGNALS}
    for many in range(1, 4):
        for signals in itertools.combinations(SIGNALS, many):
            text = await predicted(signals=signals)
            assert {one for one in SIGNALS if words[one] in text} == set(signals)
    only = await predicted(signals=("explicit_positive", "explicit_negative"))
    assert "This is required:\n- at least 2 different songs" in only
    assert "One of these is enough" in await predicted()


async def test_the_form_of_the_answer_is_one_that_is_read():
    form = (await predicted()).splitlines()[-1]
    answer = read_interests(form.replace("ID", "7")).value
    assert [(one.name, one.ids) for one in answer.interests] == [("two to five words", ("7",))]


def test_the_taxonomists_form_is_one_that_is_read():
    from harness_judges.answers import ClassReader

    form = shown("taxonomy", "taxonomist", texts=["rye", "oolong"], labels=["Bread", "Tea"])
    answer = form.splitlines()[-1]
    for blank, name in (("name of a category", "Bread"), ("name of a category", "Tea")):
        answer = answer.replace(blank, name, 1)
    assert ClassReader(labels=("Bread", "Tea"), count=2)(answer).value.labels == ("Bread", "Tea")


def named(*texts, seed=1):
    shown = [(str(n), "explicit positive", text) for n, text in enumerate(texts, start=1)]
    return [one["interest"] for one in json.loads(frequent_words({"lines": shown}, Random(seed)))]


def test_the_twelve_most_frequent_words_come_first_and_equal_ones_by_seed():
    words = [f"word{'abcdefghijklmnop'[n] * 2}" for n in range(15)]
    assert named(*(" ".join(words[: 15 - n]) for n in range(14))) == words[:12]
    texts = "salsa tango polka waltz", "waltz polka tango salsa"
    assert named(*texts) == named(*texts)
    assert len({tuple(named(*texts, seed=seed)) for seed in range(8)}) > 1
