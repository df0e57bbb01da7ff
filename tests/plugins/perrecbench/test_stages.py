"""Items with their profiles, and work at a real desk with a model that follows a script."""

import msgspec
import pytest
from builders.perrecbench import make_comparisons, make_group, make_member
from builders.records import make_records
from builders.stages import work_at_desk
from harness_perrecbench.data.members import most_common
from harness_perrecbench.records import (
    Behaviour,
    Compared,
    Example,
    Loaded,
    Options,
    Person,
    Ranked,
    Rated,
    Single,
    Thing,
)
from harness_perrecbench.stages import COMPARE, PROFILE, RANK, RATE, STAGES

from harness import CallError, CallFailed, Reply, Unreadable


async def at_desk(stage, item, answers, **options):
    """The work of a stage on an item with real prompts; answers come in turn or by function."""
    given = Options(**options)
    return await work_at_desk(stage, item, answers, benchmark="perrecbench", options=given)


def member(number, **more):
    """A user whose one behaviour is named `taste of <number>`."""
    shown = (Behaviour(title=f"taste of {number}", rating=4.0),)
    return make_member(f"u{number}", shown=shown, **{"profile": "Reads.", **more})


def group(members):
    return make_group(*map(member, range(1, members + 1)))


SINGLE = Single(
    id="kettle/1", user="kettle", query=Thing(title="A kettle"), member=member(1), place=1, of=2
)


def shown(request):
    """Those whom a question shows, in their order: "12" shows user 1 before user 2."""
    return "".join(part[0] for part in request.messages[-1].content.split("taste of ")[1:])


def tastes(worked):
    return list(map(shown, worked.requests))


A, B = "[User A]", "[User B]"
ADA = Person(id="ada/1", user="ada", history=(Behaviour(title="A teapot", rating=5.0),))


def rating(number):
    return f'{{"predicted_rating": {number}}}'


def ranking(*users):
    return f'{{"predicted_ranking": {list(users)}}}'


def test_the_way_of_asking_decides_the_stage():
    stages = {"pointwise": RATE, "rating": RATE, "pairwise": COMPARE, "listwise": RANK}
    for ask, stage in stages.items():
        assert [one for one in STAGES if one.when(Loaded(), Options(ask=ask))] == [stage]


async def test_an_empty_profile_is_asked_for_again_and_made_ones_are_filled_in():
    asked = tuple(member(n, profile=None, profiled=f"u{n}/20") for n in (1, 2))
    examples = (Example(query=Thing(title="A lamp"), members=asked, answer="[User A]"),)
    three = make_group(*asked, member(3), examples=examples)
    lone = msgspec.structs.replace(SINGLE, member=asked[1], examples=examples)
    pair = Person(id="u2/20", user="u2", history=()), "Cooks."
    upstreams = {"profile": make_records([pair])}
    [filled] = RANK.items(upstreams, Loaded(groups=(three,)), Options())
    assert [one.profile for one in filled.members] == [None, "Cooks.", "Reads."]
    assert [one.profile for one in filled.examples[0].members] == [None, "Cooks."]
    [filled] = RATE.items(upstreams, Loaded(singles=(lone,)), Options())
    assert filled.member.profile == "Cooks."
    assert [one.profile for one in filled.examples[0].members] == [None, "Cooks."]
    assert (filled.id, filled.place, filled.of) == ("kettle/1", 1, 2)
    worked = await at_desk(PROFILE, ADA, ["", "", "They like tea."])
    assert (worked.outcome, worked.repeats) == ("They like tea.", [0, 1, 2])
    worked = await at_desk(PROFILE, ADA, ["", " "], tries=2)
    assert worked.outcome == Unreadable("empty")


@pytest.mark.parametrize("stage", [RATE, COMPARE, RANK])
async def test_nobody_is_asked_where_a_profile_lacks(stage):
    lacking, item = member(1, profile=None, profiled="u1/20"), SINGLE if stage is RATE else group(2)
    members = (lacking, member(2))
    example = Example(query=Thing(title="A lamp"), members=members, answer="[User A]")
    asked = {"member": lacking} if stage is RATE else {"members": members}
    for lacks in (asked, {"examples": (example,)}):
        worked = await at_desk(stage, msgspec.structs.replace(item, **lacks), [])
        assert worked.outcome == Unreadable("no_profile", "there is no profile of u1/20")


async def test_an_answer_that_was_cut_or_refused_or_is_a_thought_between_tags_is_none():
    for reply, times, cause in (
        (Reply(text='{"predicted_rating": 4', finish="length"), 1, "truncated"),
        (Reply(text="", finish="refused"), 5, "refused"),
    ):
        assert (await at_desk(RATE, SINGLE, [reply] * times)).outcome.cause == cause
    thought = '<think>Perhaps {"predicted_rating": 2}</think>'
    worked = await at_desk(RATE, SINGLE, [f"{thought} None.", thought + '{"score": 4}'])
    assert worked.outcome == Rated(rating=4.0, answers=(4.0,))
    assert worked.calls[0].failure.cause == "no_json"


