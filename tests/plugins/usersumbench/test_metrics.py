"""QM, IFM and IDM by hand, and the score of each user from stored records."""

import pytest
from builders.records import make_records
from builders.usersumbench import a_question, activity, options, segment
from harness_usersumbench.metrics import counts, density, notes, of_chance, quality, score
from harness_usersumbench.records import (
    TASKS,
    Check,
    Pair,
    Past,
    Rated,
    Ratings,
    Refined,
    Round,
    Segments,
    Summary,
    UserResult,
    count_words,
)

from harness import CallFailed, NoVerdict, Unreadable

RIGHT, WRONG, UNREAD = 0, 1, Unreadable("none_named", "")


@pytest.mark.parametrize(
    ("answers", "value"),
    [
        ((True, True, True, False), 1.0),  # m is just reached
        ((True, True, False, False), 0.0),
        ((True, True, True, None), 1.0),  # three right decide
        ((False, False, None, None), 0.0),  # two wrong decide
        ((True, True, False, None), None),
        ((None, None, None, None), None),
    ],
)
def test_quality_is_decided_by_readable_answers(answers, value):
    assert quality(answers, 3) == value


def test_chance_reaches_the_threshold_as_often_as_four_draws_of_five():
    # 4 · (1/5)³ · 4/5 + (1/5)⁴ = 17/625; 1 − (4/5)⁴ = 369/625
    assert of_chance(3) == pytest.approx(17 / 625)
    assert of_chance(1) == pytest.approx(369 / 625)
    assert of_chance(4) == pytest.approx(1 / 625)


def test_density_is_accuracy_by_word_in_tenths_of_a_per_cent():
    assert density((True, True, True, False), 150) == pytest.approx(0.75 / 150 * 1000)
    assert density((True, True, True, None), 100) == pytest.approx(1.0 / 100 * 1000)
    assert density((None, None, None, None), 100) is None
    assert density((None, None, None, None), 0) == 0.0  # a summary without words


@pytest.mark.parametrize(
    ("text", "words"),
    [("", 0), (" \n", 0), ("**Summary**\nLikes tea.\n\n**Insights**\n* Tea", 6), ("a-b c,d", 2)],
)
def test_words_stand_between_white_space_headings_included(text, words):
    assert count_words(text) == words


def predicted(user, *runs, words=100, history=60):
    """The records of a user's questions, with the four answers of each run."""
    shown = {"words": words, "summary": None if words is None else "s", "history": history}

    def question(task, run):
        popular = RIGHT if task in ("t1", "t2") else WRONG
        return a_question(task, run, user=user, popular=popular, **shown)

    return [
        (question(task, run), answer)
        for run, answers in enumerate(runs, start=1)
        for task, answer in zip(TASKS, answers, strict=True)
    ]


def scored(records, **changed):
    found = {name: make_records(pairs, stage="a key") for name, pairs in records.items()}
    return {one.id: one for one in score(found, options(**changed))}


def test_a_user_has_the_means_of_all_runs():
    runs = [(RIGHT,) * 4, (RIGHT, RIGHT, RIGHT, WRONG), (RIGHT, WRONG, WRONG, WRONG)]
    ann = scored({"predict": predicted("ann", *runs)})["ann"]
    assert ann.values == pytest.approx({
        "qm": 2 / 3, "idm": (1 + 0.75 + 0.25) / 3 / 100 * 1000, "ifm": 1.0, "t1": 1.0,
        "t2": 2 / 3, "t3": 2 / 3, "t4": 1 / 3, "unreadable": 0.0, "popular": 0.0,
        "random": 17 / 625, "popular_activity": 1.0, "popular_category": 0.0,
    })  # fmt: skip
    assert (ann.missing, ann.user, ann.slices) == ({}, "ann", {"history": "50-99"})
    answered = ((True,) * 4, (True, True, True, False), (True, False, False, False))
    assert ann.details == UserResult(answered, 100)
    # Without a summary there is no density and no limit.
    ann = scored({"predict": predicted("ann", (RIGHT,) * 4, words=None)})["ann"]
    assert {"idm", "ifm"}.isdisjoint({*ann.values, *ann.missing})
    assert ann.values["qm"] == 1.0


def test_threshold_and_limit_are_those_of_the_options():
    records = {"predict": predicted("ann", (RIGHT, RIGHT, WRONG, WRONG))}
    # Of 100 words and a limit of 99; both questions about activities are right with the most
    # popular option.
    ann = scored(records, threshold=2, max_words=99)["ann"]
    assert [ann.values[name] for name in ("qm", "ifm", "popular")] == [1.0, 0.0, 1.0]
    for words, within in ((0, 1.0), (199, 1.0), (200, 1.0), (201, 0.0)):
        ann = scored({"predict": predicted("ann", (RIGHT,) * 4, words=words)})["ann"]
        assert ann.values["ifm"] == within


def test_an_unread_answer_is_left_out_and_counted_as_wrong_in_the_second_column():
    ann = scored({"predict": predicted("ann", (RIGHT, RIGHT, RIGHT, UNREAD), (RIGHT,) * 4)})["ann"]
    assert (ann.values["qm"], ann.values["t4"]) == (1.0, 1.0)
    assert ann.values["unreadable"] == 1 / 8
    assert ann.values["idm"] == pytest.approx(10.0)
    assert ann.worst == {"idm": pytest.approx((0.75 + 1) / 2 / 100 * 1000)}
    assert ann.lost == {"t4": 0.5, "idm": 1 / 8}
    # A run that unread answers decide is lost.
    runs = [(RIGHT, RIGHT, WRONG, UNREAD), (RIGHT,) * 4, (WRONG,) * 4]
    ann = scored({"predict": predicted("ann", *runs)})["ann"]
    assert (ann.values["qm"], ann.lost["qm"]) == (0.5, pytest.approx(1 / 3))
    # A user of whom nothing is decided is missing with the cause.
    ann = scored({"predict": predicted("ann", (RIGHT, RIGHT, WRONG, CallFailed("timeout", "")))})
    assert ann["ann"].missing == {"qm": "predict/timeout", "t4": "predict/timeout"}
    assert (ann["ann"].values["t1"], ann["ann"].values["unreadable"]) == (1.0, 0.25)


