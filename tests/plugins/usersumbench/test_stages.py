"""The items of each stage and their work, Algorithm 1 with a scripted verifier, and whole runs."""

import json
from types import SimpleNamespace

import pytest
from builders.records import make_records
from builders.usersumbench import a_question, activity, options, people, person, segment, work
from harness_usersumbench.benchmark import USERSUMBENCH
from harness_usersumbench.loop import calls_of, shown
from harness_usersumbench.records import (
    TASKS,
    Pair,
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

from harness import CallError, CallFailed, Classified, NoVerdict, Reply, Unreadable
from harness.base.errors import UsageError
from harness.cli.main import main
from harness.testing import ScriptedModel

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
    for others, summarised, method in (
        ({}, (ANN, BEN), "single_step"), ({"ann": "ben", "ben": "ann"}, (BEN, ANN), "other")
    ):  # fmt: skip
        assert list(pasts({}, people(ANN, BEN, **others), options(method=method))) == [
            Past(id=one.id, user=one.id, activities=other.past)
            for one, other in zip((ANN, BEN), summarised, strict=True)
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


async def test_segments_are_combined_in_order_of_time_if_all_have_a_summary():
    done = {n: Refined(f"part {n}", (Round("s", True),)) for n in (1, 10, 11, 12, *range(2, 10))}
    lacking = [(segment(1, 2, user="ben"), done[1]), (segment(2, 2, user="ben"), Unreadable("x"))]
    pairs = [*((segment(n, 12, user="ann"), one) for n, one in done.items()), *lacking]
    [item] = refined({"segment": make_records(pairs)}, people(), options())
    assert (item.id, item.user) == ("ann", "ann")
    assert item.summaries == tuple(f"part {number}" for number in range(1, 13))
    assert item.ranges[:2] == ("05/15/2004 to 06/24/2004", "05/15/2004 to 08/03/2004")
    item = Segments(id="ann", user="ann", ranges=("May", "June"), summaries=("Tea.", "Rum."))
    worked = await work(COMBINE, item, ["Tea, then rum."])
    assert worked.outcome == Summary("Tea, then rum.")
    [shown] = worked.shown("combine")
    assert 'Summary of Time Segment "May": Tea.\nSummary of Time Segment "June": Rum.\n' in shown


def upstreams(**texts):
    """The records of summaries, and of one that failed where its text is None."""
    return {
        "summarise": make_records(
            (Past(id=user, user=user, activities=()),
             Unreadable("x") if text is None else Summary(text))
            for user, text in texts.items()
        )
    }  # fmt: skip


def asked(method="single_step", data=None, given=None, **changed):
    given = upstreams(ann="Likes tea.") if given is None else given
    return list(questions(given, data or people(ANN), options(method=method, **changed)))


def test_a_user_with_a_summary_is_asked_each_question_in_each_run():
    items = asked(data=people(ANN, BEN), given=upstreams(ann="Likes tea.", ben=None))
    assert [one.id for one in items] == [f"ann/{task}/{run}" for task in TASKS for run in (1, 2, 3)]
    assert {(one.summary, one.words, one.history) for one in items} == {("Likes tea.", 2, 3)}
    assert {one.words for one in asked(given=upstreams(ann=""), runs=1)} == {0}


@pytest.mark.parametrize("method", ["single_step", "none", "raw_timeline"])
def test_the_most_recent_activities_are_shown_in_t2_and_t4_and_not_twice(method):
    has = method == "single_step"
    items = asked(method, given=upstreams(ann="Likes tea.") if has else {}, recent=2)
    recent = {"t1": (), "t2": ANN.past[1:], "t3": (), "t4": ANN.past[1:]}
    shown = dict.fromkeys(TASKS, ANN.past) if method == "raw_timeline" else recent
    assert {one.task: one.shown for one in items} == shown
    summary = ("Likes tea.", 2) if has else (None, None)
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
    # Nothing names the right answer, and each run has a seed of its own.
    [request] = worked.requests
    text = str(request.topic.variables)
    assert text.count("Next") == 1
    assert "right" not in text
    others = [await work(PREDICT, a_question(run=run), ["A"]) for run in (1, 3)]
    assert len({one.requests[0].seed for one in (worked, *others)}) == 3


class ScriptedJudge(SimpleNamespace):
    """A judge that gives these verdicts one after the other."""

    def __init__(self, *verdicts):
        super().__init__(name="scripted", version=1, models=(), questions=[], verdicts=[*verdicts])

    async def judge(self, question, ask):
        self.questions.append(question)
        return self.verdicts.pop(0)


[RATED] = rated(upstreams(ann="Tea."), people(), options())


async def test_the_judge_gives_a_mark_for_coherence_and_one_for_relevance_or_none():
    judge = ScriptedJudge(Classified(labels=("4",)), Classified(labels=("2",)))
    worked = await work(RATE, RATED, [], judge=judge)
    assert (RATED.id, worked.outcome) == ("ann", Ratings(coherence=4, relevance=2))
    assert [one.variables["aspect"] for one in judge.questions] == ["coherence", "relevance"]
    assert {one.labels for one in judge.questions} == {("1", "2", "3", "4", "5")}
    assert {one.texts for one in judge.questions} == {("Tea.",)}
    failed, four = NoVerdict("schema", "unreadable"), Classified(labels=("4",))
    worked = await work(RATE, RATED, [], judge=ScriptedJudge(four, failed))
    assert worked.outcome == failed
    worked = await work(RATE, RATED, [], judge=ScriptedJudge(Classified(labels=(None,))))
    assert worked.outcome == NoVerdict("no_label", "coherence has no mark")


CHECK = ["fits_query", "entities", "questions", "judgements"]
ASKED = (
    '[Question#1: "Which film?", Answer#1: "Heat"]\n[Question#2: "Which genre?", Answer#2: "{}"]'
)
FINE = (
    '[Status#1: "consistent", ReferenceAnswer#1: "none"]\n'
    '[Status#2: "consistent", ReferenceAnswer#2: "none"]'
)
WRONG = FINE.replace('#2: "consistent", ReferenceAnswer#2: "none"', '#2: "inconsistent", '
                     'ReferenceAnswer#2: "Crime"')  # fmt: skip


def said(genre):
    return f"Likes Heat and {genre}."


def checked(genre, judgements=FINE):
    """The verifier's answers about a summary of this genre."""
    return ["consistent", f"Heat\n{genre}", ASKED.format(genre), judgements]


def pairs(genre, consistent=True, reference=None):
    return (Pair("Which film?", "Heat", True), Pair("Which genre?", genre, consistent, reference))


def a_round(genre, consistent=True, reference=None, **more):
    return Round(said(genre), True, ("Heat", genre), pairs(genre, consistent, reference), **more)


JAZZ, FOLK = ([said(genre), *checked(genre, WRONG)] for genre in ("Jazz", "Folk"))
CRIME = [said("Crime"), *checked("Crime")]
FINE_ROUND, BAD_ROUND = a_round("Crime"), a_round("Jazz", False, "Crime")
UNJUDGED = (Pair("Which film?", "Heat"), Pair("Which genre?", "Crime"))
CUT, REFUSED = Reply(text="consis", finish="length"), Reply(text="", finish="refused")

LOOPS = {
    "consistent at once": (CRIME, (FINE_ROUND,), ["segment", *CHECK], "consistent at once"),
    "fixed": (
        [*JAZZ, *CRIME], (BAD_ROUND, FINE_ROUND), ["segment", *CHECK, "revise#1", *CHECK], "fixed"
    ),
    "never fixed": (
        JAZZ * 4, (BAD_ROUND,) * 4,
        ["segment", *CHECK, *(name for n in (1, 2, 3) for name in (f"revise#{n}", *CHECK))], "left",
    ),
    "missing the query": (
        ["A list.", "inconsistent", *CRIME], (Round("A list.", False), FINE_ROUND),
        ["segment", "fits_query", "segment#1", *CHECK], "fixed",
    ),
    "no entity": (
        ["Nice.", "consistent", "NONE"], (Round("Nice.", True),),
        ["segment", "fits_query", "entities"], "consistent at once",
    ),
    "a pair without a judgement": (
        [said("Jazz"), *checked("Jazz", FINE.splitlines()[0])], (a_round("Jazz", None),),
        ["segment", *CHECK], "undecided",
    ),
    "the query unread": (
        [said("Crime"), "perhaps", *checked("Crime")[1:]],
        (Round(said("Crime"), None, ("Heat", "Crime"), pairs("Crime"), ("fits_query",)),),
        ["segment", *CHECK], "undecided",
    ),
    "entities unread": (
        [said("Crime"), "consistent", "opera"],
        (Round(said("Crime"), True, (), (), ("entities",)),),
        ["segment", *CHECK[:2]], "undecided",
    ),
    "pairs unread": (
        [said("Crime"), "consistent", "Heat\nCrime", "Sorry."],
        (Round(said("Crime"), True, ("Heat", "Crime"), (), ("questions",)),),
        ["segment", *CHECK[:3]], "undecided",
    ),
    "judgements unread": (
        [said("Crime"), *checked("Crime", "Sorry.")],
        (Round(said("Crime"), True, ("Heat", "Crime"), UNJUDGED, ("judgements",)),),
        ["segment", *CHECK], "undecided",
    ),
    "checks cut and refused": (
        [said("Crime"), CUT, REFUSED],
        (Round(said("Crime"), None, unread=("fits_query", "entities")),),
        ["segment", *CHECK[:2]], "undecided",
    ),
}  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS)
async def test_what_is_asked_and_recorded(loop):
    answers, rounds, asked, outcome = LOOPS[loop]
    worked = await work(SEGMENT, segment(), answers)
    assert worked.outcome == Refined(rounds[-1].summary, rounds)
    assert worked.outcome.outcome == outcome
    assert worked.asked == asked
    # What misses the query is asked for again with another seed.
    tries = [one for one in worked.requests if one.topic.prompt == "segment"]
    assert len({one.seed for one in tries}) == len(tries)
    assert len({one.messages for one in tries}) == 1


async def test_a_correction_shows_the_wrong_pairs_alone():
    worked = await work(SEGMENT, segment(), [*JAZZ, *CRIME])
    [correction] = worked.shown("revise")
    assert said("Jazz") in correction
    wrong = '[Question#1: "Which genre?", Answer#1: "Jazz", ReferenceAnswer#1: "Crime"]'
    assert wrong in correction
    assert "none" not in correction
    assert "Which film?" not in correction
    # An answer that nothing supports is not corrected to none.
    for reference in (None, "none", "None."):
        assert shown([Pair("q", "a", False, reference)], with_references=True) == (
            '[Question#1: "q", Answer#1: "a", '
            'ReferenceAnswer#1: "nothing in my activities supports an answer"]'
        )


async def test_the_option_bounds_the_regenerations():
    worked = await work(SEGMENT, segment(), [*JAZZ, *FOLK], max_iterations=1)
    assert worked.outcome.text == said("Folk")
    assert len(worked.outcome.rounds) == 2


@pytest.mark.parametrize("calls", [0, 1, 5])
async def test_a_call_that_fails_or_a_summary_that_is_cut_fails_the_segment(calls):
    before = [*JAZZ, said("Crime")][:calls]
    worked = await work(SEGMENT, segment(), [*before, CallError("bad_request", "no")])
    assert worked.outcome == CallFailed("bad_request", "no")
    assert len(worked.calls) == calls + 1
    if calls in (0, 5):
        cut = Reply(text="Likes", finish="length")
        worked = await work(SEGMENT, segment(), [*before, cut])
        assert (type(worked.outcome), worked.outcome.cause) == (Unreadable, "truncated")


async def test_an_extractor_finds_entities_in_place_of_the_verifier(tmp_path, monkeypatch):
    source = "def find(summary):\n    return ['Heat', ' Heat ', 'Crime'] if summary else []\n"
    (tmp_path / "linker_of_a_test.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    linker = "linker_of_a_test:find"
    answers = [said("Crime"), "consistent", *checked("Crime")[2:]]
    worked = await work(SEGMENT, segment(), answers, extractor=linker)
    assert worked.outcome.rounds == (a_round("Crime"),)
    assert worked.asked == ["segment", "fits_query", "questions", "judgements"]
    assert "entities.verifier" in SEGMENT.asked(options())
    assert "entities.verifier" not in SEGMENT.asked(options(extractor=linker))
    with pytest.raises(UsageError, match="that extractor names cannot be used"):
        await work(SEGMENT, segment(), answers, extractor="os:system")
    # It is part of what makes runs comparable.
    assert USERSUMBENCH.contents(options()) == {}
    assert USERSUMBENCH.contents(options(extractor=linker)).keys() == {"extractor"}
    with pytest.raises(UsageError, match="that extractor names"):
        USERSUMBENCH.contents(options(extractor="no_such_module:find"))


@pytest.mark.parametrize(
    ("iterations", "extractor", "calls"),
    [(3, None, (3, 20)), (1, None, (3, 10)), (3, "m:f", (2, 16))],
)
def test_the_calls_of_a_segment_are_forecast(iterations, extractor, calls):
    found = calls_of(None, SimpleNamespace(max_iterations=iterations, extractor=extractor))
    assert (found.least, found.most) == calls


HC = "usersum_movielens_hc"


def answer(request):
    """A summary and a first option; of questions about categories nothing that can be read."""
    if request.topic.prompt == "summarise":
        return f"The user likes {len(request.messages[-1].content)} teas."
    return "I cannot say." if request.topic.variables["asked"] == "category" else "A"


def test_a_verifier_of_rubbish_ends_the_task_before_its_summaries_are_used(harness_run):
    rubbish = {"limit": 4, "roles": {"verifier": ScriptedModel("Lorem ipsum.")}}
    result = harness_run(HC, model="baseline", **rubbish)
    assert result.exit_code == 3
    [error] = result.errors
    assert error.where == f"{HC}/verify"
    # Four users have ten segments, and nothing that is read flags any.
    assert error.found == (
        "10 of 10 by judging (unread_check 10); the first: the verifier's fits_query, entities "
        "cannot be read; name another verifier with --role verifier=SPEC"
    )
    assert error.expected == "at most 20% (--max_failures judging=0.2)"
    assert "--retry_failures" not in error.hint
    journals = sorted(file.name for file in (result.folder / HC).glob("?-*.jsonl"))
    assert journals == ["2-segment.jsonl", "3-verify.jsonl"]
    # It alone measures nothing, whatever is allowed.
    result = harness_run(HC, model="baseline", max_failures=1.0, **rubbish)
    assert result.exit_code == 3
    assert "these results measure nothing" in result.errors[0].expected


def test_a_predictor_may_be_unreadable_as_a_candidate_may_and_a_judge_may_not(harness_run, capsys):
    model = ScriptedModel(answer)
    result = harness_run("usersum_movielens", model=model, limit=4)
    assert result.exit_code == 0
    [measured], asked = result.summaries, model.count
    # Two of the four tasks ask for a category, three times each of four users.
    assert sum(measured.stages["predict"].failures.values()) == 24
    assert measured.metrics["unreadable"].value == 0.5
    # The threshold and the limit are changed without asking.
    capsys.readouterr()
    changes = ("--set", "threshold=1", "--set", "max_words=2", "--json")
    assert main(["score", str(result.folder), *changes]) == 0
    [run] = json.loads(capsys.readouterr().out)["runs"]
    [again] = run["summaries"]
    assert model.count == asked
    assert again["metrics"]["qm"]["value"] > 0
    assert (measured.metrics["ifm"].value, again["metrics"]["ifm"]["value"]) == (1.0, 0.0)
    assert "the prompts were asked with the old values" in again["not_comparable_because"][-1]

    judged = harness_run(
        "usersum_movielens", model=ScriptedModel(answer), limit=4, set={"autoeval": True},
        judge=ScriptedModel("Good.", name="judge"),
    )  # fmt: skip
    assert judged.exit_code == 3
    [error] = judged.errors
    assert error.where == "usersum_movielens/rate" and error.found.startswith("4 of 4 by judging")
