"""Scores worked out by hand."""

import pytest
from builders.records import make_records
from harness_interests.metrics import METRICS, score
from harness_interests.records import Claim, Options, Support

from harness.contracts.outcomes import NoVerdict, Unreadable
from harness.contracts.records import Score

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
def test_shares_and_what_is_missing(history, named, row):
    words, interests, verdicts, least, values, missing = row
    records = {"name": named((history("ada", *words), interests)), "support": judged(verdicts)}
    (ada,) = score(records, Options(min_support=least))
    assert (ada.values, ada.missing) == (values, missing)


def test_a_failed_judgement_is_a_part_of_that_person_s_score_and_counts_as_worst(history, named):
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
