"""Algorithm 1 with a scripted verifier: what is asked, in which order, and what is recorded."""

import pytest
from builders.usersumbench import segment, work
from harness_usersumbench.loop import calls_of, shown
from harness_usersumbench.records import Pair, Refined, Round
from harness_usersumbench.stages import SEGMENT

from harness import CallError, CallFailed, Reply, Unreadable
from harness.base.errors import UsageError

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
    return (
        Pair("Which film?", "Heat", True),
        Pair("Which genre?", genre, consistent, reference),
    )


def a_round(genre, consistent=True, reference=None, **more):
    return Round(said(genre), True, ("Heat", genre), pairs(genre, consistent, reference), **more)


async def test_a_summary_that_is_consistent_at_once_is_checked_once():
    worked = await work(SEGMENT, segment(), [said("Crime"), *checked("Crime")])

    assert worked.outcome == Refined(said("Crime"), (a_round("Crime"),))
    assert worked.asked == ["segment", *CHECK]
    assert worked.outcome.outcome == "consistent at once"


async def test_a_flagged_summary_is_corrected_with_its_wrong_pairs_and_checked_again():
    worked = await work(
        SEGMENT,
        segment(),
        [said("Jazz"), *checked("Jazz", WRONG), said("Crime"), *checked("Crime")],
    )

    rounds = (a_round("Jazz", False, "Crime"), a_round("Crime"))
    assert worked.outcome == Refined(said("Crime"), rounds)
    assert worked.asked == ["segment", *CHECK, "revise#1", *CHECK]
    assert worked.outcome.outcome == "fixed"
    [correction] = worked.shown("revise")
    assert said("Jazz") in correction
    assert "none" not in correction
    assert "Which film?" not in correction
    assert (
        '[Question#1: "Which genre?", Answer#1: "Jazz", ReferenceAnswer#1: "Crime"]' in correction
    )


async def test_a_summary_that_is_never_fixed_is_checked_once_more_and_left():
    again = [part for _ in range(3) for part in (said("Jazz"), *checked("Jazz", WRONG))]
    worked = await work(SEGMENT, segment(), [said("Jazz"), *checked("Jazz", WRONG), *again])

    assert worked.asked == ["segment", *CHECK] + [
        name for number in (1, 2, 3) for name in (f"revise#{number}", *CHECK)
    ]
    assert len(worked.asked) == 20
    assert worked.outcome == Refined(said("Jazz"), (a_round("Jazz", False, "Crime"),) * 4)
    assert worked.outcome.outcome == "left"


async def test_the_option_bounds_the_regenerations():
    answers = [said("Jazz"), *checked("Jazz", WRONG), said("Folk"), *checked("Folk", WRONG)]
    worked = await work(SEGMENT, segment(), answers, max_iterations=1)

    assert worked.outcome.text == said("Folk")
    assert len(worked.outcome.rounds) == 2


async def test_a_summary_that_misses_the_query_is_asked_for_again_before_any_question():
    answers = ["A list.", "inconsistent", said("Crime"), *checked("Crime")]
    worked = await work(SEGMENT, segment(), answers)

    assert worked.asked == ["segment", "fits_query", "segment#1", *CHECK]
    assert worked.outcome.rounds == (Round("A list.", False), a_round("Crime"))
    first, second = (one for one in worked.requests if one.topic.prompt == "segment")
    assert first.messages == second.messages
    assert first.seed != second.seed


async def test_a_summary_without_an_entity_is_consistent():
    worked = await work(SEGMENT, segment(), ["Nice.", "consistent", "NONE"])

    assert worked.outcome == Refined("Nice.", (Round("Nice.", True),))
    assert worked.asked == ["segment", "fits_query", "entities"]


async def test_a_pair_without_a_judgement_asks_for_no_other_summary():
    one = '[Status#1: "consistent", ReferenceAnswer#1: "none"]'
    worked = await work(SEGMENT, segment(), [said("Jazz"), *checked("Jazz", one)])

    assert worked.outcome.rounds == (a_round("Jazz", None),)
    assert worked.outcome.outcome == "undecided"


async def test_only_pairs_that_were_judged_wrong_are_corrected():
    one = '[Status#1: "inconsistent", ReferenceAnswer#1: "Big"]'
    answers = [said("Jazz"), *checked("Jazz", one), said("Crime"), *checked("Crime")]
    worked = await work(SEGMENT, segment(), answers)

    [correction] = worked.shown("revise")
    assert 'Answer#1: "Heat", ReferenceAnswer#1: "Big"]' in correction
    assert "Which genre?" not in correction


