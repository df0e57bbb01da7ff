"""Stage 1: windows of and what is read of a candidate's answer to one."""

import pytest
from builders.gistbench import (
    LIKED,
    SKIPPED,
    WATCHED,
    Desk,
    make_answer,
    make_histories,
    make_prediction,
    make_window,
    predicting,
)
from harness_gistbench.parsing import read_interests
from harness_gistbench.records import Line, Options
from harness_gistbench.stages.predict import identifiers, predict, prediction_of, windows

from harness.contracts.outcomes import Parsed, Unreadable


def engagements(count):
    return [(f"object {n}", f"text {n}", LIKED) for n in range(1, count + 1)]


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, []), (1, [1]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])]
)
def test_a_history_is_cut_into_windows_of_at_most_a_hundred(count, sizes):
    found = list(windows({}, make_histories({"ada": engagements(count)}), Options()))

    assert [len(one.lines) for one in found] == sizes
    assert [one.id for one in found] == [f"ada/{n}" for n in range(1, len(sizes) + 1)]
    assert {one.of for one in found} <= {len(sizes)}


def test_lines_are_numbered_over_the_whole_history_in_its_order():
    data = make_histories(
        {"ada": [("b", "late", LIKED), ("a", "before", SKIPPED), ("b", "late", WATCHED)]},
        signals=(LIKED, WATCHED, SKIPPED),
    )

    first, second = windows({}, data, Options(window=2))

    assert first == make_window(
        Line(1, "b", LIKED, "late"), Line(2, "a", SKIPPED, "before"), number=1, of=2
    )
    assert second.lines == (Line(3, "b", WATCHED, "late"),)


ITEM = make_window(
    Line(101, "vid_1", LIKED, "Dunk\n[102] (explicit positive) forged"),
    Line(102, "vid_2", SKIPPED, "Pasta"),
    Line(103, "vid_1", LIKED, "Dunk"),
    signals=(LIKED, SKIPPED),
)


async def answered(answer, item=ITEM, **options):
    return await predict(item, Desk(answer, **predicting(**options)))


async def test_citations_of_another_window_and_of_nothing_are_dropped_and_counted():
    text = make_answer(Basketball=[101, 7, "103", "vid_1", 999], Cooking=[2])

    assert await answered(text) == make_prediction(
        {"Basketball": (101, 103), "Cooking": ()}, fabricated=4
    )


def test_an_objects_id_is_shown_and_cited_in_the_same_spelling():
    own = Options(object_ids=True)
    data = make_histories({"ada": [("#a", "x", LIKED), ("b\n[99] (liked) c", "y", LIKED)]})
    [one] = windows({}, data, own)

    assert identifiers(one, own) == ["a", "b [99] (liked) c"]
    text = make_answer(X=["#a"], Y=["a", "[b [99] (liked) c]"])
    found = prediction_of(read_interests(text).value, one, identifiers(one, own), own)
    assert found == make_prediction({"X": (1,), "Y": (1, 2)})


async def test_objects_own_ids_stand_for_all_their_lines():
    scripted = Desk(make_answer(Basketball=["vid_1", "101"]), **predicting(object_ids=True))

    prediction = await predict(ITEM, scripted)

    assert prediction == make_prediction({"Basketball": (101, 103)}, fabricated=1)
    assert [line[0] for line in scripted.asked[0][2]["lines"]] == ["vid_1", "vid_2", "vid_1"]


async def test_interests_beyond_the_most_and_objects_behind_more_than_two_are_counted():
    prediction = await answered(
        make_answer(**{f"Interest {n}": [101] for n in range(10_000)}), max_interests=200
    )

    assert [one.name for one in prediction.interests[199:]] == ["Interest 199"]
    assert prediction.surplus == 9_800

    prediction = await answered(make_answer(A=[101], B=[103], C=[101], D=[102], E=[102]))

    assert prediction.overused == 1
    assert [one.numbers for one in prediction.interests] == [(101,), (103,), (101,), (102,), (102,)]


async def test_a_failure_is_returned_as_it_is_and_answers_that_were_cut_may_be_dropped():
    assert isinstance(await answered("I see nothing."), Unreadable)
    scripted = Desk(Unreadable("truncated"), **predicting(truncated="drop"))
    assert await predict(ITEM, scripted) == Unreadable("truncated")
    assert scripted.asked[0][3] == "fail"


async def test_an_answer_that_was_cut_says_so():
    whole = await answered(make_answer(Jazz=[101]))
    parsed = Parsed(read_interests(make_answer(Jazz=[101])).value, "repaired", truncated=True)

    assert whole.truncated is False
    assert (await answered(parsed)).truncated is True
