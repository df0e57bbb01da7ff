"""The whole method, by hand."""

from pathlib import Path

import msgspec
import pytest
import yaml
from builders.records import make_records
from builders.stages import work_at_desk
from builders.texts import write_csv
from harness_interests.benchmark import INTERESTS
from harness_interests.data import load
from harness_interests.metrics import METRICS, score
from harness_interests.parsing import from_lines, read_interests
from harness_interests.records import Claim, Engagement, History, Interest, Options, Person, Support
from harness_interests.stages import NAME, claims, histories

from harness.base.errors import DataError
from harness.contracts.outcomes import NoVerdict, Parsed, Unreadable
from harness.contracts.records import Score
from harness.contracts.task import DataSpec
from harness.data import open_dataset

ROOT = Path(__file__).parents[3]
TASK = yaml.safe_load((ROOT / "task_configs/interests/interests.yaml").read_text())


def test_the_task_says_what_the_code_takes_as_usual():
    assert TASK["options"] == msgspec.to_builtins(Options())
    assert TASK["metrics"] == list(INTERESTS.metrics)
    assert INTERESTS.main == ("support",)


def test_people_are_read_of_rows_in_any_order_and_a_bad_value_is_named_with_its_place(tmp_path):
    def read(*rows):
        file = write_csv(tmp_path / "mine.csv", "user_id,title,action", *rows)
        spec = msgspec.convert(TASK["data"], DataSpec)
        dataset = open_dataset(spec, data=file, limit=None, seed=0, package=None, task="interests")
        return load(dataset, Options())

    found = read("7,Rye bread,liked", "8,Night trains,liked", "7,Owls at night,skipped")
    assert sorted(found, key=lambda person: person.id) == [
        Person("7", (Engagement("Rye bread", True), Engagement("Owls at night", False))),
        Person("8", (Engagement("Night trains", True),)),
    ]
    for row, said in (("7, ,liked", ("mine.csv", "title")),
                      ("7,Rye bread,shared", ("shared", "liked"))):  # fmt: skip
        with pytest.raises(DataError) as caught:
            read(row)
        assert all(one in str(caught.value) for one in said)


def test_a_history_is_the_latest_engagements_in_their_order():
    rye, owls, geese = (Engagement(title, True) for title in ("rye", "owls", "geese"))
    people = [Person("ada", (rye, owls, geese)), Person("ben", (rye,))]
    ada, ben = histories({}, people, Options(window=2))
    assert (ada.id, ada.user, ada.engagements) == ("ada", "ada", (owls, geese))
    assert ben.engagements == (rye,)


async def test_interests_beyond_the_most_asked_for_are_not_read():
    answers = ["\n".join(f"- {name}: 1" for name in ("tea", "rye", "owls"))]
    worked = await work_at_desk(
        NAME, history("ada", "+rye", "-trains"), answers, benchmark="interests",
        options=Options(max_interests=2),
    )  # fmt: skip
    assert worked.outcome == (Interest("tea", (1,)), Interest("rye", (1,)))
    [shown] = worked.shown("name")
    assert "\n1. [liked] rye\n2. [skipped] trains\n" in shown
    assert "Name at most 2 interests" in shown


def test_a_claim_holds_the_liked_items_that_an_interest_cites():
    ada = history("ada", "+rye", "-trains", "+owls")
    upstreams = {"name": named((ada, {"birds": (3, 2, 7, 1), "railways": (2,), "owls": (3,)}))}
    assert list(claims(upstreams, [], Options())) == [
        Claim(id="ada/1", user="ada", interest="birds", numbers=(3, 1), titles=("owls", "rye")),
        Claim(id="ada/3", user="ada", interest="owls", numbers=(3,), titles=("owls",)),
    ]


def history(user, *words):
    """A person's history from words: `+bread` was liked, `-trains` skipped."""
    engagements = tuple(Engagement(word[1:], word[0] == "+") for word in words)
    return History(id=user, user=user, engagements=engagements)


def named(*pairs):
    """Records of the stage "name": of each history a failure, or what each interest cites."""
    return make_records(
        (
            item,
            outcome if isinstance(outcome, Unreadable)
            else tuple(Interest(name, cited) for name, cited in outcome.items()),
        )
        for item, outcome in pairs
    )  # fmt: skip


BAKING = Interest("baking", (1, 4))
BIRDS = Interest("birds", (2,))


def test_an_answer_is_read_on_the_rung_it_deserves_or_says_why_not():
    for text, rung, interests in (
        ('[{"interest": "baking", "items": [1, 4]}]', "strict", (BAKING,)),
        ("[]", "strict", ()),
        ('I think [{"interest": " baking ", "items": [1, 4, 1]}] fits.', "brackets", (BAKING,)),
        ("[{'interest': 'baking', 'items': [1, 4,]}", "repaired", (BAKING,)),
        ("Interests:\n1. baking: 1, 4\n- birds: items 2\nDone", "regex", (BAKING, BIRDS)),
    ):
        assert read_interests(text) == Parsed(interests, rung)
    for text, cause in {
        "": "empty", "This person likes bread.": "no_json", '[{"interest": "baking"}]': "schema",
        '[{"interest": "baking", "items": ["rye"]}]': "schema",
        '[{"interest": "", "items": [1]}]': "schema",
    }.items():  # fmt: skip
        outcome = read_interests(text)
        assert (type(outcome), outcome.cause) == (Unreadable, cause), text