@pytest.mark.parametrize("reference", [None, "none", "None."])
async def test_an_answer_that_nothing_supports_is_not_corrected_to_none(reference):
    assert shown([Pair("q", "a", False, reference)], with_references=True) == (
        '[Question#1: "q", Answer#1: "a", '
        'ReferenceAnswer#1: "nothing in my activities supports an answer"]'
    )


UNREAD = {
    "fits_query": (
        ["perhaps", *checked("Crime")[1:]],
        Round(said("Crime"), None, ("Heat", "Crime"), pairs("Crime"), ("fits_query",)),
    ),
    "entities": (
        ["consistent", "opera"],
        Round(said("Crime"), True, (), (), ("entities",)),
    ),
    "questions": (
        ["consistent", "Heat\nCrime", "Sorry."],
        Round(said("Crime"), True, ("Heat", "Crime"), (), ("questions",)),
    ),
    "judgements": (
        [*checked("Crime", "Sorry.")],
        Round(
            said("Crime"),
            True,
            ("Heat", "Crime"),
            (Pair("Which film?", "Heat"), Pair("Which genre?", "Crime")),
            ("judgements",),
        ),
    ),
}


@pytest.mark.parametrize("check", UNREAD)
async def test_a_check_that_cannot_be_read_is_noted_and_asks_for_nothing(check):
    answers, found = UNREAD[check]
    worked = await work(SEGMENT, segment(), [said("Crime"), *answers])

    assert worked.outcome == Refined(said("Crime"), (found,))
    assert worked.outcome.outcome == "undecided"


async def test_a_check_that_was_cut_or_refused_is_unreadable():
    answers = [
        said("Crime"),
        Reply(text="consis", finish="length"),
        Reply(text="", finish="refused"),
    ]
    worked = await work(SEGMENT, segment(), answers)

    assert worked.outcome.rounds == (Round(said("Crime"), None, unread=("fits_query", "entities")),)


@pytest.mark.parametrize("calls", range(6))
async def test_a_call_that_fails_fails_the_segment(calls):
    answers = [said("Jazz"), *checked("Jazz", WRONG), said("Crime")][:calls]
    worked = await work(SEGMENT, segment(), [*answers, CallError("bad_request", "no")])

    assert worked.outcome == CallFailed("bad_request", "no")
    assert len(worked.calls) == calls + 1


@pytest.mark.parametrize("before", [[], [said("Jazz"), *checked("Jazz", WRONG)]])
async def test_a_summary_that_is_cut_fails_the_segment(before):
    cut = Reply(text="Likes", finish="length")
    worked = await work(SEGMENT, segment(), [*before, cut])

    assert isinstance(worked.outcome, Unreadable)
    assert worked.outcome.cause == "truncated"


async def test_the_verifier_sees_the_activities_of_the_segment_and_the_candidate_its_time():
    worked = await work(SEGMENT, segment(), [said("Crime"), *checked("Crime")])

    [judged], [asked] = worked.shown("judgements"), worked.shown("segment")
    for text in (judged, asked):
        assert 'watched "Heat" [Crime] around Sat 05/15/2004 4PM\nwatched "Big"' in text
    assert 'the specified time range "05/15/2004 to 06/24/2004"' in asked
    assert ASKED.format("Crime") in judged


# The extractor.


@pytest.fixture
def linker(tmp_path, monkeypatch):
    source = "def find(summary):\n    return ['Heat', ' Heat ', 'Crime'] if summary else []\n"
    (tmp_path / "linker_of_a_test.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    return "linker_of_a_test:find"


async def test_an_extractor_finds_entities_in_place_of_the_verifier(linker):
    answers = [said("Crime"), "consistent", *checked("Crime")[2:]]
    worked = await work(SEGMENT, segment(), answers, extractor=linker)

    assert worked.outcome.rounds == (a_round("Crime"),)
    assert worked.asked == ["segment", "fits_query", "questions", "judgements"]


async def test_an_extractor_of_pythons_own_is_refused():
    with pytest.raises(UsageError, match="that extractor names cannot be used"):
        await work(SEGMENT, segment(), [said("Crime"), "consistent"], extractor="os:system")


@pytest.mark.parametrize(
    ("iterations", "extractor", "calls"),
    [(3, None, (3, 20)), (1, None, (3, 10)), (3, "m:f", (2, 16))],
)
def test_the_calls_of_a_segment_are_forecast(iterations, extractor, calls):
    class Asked:
        max_iterations = iterations

    Asked.extractor = extractor
    found = calls_of(None, Asked)
    assert (found.least, found.most) == calls
