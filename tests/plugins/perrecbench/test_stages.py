"""Items with their profiles, and work at a real desk with a model that follows a script."""

from types import SimpleNamespace

import msgspec
import pytest
from harness_perrecbench.data.members import most_common
from harness_perrecbench.records import (
    Behaviour,
    Compared,
    Comparison,
    Example,
    Group,
    Loaded,
    Options,
    Person,
    Ranked,
    Rated,
    Thing,
)
from harness_perrecbench.stages import (
    COMPARE,
    PROFILE,
    RANK,
    RATE,
    STAGES,
)

from harness import CallError, CallFailed, Reply, Unreadable


def tastes(worked):
    """Those that each question shows, in their order: "12" shows user 1 before user 2."""
    texts = [request.messages[-1].content for request in worked.requests]
    return ["".join(part[0] for part in text.split("taste of ")[1:]) for text in texts]


A, B = "[User A]", "[User B]"
ADA = Person(id="ada/1", user="ada", history=(Behaviour(title="A teapot", rating=5.0),))


def rating(number):
    return f'{{"predicted_rating": {number}}}'


def ranking(*users):
    return f'{{"predicted_ranking": {list(users)}}}'


def made(**profiles):
    """The records of the stage "profile" that have a value."""
    pairs = [(Person(id=id, user=id, history=()), text) for id, text in profiles.items()]
    return {"profile": SimpleNamespace(values=lambda: iter(pairs))}


def preferring(*order):
    """Answers a comparison by which of the two shown users is named first in `order`."""

    def answer(request):
        parts = request.messages[-1].content.split("taste of ")[1:]
        first, second = (int(part[0]) for part in parts)
        return A if order.index(first) < order.index(second) else B

    return answer


# Which stages a task has.


@pytest.mark.parametrize(
    ("ask", "stage"),
    [("pointwise", RATE), ("rating", RATE), ("pairwise", COMPARE), ("listwise", RANK)],
)
def test_the_way_of_asking_decides_the_stage(ask, stage):
    assert [one for one in STAGES if one.when(Loaded(), Options(ask=ask))] == [stage]


# Items.


def test_profiles_that_were_made_are_filled_in_also_where_examples_show_them(member, single):
    asked = tuple(member(n, profile=None, profiled=f"u{n}/20") for n in (1, 2))
    kettle = Thing(title="A kettle")
    examples = (Example(query=Thing(title="A lamp"), members=asked, answer="[User A]"),)
    group = Group(id="k", user="k", query=kettle, members=(*asked, member(3)), examples=examples)
    lone = msgspec.structs.replace(single, member=asked[1], examples=examples)
    upstreams = made(**{"u2/20": "Cooks."})

    [filled] = RANK.items(upstreams, Loaded(groups=(group,)), Options())
    assert [one.profile for one in filled.members] == [None, "Cooks.", "Reads."]
    assert [one.profile for one in filled.examples[0].members] == [None, "Cooks."]
    [filled] = RATE.items(upstreams, Loaded(singles=(lone,)), Options())
    assert filled.member.profile == "Cooks."
    assert [one.profile for one in filled.examples[0].members] == [None, "Cooks."]
    assert (filled.id, filled.place, filled.of) == ("kettle/1", 1, 2)


# Profiles.


async def test_an_empty_profile_is_asked_for_again_and_then_unreadable(at_desk):
    worked = await at_desk(PROFILE, ADA, ["", "", "They like tea."])
    assert (worked.outcome, worked.repeats) == ("They like tea.", [0, 1, 2])

    worked = await at_desk(PROFILE, ADA, ["", " "], tries=2)
    assert worked.outcome == Unreadable("empty")


@pytest.mark.parametrize("stage", [RATE, COMPARE, RANK])
async def test_nobody_is_asked_where_a_profile_lacks(at_desk, group, single, member, stage):
    lacking, item = member(1, profile=None, profiled="u1/20"), single if stage is RATE else group(2)
    members = (lacking, member(2))
    example = Example(query=Thing(title="A lamp"), members=members, answer="[User A]")
    asked = {"member": lacking} if stage is RATE else {"members": members}
    for lacks in (asked, {"examples": (example,)}):
        worked = await at_desk(stage, msgspec.structs.replace(item, **lacks), [])
        assert worked.outcome == Unreadable("no_profile", "there is no profile of u1/20")


# Ratings.


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


async def test_of_several_samples_the_median_of_those_that_can_be_read_counts(at_desk, single):
    answers = [rating(number) for number in (5, 1, 4.5, 4, 2)]

    worked = await at_desk(RATE, single, answers, samples=5)

    assert worked.outcome == Rated(rating=4.0, answers=(5.0, 1.0, 4.5, 4.0, 2.0))
    assert worked.repeats == [0, 5, 10, 15, 20]
    worked = await at_desk(RATE, single, ["?", "?", rating(3), "?", rating(4)], samples=3, tries=2)

    assert worked.outcome == Rated(rating=3.5, answers=(3.0, 4.0))
    assert worked.repeats == [0, 1, 2, 4, 5]
    worked = await at_desk(RATE, single, ["?", rating(0)], samples=2, tries=1)

    assert worked.outcome.cause == "out_of_range"
    worked = await at_desk(RATE, single, [rating(3), CallError("overflow", "too long")], samples=3)

    assert worked.outcome == CallFailed("overflow", "too long")


