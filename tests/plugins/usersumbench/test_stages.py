"""The items of each stage, and the work of all but the loop."""

from types import SimpleNamespace

import pytest
from builders.records import make_records
from builders.usersumbench import a_question, activity, options, people, person, segment, work
from harness_usersumbench.records import (
    TASKS,
    Past,
    Ratings,
    Refined,
    Round,
    Segments,
    Summary,
)
from harness_usersumbench.stages import (
    COMBINE,
    PREDICT,
    RATE,
    SEGMENT,
    STAGES,
    SUMMARISE,
    VERIFY,
    pasts,
    questions,
    rated,
    refined,
    segments,
)

from harness import Classified, NoVerdict, Unreadable

ANN, BEN = person("ann", "Heat", "Big", "Jaws"), person("ben", "Rio", "Antz")


@pytest.mark.parametrize(
    ("method", "stages"),
    [
        ("single_step", [SUMMARISE, PREDICT]),
        ("hierarchy_critique", [SEGMENT, VERIFY, COMBINE, PREDICT]),
        ("raw_timeline", [PREDICT]),
        ("none", [PREDICT]),
        ("other", [SUMMARISE, PREDICT]),
    ],
)
def test_the_method_decides_the_stages(method, stages):
    for autoeval in (False, True):
        asked = options(method=method, autoeval=autoeval)
        has = [one for one in STAGES if not one.when or one.when(people(), asked)]
        assert has == [*stages, *([RATE] if autoeval and len(stages) > 1 else [])]


def test_a_past_is_one_item_and_the_control_summarises_that_of_another_user():
    def items(of, **changed):
        return list(pasts({}, people(ANN, BEN, **of), options(**changed)))

    ann, ben = (Past(id=one.id, user=one.id, activities=one.past) for one in (ANN, BEN))
    assert items({}) == [ann, ben]
    assert items({"ann": "ben", "ben": "ann"}, method="other") == [
        Past(id="ann", user="ann", activities=BEN.past),
        Past(id="ben", user="ben", activities=ANN.past),
    ]


PAST = Past(id="ann", user="ann", activities=(activity("Heat", "Crime", "Drama"),))


async def test_a_summary_is_asked_for_once_and_is_the_whole_answer():
    worked = await work(SUMMARISE, PAST, ["**Summary**\nCrime."], max_words=50)
    assert worked.outcome == Summary("**Summary**\nCrime.")
    [shown] = worked.shown("summarise")
    assert "no more than 50 words." in shown
    assert shown.endswith('watched "Heat" [Crime, Drama] around Sat 05/15/2004 4PM')


def test_each_segment_of_a_past_is_an_item():
    long = person("ann", *(f"Film {number}" for number in range(60)))
    items = list(segments({}, people(long), options(segmenting="count", segments=3)))
    assert [(one.id, one.user, one.number, one.of, one.by) for one in items] == [
        (f"ann/{number}", "ann", number, 3, "count") for number in (1, 2, 3)
    ]
    assert tuple(one for item in items for one in item.activities) == long.past


def test_segments_are_combined_in_order_of_time_if_all_have_a_summary():
    def done(text):
        return Refined(text, (Round(text, True),))

    twelve = [
        (segment(number, 12, user="ann"), done(f"part {number}"))
        for number in (1, 10, 11, 12, *range(2, 10))
    ]
    lacking = [(segment(1, 2, user="ben"), done("a")), (segment(2, 2, user="ben"), Unreadable("x"))]
    upstreams = {"segment": make_records([*twelve, *lacking])}

    [item] = refined(upstreams, people(), options())
    assert (item.id, item.user) == ("ann", "ann")
    assert item.summaries == tuple(f"part {number}" for number in range(1, 13))
    assert item.ranges[:2] == ("05/15/2004 to 06/24/2004", "05/15/2004 to 08/03/2004")


async def test_the_segments_become_one_summary():
    item = Segments(id="ann", user="ann", ranges=("May", "June"), summaries=("Tea.", "Rum."))
    worked = await work(COMBINE, item, ["Tea, then rum."])
    assert worked.outcome == Summary("Tea, then rum.")
    [shown] = worked.shown("combine")
    assert 'Summary of Time Segment "May": Tea.\nSummary of Time Segment "June": Rum.\n' in shown


