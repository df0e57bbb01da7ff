"""Interests of a user, merged out of the answers to all windows."""

from builders.gistbench import (
    LIKED,
    SKIPPED,
    WATCHED,
    make_claim,
    make_prediction,
    make_window,
    recorded,
)
from harness_gistbench import interests
from harness_gistbench.records import Evidence, Interest, Kept, Line

from harness.contracts.outcomes import NoVerdict, Unreadable


def window(number, *lines):
    return make_window(*lines, number=number, of=2, signals=(LIKED, SKIPPED))


def said(**cited):
    return make_prediction({name.replace("_", " "): numbers for name, numbers in cited.items()})


FIRST = window(
    1, Line(1, "dunk", LIKED, "the dunk"), Line(2, "dunk", WATCHED, "the dunk"),
    Line(3, "pasta", SKIPPED, "fresh pasta"),
)  # fmt: skip
SECOND = window(2, Line(4, "dunk", SKIPPED, "a dunk, seen again"), Line(5, "final", LIKED, "game"))


def test_the_same_interest_of_two_windows_is_merged_and_its_citations_united():
    records = recorded(
        [(SECOND, said(nba_HIGHLIGHTS=(5,))), (FIRST, said(Cooking=(3,), NBA_highlights=(1,)))]
    )

    assert interests.merged(records) == (
        Interest(
            number=1,
            name="Cooking",
            evidence=(Evidence("pasta", "fresh pasta", (SKIPPED,)),),
        ),
        Interest(
            number=2,
            name="NBA highlights",
            evidence=(
                Evidence("dunk", "the dunk", (LIKED, WATCHED, SKIPPED)),
                Evidence("final", "game", (LIKED,)),
            ),
        ),
    )


def test_signals_are_those_of_every_engagement_and_windows_follow_by_number():
    records = recorded([(FIRST, said(Basketball=(1,))), (SECOND, Unreadable("no_json"))])

    [interest] = interests.merged(records)

    assert interest.evidence == (Evidence("dunk", "the dunk", (LIKED, WATCHED, SKIPPED)),)
    tenth = make_window(Line(901, "opera", LIKED, "opera"), number=10, of=10, signals=(LIKED,))
    records = recorded([(tenth, said(Opera=(901,))), (SECOND, said(Basketball=(5,)))])

    assert [one.name for one in interests.merged(records)] == ["Basketball", "Opera"]


def test_interests_are_told_again_from_the_claims_made_of_them():
    pasta, dunk = Evidence("pasta", "fresh pasta", (SKIPPED,)), Evidence("dunk", "dunk", (LIKED,))

    records = recorded(
        [
            (make_claim(10, "Opera"), Kept(positions=())),
            (make_claim(2, "Cooking", [dunk], part=10), NoVerdict("timeout")),
            (make_claim(2, "Cooking", [pasta], part=9), Kept(positions=())),
        ]
    )

    assert interests.claimed(records) == (
        Interest(number=2, name="Cooking", evidence=(pasta, dunk)),
        Interest(number=10, name="Opera", evidence=()),
    )