def test_of_answers_that_are_equally_frequent_the_first_seen_counts():
    assert most_common(["b", "a", "a", "b", "c"]) == "b"
    assert most_common([(2, 1), (1, 2), (1, 2)]) == (1, 2)


# Orders.


async def test_of_several_orders_the_most_frequent_counts(at_desk, group):
    worked = await at_desk(RANK, group(3), [ranking(3, 1, 2)])

    assert worked.outcome == Ranked(order=(3, 1, 2), answers=((3, 1, 2),))
    assert tastes(worked) == ["123"]
    answers = [ranking(2, 1), ranking(1, 2), "?", ranking(1, 2)]

    worked = await at_desk(RANK, group(2), answers, samples=3)

    assert worked.outcome == Ranked(order=(1, 2), answers=((2, 1), (1, 2), (1, 2)))
    assert worked.repeats == [0, 5, 10, 11]
    refused = await at_desk(RANK, group(3), [ranking(1, 3, 3)], tries=1)
    passed = await at_desk(RANK, group(3), [ranking(1, 3, 3)], repeated_users="passed")

    assert refused.outcome.cause == "not_a_permutation"
    assert passed.outcome.order == (1, 3, 3)


# Comparisons.


@pytest.mark.parametrize(
    ("members", "sorting", "all_pairs"), [(2, (2, 2), 2), (3, (4, 6), 6), (4, (6, 12), 12)]
)
def test_the_calls_of_a_group_are_bounded_by_its_size(group, members, sorting, all_pairs):
    one = group(members)
    for comparing in ("heapsort", "published"):
        calls = COMPARE.calls(one, Options(comparing=comparing))
        assert ((calls.least, calls.most), calls.times) == (sorting, "samples")
    calls = COMPARE.calls(one, Options(comparing="all_pairs"))
    assert (calls.least, calls.most) == (all_pairs, all_pairs)


async def test_two_users_are_compared_in_both_orders(at_desk, group):
    worked = await at_desk(COMPARE, group(2), [B, A])

    assert tastes(worked) == ["12", "21"]
    assert worked.outcome == Compared(
        order=(2, 1),
        ranks=(2, 1),
        comparisons=(Comparison(first=1, second=2, forth="B", back="A"),),
    )


@pytest.mark.parametrize("comparing", ["heapsort", "published", "all_pairs"])
async def test_four_users_are_sorted_and_no_question_is_asked_twice(at_desk, group, comparing):
    worked = await at_desk(COMPARE, group(4), preferring(3, 1, 4, 2), comparing=comparing)

    assert worked.outcome.order == (3, 1, 4, 2)
    assert worked.outcome.ranks == (2, 4, 1, 3)
    assert len(set(tastes(worked))) == len(tastes(worked))
    assert tastes(worked) == [
        users
        for one in worked.outcome.comparisons
        for users in (f"{one.first}{one.second}", f"{one.second}{one.first}")
    ]
    assert len(tastes(worked)) == 12 or comparing != "all_pairs"


async def test_the_majority_of_samples_counts_within_each_order(at_desk, group):
    answers = [A, B, A, B, "neither", B, A]

    worked = await at_desk(COMPARE, group(2), answers, samples=3, tries=2)

    assert tastes(worked) == ["12"] * 3 + ["21"] * 4
    assert worked.repeats == [0, 2, 4, 0, 2, 3, 4]
    assert worked.outcome.comparisons == (Comparison(first=1, second=2, forth="A", back="B"),)


async def test_an_unreadable_side_leaves_its_comparison_without_a_preference(at_desk, group):
    def answer(request):
        sides = preferring(1, 2, 3)(request)
        shown = [part[0] for part in request.messages[-1].content.split("taste of ")[1:]]
        return "neither" if shown == ["1", "2"] else sides

    worked = await at_desk(COMPARE, group(3), answer, comparing="all_pairs", tries=1)

    assert worked.outcome.comparisons == (
        Comparison(first=1, second=2, forth=None, back="B"),
        Comparison(first=1, second=3, forth="A", back="B"),
        Comparison(first=2, second=3, forth="A", back="B"),
    )
    # One win each for 1 and 2, none for 3.
    assert worked.outcome.ranks == (1, 1, 3)


async def test_a_group_without_a_comparison_that_was_read_is_unreadable(at_desk, group):
    worked = await at_desk(COMPARE, group(2), ["neither", A], tries=1)
    assert worked.outcome.cause == "none_named"
    assert tastes(worked) == ["12", "21"]

    worked = await at_desk(COMPARE, group(2), ["neither", f"{A} or {B}"], tries=1)
    assert worked.outcome.cause == "both_named"


async def test_a_call_that_failed_is_the_outcome_of_the_group(at_desk, group):
    answers = [A, B, CallError("timeout", "slow")]

    worked = await at_desk(COMPARE, group(3), answers, comparing="all_pairs")

    assert worked.outcome == CallFailed("timeout", "slow")
    assert tastes(worked) == ["12", "21", "13"]
