"""From records to profiles: what was counted, what was not asked, what failed."""

import pytest
from builders.gistbench import (
    LIKED,
    make_claim,
    make_prediction,
    make_test_set,
    make_window,
    recorded,
)
from harness_gistbench.profiles import chapters, profile_of
from harness_gistbench.records import Counts, Evidence, Found, Kept, Missing

from harness.contracts.outcomes import Broken, CallFailed, Unreadable

NOTHING = make_prediction({})


def window(number=1, user="ada"):
    return make_window(user=user, number=number, of=2)


def claim(number, *evidence, part=1, user="ada", name="Jazz"):
    shown = (Evidence(name, name, signals) for name, *signals in evidence)
    return make_claim(number, name, shown, user=user, part=part)


def profile(verify=(), specificity=(), predict=()):
    """The profile of a user, of whom one window could be read unless it is said otherwise."""
    predict = predict or [(window(), NOTHING)]
    chapter = {"predict": predict, "verify": verify, "specificity": specificity}
    records = {stage: recorded(pairs) for stage, pairs in chapter.items()}
    return profile_of(records, {}, {})


def retrieved(outcome=None):
    """What became of the retrieval of an interest that is backed by the objects at 7 and 8."""
    verify = [(claim(1, ("a", LIKED), ("b", LIKED)), Kept(positions=()))]
    (jazz,) = profile(verify, [(make_test_set(1, (7, 8)), outcome)] if outcome else []).interests
    assert jazz.counts == Counts()
    return jazz.correct, jazz.backing, jazz.retrieval_failure


def test_a_retrieval_without_a_verdict_or_question_says_so():
    assert retrieved(CallFailed("timeout")) == (None, 2, "specificity/timeout")
    few = Found(positions=(), asked=False)
    assert retrieved(few) == (None, 2, "specificity/too_few_distractors")
    assert retrieved() == (None, None, None)


def test_only_the_first_distinct_positions_as_many_as_back_the_interest_count():
    assert retrieved(Found(positions=(7, 3, 8))) == (1, 2, None)
    assert retrieved(Found(positions=(7, 7, 8))) == (2, 2, None)


def test_a_user_without_a_readable_window_has_the_most_frequent_cause_and_no_profile():
    three = [
        (window(1), CallFailed("timeout")),
        (window(2), Unreadable("no_json")),
        (window(3), Unreadable("no_json")),
    ]

    assert profile(predict=three) == Missing("predict/no_json")
    assert profile(predict=three[:2]) == Missing("predict/no_json")
    assert profile(predict=[(window(1), Broken("KeyError"))]) == Missing("predict/KeyError")


def test_records_of_a_user_whom_nobody_asked_about_are_an_error_and_not_dropped():
    records = {
        "predict": recorded([(window(user="ada"), NOTHING)]),
        "verify": recorded([(claim(1, user="ben"), Kept(positions=()))]),
        "specificity": recorded(),
    }

    with pytest.raises(ValueError, match="verify"):
        list(chapters(records))
