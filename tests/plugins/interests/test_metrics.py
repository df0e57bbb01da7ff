"""Scores worked out by hand."""

import pytest
from harness_interests.metrics import METRICS, score
from harness_interests.records import Options

from harness.contracts.outcomes import CallFailed, NoVerdict, Unreadable
from harness.contracts.records import Score

LIKED_1_2_4_5 = ("+rye", "+bread", "-trains", "+owls", "+geese")


def test_each_share_is_taken_of_what_its_name_says(history, named, judged):
    records = {
        "name": named((history("ada", *LIKED_1_2_4_5), {"baking": (1, 2, 3), "birds": (4,)})),
        "support": judged({"ada/1": (1, 2), "ada/2": (4,)}),
    }

    (ada,) = score(records, Options(min_support=2))

    # kept 1, 2 and 4 of the cited 1, 2, 3 and 4; baking is grounded, birds is not;
    # baking explains 1 and 2 of the liked 1, 2, 4 and 5
    assert ada == Score(
        id="ada", user="ada", values={"support": 3 / 4, "grounded": 1 / 2, "coverage": 2 / 4},
        parts=dict.fromkeys(METRICS, (0, 2)),
    )  # fmt: skip


def test_a_lower_threshold_grounds_more_from_the_same_records(history, named, judged):
    records = {
        "name": named((history("ada", *LIKED_1_2_4_5), {"baking": (1, 2, 3), "birds": (4,)})),
        "support": judged({"ada/1": (1, 2), "ada/2": (4,)}),
    }

    (ada,) = score(records, Options(min_support=1))

    assert ada.values == {"support": 3 / 4, "grounded": 1.0, "coverage": 3 / 4}


def test_an_item_that_two_interests_explain_counts_once_in_coverage(history, named, judged):
    records = {
        "name": named((history("ada", "+rye", "+bread"), {"baking": (1, 2), "grain": (1,)})),
        "support": judged({"ada/1": (1,), "ada/2": (1,)}),
    }

    (ada,) = score(records, Options(min_support=1))

    assert ada.values == {"support": 2 / 3, "grounded": 1.0, "coverage": 1 / 2}


def test_numbers_that_do_not_exist_or_were_skipped_count_as_cited_and_not_kept(
    history, named, judged
):
    records = {
        "name": named((history("ada", "+rye", "-trains"), {"baking": (1, 2, 99, -1)})),
        "support": judged({"ada/1": (1,)}),
    }

    (ada,) = score(records, Options(min_support=1))

    assert ada.values == {"support": 1 / 4, "grounded": 1.0, "coverage": 1.0}


def test_an_interest_without_any_evidence_needs_no_verdict(history, named, judged):
    records = {
        "name": named((history("ada", "+rye", "-trains"), {"railways": (2,)})),
        "support": judged({}),
    }

    (ada,) = score(records, Options())

    assert ada.values == {"support": 0.0, "grounded": 0.0, "coverage": 0.0}


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (Unreadable("no_json"), "name/no_json"),
        (Unreadable("truncated"), "name/truncated"),
        (CallFailed("timeout"), "name/timeout"),
    ],
)
def test_a_person_whose_answer_fell_out_has_no_score_and_says_why(
    history, named, judged, outcome, cause
):
    records = {"name": named((history("ada", "+rye"), outcome)), "support": judged({})}

    (ada,) = score(records, Options())

    assert ada.values == {}
    assert ada.missing == dict.fromkeys(METRICS, cause)


def test_a_failed_judgement_is_a_part_of_that_person_s_score_and_counts_as_worst(
    history, named, judged
):
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
    assert ada.missing == {}
    assert ada.parts == dict.fromkeys(METRICS, (1, 2))
    assert ben == Score(
        id="ben", user="ben", values={"support": 1.0, "grounded": 1.0, "coverage": 1.0},
        parts=dict.fromkeys(METRICS, (0, 1)),
    )  # fmt: skip


def test_a_person_without_any_verdict_is_left_out_whatever_needed_none(history, named, judged):
    records = {
        "name": named((history("ada", "+rye", "-trains"), {"baking": (1,), "railways": (2,)})),
        "support": judged({"ada/1": NoVerdict("no_json")}),
    }

    (ada,) = score(records, Options(min_support=1))

    assert ada.values == {}
    assert ada.missing == dict.fromkeys(METRICS, "support/no_json")


def test_a_claim_that_no_judge_has_seen_yet_is_not_a_zero(history, named, judged):
    records = {
        "name": named((history("ada", "+rye"), {"baking": (1,)})),
        "support": judged({}),
    }

    (ada,) = score(records, Options())

    assert ada.missing == dict.fromkeys(METRICS, "support/not_done")


def test_nothing_named_explains_nothing_and_leaves_the_other_shares_undefined(
    history, named, judged
):
    records = {"name": named((history("ada", "+rye"), {})), "support": judged({})}

    (ada,) = score(records, Options())

    assert ada.values == {"coverage": 0.0}
    assert ada.missing == {"support": "nothing_cited", "grounded": "nothing_named"}


def test_a_person_who_liked_nothing_cannot_be_covered(history, named, judged):
    records = {
        "name": named((history("ada", "-rye"), {"baking": (1,)})),
        "support": judged({}),
    }

    (ada,) = score(records, Options())

    assert ada.values == {"support": 0.0, "grounded": 0.0}
    assert ada.missing == {"coverage": "nothing_liked"}