def upstreams(**summaries):
    pairs = [
        (Past(id=user, user=user, activities=()), Summary(text) if text is not None else text)
        for user, text in summaries.items()
    ]
    return {"summarise": make_records((one, value or Unreadable("x")) for one, value in pairs)}


def asked(method="single_step", data=None, given=None, **changed):
    given = upstreams(ann="Likes tea.") if given is None else given
    return list(questions(given, data or people(ANN), options(method=method, **changed)))


def test_a_user_with_a_summary_is_asked_each_question_in_each_run():
    items = asked(data=people(ANN, BEN), given=upstreams(ann="Likes tea.", ben=None))
    assert [one.id for one in items] == [f"ann/{task}/{run}" for task in TASKS for run in (1, 2, 3)]
    assert {(one.summary, one.words, one.history) for one in items} == {("Likes tea.", 2, 3)}
    assert {one.words for one in asked(given=upstreams(ann=""), runs=1)} == {0}


@pytest.mark.parametrize(
    ("method", "shown"),
    [
        ("single_step", {"t1": (), "t2": ANN.past[1:], "t3": (), "t4": ANN.past[1:]}),
        ("none", {"t1": (), "t2": ANN.past[1:], "t3": (), "t4": ANN.past[1:]}),
        ("raw_timeline", dict.fromkeys(TASKS, ANN.past)),
    ],
)
def test_the_most_recent_activities_are_shown_in_t2_and_t4_and_not_twice(method, shown):
    given = upstreams(ann="Likes tea.") if method == "single_step" else {}
    items = asked(method, given=given, recent=2)
    assert {one.task: one.shown for one in items} == shown
    summary = ("Likes tea.", 2) if method == "single_step" else (None, None)
    assert {(one.summary, one.words) for one in items} == {summary}


def test_the_order_of_options_depends_on_the_seed_and_not_on_the_method():
    orders = [one.options for one in asked()]
    assert [one.options for one in asked("none", given={})] == orders
    assert [one.options for one in asked(data=people(ANN, seed=1))] != orders


async def test_the_predictor_chooses_an_option_by_its_letter():
    worked = await work(PREDICT, a_question(), ["C"])
    assert worked.outcome == 2
    [shown] = worked.shown("predict")
    assert "Likes tea." in shown
    assert 'watched "Heat" [Crime] around Sat 05/15/2004 4PM' in shown
    assert "Which movie is the user's next activity about?\n\nA. Next\nB. Wrong\nC. Big" in shown


async def test_each_run_has_a_seed_of_its_own():
    found = [await work(PREDICT, a_question(run=run), ["A"]) for run in (1, 2, 3)]
    assert len({one.requests[0].seed for one in found}) == 3


async def test_the_predictor_is_shown_nothing_that_names_the_right_answer():
    def answer(_prompt, variables):
        text = str(variables)
        assert text.count("Next") == 1
        assert "right" not in text
        return "A"

    await work(PREDICT, a_question(), answer)


class ScriptedJudge(SimpleNamespace):
    async def judge(self, question, ask):
        self.questions.append(question)
        return self.verdicts.pop(0)


def a_judge(*verdicts):
    return ScriptedJudge(name="scripted", version=1, models=(), questions=[], verdicts=[*verdicts])


[RATED] = rated(upstreams(ann="Tea."), people(), options())


async def test_the_judge_gives_a_mark_for_coherence_and_one_for_relevance():
    judge = a_judge(Classified(labels=("4",)), Classified(labels=("2",)))
    worked = await work(RATE, RATED, [], judge=judge)
    assert (RATED.id, worked.outcome) == ("ann", Ratings(coherence=4, relevance=2))
    assert [one.variables["aspect"] for one in judge.questions] == ["coherence", "relevance"]
    assert {one.labels for one in judge.questions} == {("1", "2", "3", "4", "5")}
    assert {one.texts for one in judge.questions} == {("Tea.",)}


async def test_without_both_marks_there_is_none():
    failed = NoVerdict("schema", "unreadable")
    worked = await work(RATE, RATED, [], judge=a_judge(Classified(labels=("4",)), failed))
    assert worked.outcome == failed
    worked = await work(RATE, RATED, [], judge=a_judge(Classified(labels=(None,))))
    assert worked.outcome == NoVerdict("no_label", "coherence has no mark")
