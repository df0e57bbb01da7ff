"""Algorithm 1 with a scripted verifier: what is asked, in which order, and what is recorded."""

from types import SimpleNamespace

import pytest
from builders.usersumbench import options, segment, work
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


JAZZ, FOLK = ([said(genre), *checked(genre, WRONG)] for genre in ("Jazz", "Folk"))
CRIME = [said("Crime"), *checked("Crime")]
FINE_ROUND, BAD_ROUND = a_round("Crime"), a_round("Jazz", False, "Crime")
UNJUDGED = (Pair("Which film?", "Heat"), Pair("Which genre?", "Crime"))
ONE_STATUS = '[Status#1: "consistent", ReferenceAnswer#1: "none"]'
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
        [said("Jazz"), *checked("Jazz", ONE_STATUS)], (a_round("Jazz", None),),
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


async def test_a_correction_shows_the_wrong_pairs_alone():
    worked = await work(SEGMENT, segment(), [*JAZZ, *CRIME])
    [correction] = worked.shown("revise")
    assert said("Jazz") in correction
    assert (
        '[Question#1: "Which genre?", Answer#1: "Jazz", ReferenceAnswer#1: "Crime"]' in correction
    )
    assert "none" not in correction
    assert "Which film?" not in correction


async def test_the_option_bounds_the_regenerations():
    worked = await work(SEGMENT, segment(), [*JAZZ, *FOLK], max_iterations=1)
    assert worked.outcome.text == said("Folk")
    assert len(worked.outcome.rounds) == 2


async def test_a_summary_that_misses_the_query_is_asked_for_with_another_seed():
    worked = await work(SEGMENT, segment(), ["A list.", "inconsistent", *CRIME])
    first, second = (one for one in worked.requests if one.topic.prompt == "segment")
    assert first.messages == second.messages
    assert first.seed != second.seed


@pytest.mark.parametrize("reference", [None, "none", "None."])
def test_an_answer_that_nothing_supports_is_not_corrected_to_none(reference):
    assert shown([Pair("q", "a", False, reference)], with_references=True) == (
        '[Question#1: "q", Answer#1: "a", '
        'ReferenceAnswer#1: "nothing in my activities supports an answer"]'
    )


@pytest.mark.parametrize("calls", [0, 1, 5])
async def test_a_call_that_fails_fails_the_segment(calls):
    answers = [*JAZZ, said("Crime")][:calls]
    worked = await work(SEGMENT, segment(), [*answers, CallError("bad_request", "no")])
    assert worked.outcome == CallFailed("bad_request", "no")
    assert len(worked.calls) == calls + 1


@pytest.mark.parametrize("before", [[], JAZZ])
async def test_a_summary_that_is_cut_fails_the_segment(before):
    cut = Reply(text="Likes", finish="length")
    worked = await work(SEGMENT, segment(), [*before, cut])
    assert isinstance(worked.outcome, Unreadable)
    assert worked.outcome.cause == "truncated"


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


async def test_an_extractor_of_pythons_own_is_refused():
    with pytest.raises(UsageError, match="that extractor names cannot be used"):
        await work(SEGMENT, segment(), [said("Crime"), "consistent"], extractor="os:system")


@pytest.mark.parametrize(
    ("iterations", "extractor", "calls"),
    [(3, None, (3, 20)), (1, None, (3, 10)), (3, "m:f", (2, 16))],
)
def test_the_calls_of_a_segment_are_forecast(iterations, extractor, calls):
    found = calls_of(None, SimpleNamespace(max_iterations=iterations, extractor=extractor))
    assert (found.least, found.most) == calls
