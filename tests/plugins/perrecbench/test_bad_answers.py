"""Answers that models give and nobody asked for: each is a typed failure, never a value."""

import pytest
from harness_perrecbench.records import Rated
from harness_perrecbench.stages import COMPARE, RANK, RATE

from harness import Reply, Unreadable


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        ('{"predicted_rating": 0}', "out_of_range"),
        ('{"predicted_rating": 6}', "out_of_range"),
        ('{"predicted_rating": -3.5}', "out_of_range"),
        ('{"predicted_rating": "four"}', "schema"),
        ('{"predicted_rating": "4/5"}', "schema"),
        ('{"predicted_rating": null}', "schema"),
        ('{"predicted_rating": true}', "schema"),
        ('{"predicted_rating": NaN}', "schema"),
        ("I would say four stars.", "no_json"),
        ("", "empty"),
    ],
)
async def test_a_rating_that_is_none(at_desk, single, answer, cause):
    worked = await at_desk(RATE, single, [answer] * 5)

    assert isinstance(worked.outcome, Unreadable)
    assert worked.outcome.cause == cause
    assert [call.failure.cause for call in worked.calls] == [cause] * 5
    assert worked.repeats == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        ('{"predicted_ranking": [1, 3, 3]}', "not_a_permutation"),
        ('{"predicted_ranking": [1, 2, 4]}', "not_a_permutation"),
        ('{"predicted_ranking": [1, 2]}', "not_a_permutation"),
        ('{"predicted_ranking": [0, 1, 2]}', "not_a_permutation"),
        ('{"predicted_ranking": ["User2", "User1", "User3"]}', "schema"),
        ('{"predicted_ranking": ["[User 2]", "[User 1]", "[User 3]"]}', "schema"),
        ('{"predicted_ranking": "User2 > User1 > User3"}', "schema"),
        ("User2 likes it most, then User1, then User3.", "no_json"),
        ("1. User2\n2. User1\n3. User3", "no_json"),
        ("[2, 1, 3]", "no_json"),
    ],
)
async def test_an_order_that_is_none(at_desk, group, answer, cause):
    worked = await at_desk(RANK, group(3), [answer] * 5)

    assert isinstance(worked.outcome, Unreadable)
    assert worked.outcome.cause == cause
    assert [call.failure.cause for call in worked.calls] == [cause] * 5


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        ("[User A] or [User B]", "both_named"),
        ("Both [User A] and [User B] would like it.", "both_named"),
        ("Neither of the two.", "none_named"),
        ("[User C]", "none_named"),
        ("A", "none_named"),
        ("", "empty"),
    ],
)
async def test_a_side_that_is_none(at_desk, group, answer, cause):
    worked = await at_desk(COMPARE, group(2), [answer] * 10)

    assert isinstance(worked.outcome, Unreadable)
    assert worked.outcome.cause == cause
    assert [call.failure.cause for call in worked.calls] == [cause] * 10
    assert worked.repeats == [0, 1, 2, 3, 4] * 2


@pytest.mark.parametrize(
    ("reply", "times", "cause"),
    [
        (Reply(text='{"predicted_rating": 4', finish="length"), 1, "truncated"),
        (Reply(text="", finish="refused"), 5, "refused"),
    ],
)
async def test_an_answer_that_was_cut_or_refused(at_desk, single, reply, times, cause):
    assert (await at_desk(RATE, single, [reply] * times)).outcome.cause == cause


async def test_a_thought_between_tags_is_no_answer(at_desk, single):
    thought = '<think>Perhaps {"predicted_rating": 2}</think>'

    worked = await at_desk(RATE, single, [f"{thought} None.", thought + '{"score": 4}'])

    assert worked.outcome == Rated(rating=4.0, answers=(4.0,))
    assert worked.calls[0].failure.cause == "no_json"