def test_lines_are_a_last_resort_and_long_ones_cost_no_more_than_their_length():
    assert from_lines("- Night trains: 2, 5") == [{"interest": "Night trains", "items": [2, 5]}]
    assert from_lines("3) rye bread: items 7") == [{"interest": "rye bread", "items": [7]}]
    for text in (
        "no numbers: here", "rye bread 7", ": 3", "a" * 1_000_000, "- " + " " * 500_000 + "x",
        "1" * 500_000, "a: " + "1," * 500_000,
    ):  # fmt: skip
        assert from_lines(text) is None


LIKED_1_2_4_5 = ("+rye", "+bread", "-trains", "+owls", "+geese")
BAKING_AND_BIRDS = {"baking": (1, 2, 3), "birds": (4,)}
KEPT = {"ada/1": (1, 2), "ada/2": (4,)}
OUT = {"support": 0.0, "grounded": 0.0}


def judged(outcomes):
    """Records of the stage "support": kept numbers, or a failure, by claim id."""
    return make_records(
        (
            Claim(id=id, user=id.rpartition("/")[0], interest="", numbers=(), titles=()),
            outcome if isinstance(outcome, NoVerdict) else Support(outcome),
        )
        for id, outcome in outcomes.items()
    )


def shares(support, grounded, coverage):
    return {"support": support, "grounded": grounded, "coverage": coverage}


@pytest.mark.parametrize(
    "row",
    [
        # Kept are 1, 2 and 4 of the cited 1, 2, 3 and 4; baking is grounded, birds is not;
        # baking explains 1 and 2 of the liked 1, 2, 4 and 5.
        (LIKED_1_2_4_5, BAKING_AND_BIRDS, KEPT, 2, shares(3 / 4, 1 / 2, 2 / 4), {}),
        # A lower threshold grounds more from the same records.
        (LIKED_1_2_4_5, BAKING_AND_BIRDS, KEPT, 1, shares(3 / 4, 1.0, 3 / 4), {}),
        # An item that two interests explain counts once in coverage.
        (("+rye", "+bread"), {"baking": (1, 2), "grain": (1,)}, {"ada/1": (1,), "ada/2": (1,)}, 1,
         shares(2 / 3, 1.0, 1 / 2), {}),
        # Numbers that do not exist or were skipped count as cited and not kept.
        (("+rye", "-trains"), {"baking": (1, 2, 99, -1)}, {"ada/1": (1,)}, 1,
         shares(1 / 4, 1.0, 1.0), {}),
        # An interest without any evidence needs no verdict.
        (("+rye", "-trains"), {"railways": (2,)}, {}, 2, shares(0.0, 0.0, 0.0), {}),
        # A person without any verdict is left out, whatever needed none.
        (("+rye", "-trains"), {"baking": (1,), "railways": (2,)},
         {"ada/1": NoVerdict("no_json")}, 1, {}, dict.fromkeys(METRICS, "support/no_json")),
        # A claim that no judge has seen yet is not a zero.
        (("+rye",), {"baking": (1,)}, {}, 2, {}, dict.fromkeys(METRICS, "support/not_done")),
        # Nothing named explains nothing, and leaves the other shares undefined.
        (("+rye",), {}, {}, 2, {"coverage": 0.0},
         {"support": "nothing_cited", "grounded": "nothing_named"}),
        # A person who liked nothing cannot be covered.
        (("-rye",), {"baking": (1,)}, {}, 2, OUT, {"coverage": "nothing_liked"}),
        # Whose answer failed has no score, and says why.
        (("+rye",), Unreadable("no_json"), {}, 2, {}, dict.fromkeys(METRICS, "name/no_json")),
    ],
)  # fmt: skip
def test_shares_and_what_is_missing(row):
    words, interests, verdicts, least, values, missing = row
    records = {"name": named((history("ada", *words), interests)), "support": judged(verdicts)}
    (ada,) = score(records, Options(min_support=least))
    assert (ada.values, ada.missing) == (values, missing)


def test_a_failed_judgement_is_a_part_of_that_person_s_score_and_counts_as_worst():
    records = {
        "name": named(
            (history("ada", "+rye", "+owls"), {"baking": (1,), "birds": (2,)}),
            (history("ben", "+rye"), {"baking": (1,)}),
        ),
        "support": judged({"ada/1": (1,), "ada/2": NoVerdict("no_json"), "ben/1": (1,)}),
    }
    ada, ben = score(records, Options(min_support=1))
    # Of two interests baking alone has a verdict. Whether birds explains the owls is not known.
    assert ada.values == {"support": 1.0, "grounded": 1.0, "coverage": 1.0}
    assert ada.worst == {"support": 1 / 2, "grounded": 1 / 2, "coverage": 1 / 2}
    assert (ada.missing, ada.parts) == ({}, dict.fromkeys(METRICS, (1, 2)))
    assert ben == Score(
        id="ben", user="ben", values=shares(1.0, 1.0, 1.0), parts=dict.fromkeys(METRICS, (0, 1))
    )