def test_a_user_whose_summary_failed_has_the_cause_of_its_stage():
    past = {name: Past(id=name, user=name, activities=(activity("Heat"),) * 120) for name in "abc"}
    records = {
        "summarise": [
            (past["a"], Unreadable("truncated", "")), *((past[one], Summary("s")) for one in "bc"),
        ],
        "predict": [
            pair for one, many in (("b", 120), ("c", 60))
            for pair in predicted(one, (RIGHT,) * 4, history=many)
        ],
    }  # fmt: skip
    found = scored(records)
    assert set(found["a"].missing.values()) == {"summarise/truncated"}
    assert set(found["a"].missing) == {"qm", "idm", "ifm", *TASKS, "unreadable"}
    assert found["a"].values == {}
    assert found["a"].slices == found["b"].slices == {"history": "100-149"}
    # The control counts the history of the user, and not of the other whom the summary is of.
    assert scored(records, method="other")["c"].slices == {"history": "50-99"}


def test_a_user_who_lacks_a_segment_or_the_combination_has_its_cause():
    refined, failed = Refined("s", (Round("s", True),)), CallFailed("timeout", "")
    done = {"b": Unreadable("refused", ""), "c": Summary("s")}
    records = {
        "segment": [
            (segment(1, 2, user="a"), refined), (segment(2, 2, user="a"), failed),
            *((segment(user=name), refined) for name in done),
        ],
        "combine": [
            (Segments(id=name, user=name, ranges=("r",), summaries=("s",)), one)
            for name, one in done.items()
        ],
        "predict": predicted("c", (RIGHT,) * 4, history=2),
    }  # fmt: skip
    found = scored(records)
    causes = {"a": "segment/timeout", "b": "combine/refused", "c": None}
    assert {name: one.missing.get("qm") for name, one in found.items()} == causes
    assert found["a"].slices == found["c"].slices == {"history": "0-49", "segments": "count"}


def test_marks_of_the_judge_are_columns_of_their_own():
    rated = [
        (Rated(id="ann", user="ann", summary="s"), Ratings(coherence=4, relevance=3)),
        (Rated(id="ben", user="ben", summary="s"), NoVerdict("schema", "")),
    ]
    answers = predicted("ann", (RIGHT,) * 4) + predicted("ben", (RIGHT,) * 4)
    found = scored({"predict": answers, "rate": rated})
    marks = {name: found["ann"].values[name] for name in ("coherence", "relevance", "autoeval")}
    assert marks == {"coherence": 4.0, "relevance": 3.0, "autoeval": 3.5}
    assert found["ben"].missing == dict.fromkeys(marks, "rate/schema")


def test_what_the_verifier_did_is_counted():
    wrong = (Pair("q", "a", False, "b"), Pair("q", "c"), Pair("q", "d", True))
    missed, silent = Round("s", False), Round("s", None, unread=("fits_query",))
    fixed = missed, Round("y", True, ("e",), wrong), Round("s", True)
    of_each = enumerate((fixed, (silent, missed), (missed, silent)), 1)
    combined = Segments(id="a", user="a", ranges=(), summaries=()), Summary("")
    records = {"segment": make_records((segment(n, 3), Refined("s", of)) for n, of in of_each)}
    records["combine"] = make_records([combined])
    assert counts(records, options()) == {
        "empty summaries": 1,
        "summaries of fewer than ten words": 1,
        "segments": 3,
        "checks of segments": 7,
        "segments flagged": 3,
        "segments flagged and fixed": 1,
        "segments flagged and left": 1,
        "segments undecided": 1,
        "checks that found the query missed": 3,
        "checks that found no entity": 3,
        "question-answer pairs": 3,
        "pairs found inconsistent": 1,
        "pairs without a judgement": 1,
        "unreadable checks: fits_query": 2,
    }


def test_checks_without_a_verdict_and_summaries_without_words_are_noted():
    def check(number, **more):
        fields = {"flagged": False, "unread": (), "unjudged": 0, **more}
        return Check(id=f"a/{number}", user="a", **fields)

    ten = "one two three four five six seven eight nine ten"
    said = {"a": "Likes", "b": ten, "c": ten.removesuffix(" ten")}
    unread = check(2, unread=("entities",)), NoVerdict("unread_check", "")
    records = {
        "verify": make_records([(check(1), True), unread, (check(3), False)]),
        "summarise": make_records(
            (Past(id=name, user=name, activities=()), Summary(text)) for name, text in said.items()
        ),
    }
    assert list(notes(records, options())) == [
        "1 of the verifier's 3 checks of summaries could not be read in full",
        "2 of 3 summaries have fewer than ten words: the fewer, the higher is IDM",
    ]
    assert counts(records, options()) == {"summaries of fewer than ten words": 2}
    nothing = {"predict": make_records([])}
    assert (list(notes(nothing, options())), counts(nothing, options())) == ([], {})
