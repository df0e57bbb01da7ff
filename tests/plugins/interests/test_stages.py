"""Items from people and from records, and what is read of an answer that names too many."""

from builders.stages import work_at_desk
from harness_interests.records import Claim, Engagement, Interest, Options, Person
from harness_interests.stages import NAME, claims, histories


def test_a_history_is_the_latest_engagements_in_their_order():
    rye, owls, geese = (Engagement(title, True) for title in ("rye", "owls", "geese"))
    people = [Person("ada", (rye, owls, geese)), Person("ben", (rye,))]
    ada, ben = histories({}, people, Options(window=2))
    assert (ada.id, ada.user, ada.engagements) == ("ada", "ada", (owls, geese))
    assert ben.engagements == (rye,)


async def test_interests_beyond_the_most_asked_for_are_not_read(history):
    answers = ["\n".join(f"- {name}: 1" for name in ("tea", "rye", "owls"))]
    worked = await work_at_desk(
        NAME, history("ada", "+rye", "-trains"), answers, benchmark="interests",
        options=Options(max_interests=2),
    )  # fmt: skip
    assert worked.outcome == (Interest("tea", (1,)), Interest("rye", (1,)))
    [shown] = worked.shown("name")
    assert "\n1. [liked] rye\n2. [skipped] trains\n" in shown
    assert "Name at most 2 interests" in shown


def test_a_claim_holds_the_liked_items_that_an_interest_cites(history, named):
    ada = history("ada", "+rye", "-trains", "+owls")
    upstreams = {"name": named((ada, {"birds": (3, 2, 7, 1), "railways": (2,), "owls": (3,)}))}
    assert list(claims(upstreams, [], Options())) == [
        Claim(id="ada/1", user="ada", interest="birds", numbers=(3, 1), titles=("owls", "rye")),
        Claim(id="ada/3", user="ada", interest="owls", numbers=(3,), titles=("owls",)),
    ]