async def test_of_several_samples_the_median_of_those_that_can_be_read_counts():
    answers = [rating(number) for number in (5, 1, 4.5, 4, 2)]
    worked = await at_desk(RATE, SINGLE, answers, samples=5)
    assert worked.outcome == Rated(rating=4.0, answers=(5.0, 1.0, 4.5, 4.0, 2.0))
    assert worked.repeats == [0, 5, 10, 15, 20]
    worked = await at_desk(RATE, SINGLE, ["?", "?", rating(3), "?", rating(4)], samples=3, tries=2)
    assert worked.outcome == Rated(rating=3.5, answers=(3.0, 4.0))
    assert worked.repeats == [0, 1, 2, 4, 5]
    worked = await at_desk(RATE, SINGLE, ["?", rating(0)], samples=2, tries=1)
    assert worked.outcome.cause == "out_of_range"
    worked = await at_desk(RATE, SINGLE, [rating(3), CallError("overflow", "too long")], samples=3)
    assert worked.outcome == CallFailed("overflow", "too long")


async def test_of_several_orders_the_most_frequent_counts():
    assert most_common(["b", "a", "a", "b", "c"]) == "b"
    worked = await at_desk(RANK, group(3), [ranking(3, 1, 2)])
    assert worked.outcome == Ranked(order=(3, 1, 2), answers=((3, 1, 2),))
    assert tastes(worked) == ["123"]
    answers = [ranking(2, 1), ranking(1, 2), "?", ranking(1, 2)]
    worked = await at_desk(RANK, group(2), answers, samples=3)
    assert worked.outcome == Ranked(order=(1, 2), answers=((2, 1), (1, 2), (1, 2)))
    assert worked.repeats == [0, 5, 10, 11]
    refused = await at_desk(RANK, group(3), [ranking(1, 3, 3)], tries=1)
    passed = await at_desk(RANK, group(3), [ranking(1, 3, 3)], repeated_users="passed")
    assert (refused.outcome.cause, passed.outcome.order) == ("not_a_permutation", (1, 3, 3))


@pytest.mark.parametrize(
    ("members", "sorting", "all_pairs"), [(2, (2, 2), 2), (3, (4, 6), 6), (4, (6, 12), 12)]
)
def test_the_calls_of_a_group_are_bounded_by_its_size(members, sorting, all_pairs):
    of_all = all_pairs, all_pairs
    for comparing, most in {"heapsort": sorting, "published": sorting, "all_pairs": of_all}.items():
        calls = COMPARE.calls(group(members), Options(comparing=comparing))
        assert ((calls.least, calls.most), calls.times) == (most, "samples")


async def test_two_users_are_compared_in_both_orders_by_the_majority_within_each():
    worked = await at_desk(COMPARE, group(2), [B, A])
    assert tastes(worked) == ["12", "21"]
    told = make_comparisons("12BA")
    assert worked.outcome == Compared(order=(2, 1), ranks=(2, 1), comparisons=told)
    answers = [B, A, B, A, "neither", A, B]
    worked = await at_desk(COMPARE, group(2), answers, samples=3, tries=2)
    assert tastes(worked) == ["12"] * 3 + ["21"] * 4
    assert worked.repeats == [0, 2, 4, 0, 2, 3, 4]
    assert worked.outcome.comparisons == told


async def test_an_unreadable_side_has_no_preference_and_a_failed_call_is_the_outcome_of_the_group():
    def answer(request):
        asked = shown(request)
        return "neither" if asked == "12" else A if asked == "".join(sorted(asked)) else B

    worked = await at_desk(COMPARE, group(3), answer, comparing="all_pairs", tries=1)
    assert worked.outcome.comparisons == make_comparisons("12-B", "13AB", "23AB")
    # One win each for 1 and 2, none for 3.
    assert worked.outcome.ranks == (1, 1, 3)
    answers = [A, B, CallError("timeout", "slow")]
    worked = await at_desk(COMPARE, group(3), answers, comparing="all_pairs")
    assert worked.outcome == CallFailed("timeout", "slow")
    assert tastes(worked) == ["12", "21", "13"]


@pytest.mark.parametrize(
    ("answers", "cause"),
    [(["neither", A], "none_named"), (["neither", f"{A} or {B}"], "both_named")],
)
async def test_a_group_without_a_comparison_that_was_read_is_unreadable(answers, cause):
    worked = await at_desk(COMPARE, group(2), answers, tries=1)
    assert (worked.outcome.cause, tastes(worked)) == (cause, ["12", "21"])
