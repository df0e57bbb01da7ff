"""Items from people and from records, and work with a desk that follows a script."""

from types import SimpleNamespace

from harness_interests.records import Claim, Engagement, Interest, Options, Person, Support
from harness_interests.stages import claims, histories, name_interests, weigh_evidence

from harness.contracts.judge import Select, Selected
from harness.contracts.outcomes import NoVerdict, Parsed


class ScriptedDesk:
    """A desk that gives one prepared outcome and remembers what it was asked."""

    def __init__(self, outcome, **options):
        self.outcome = outcome
        self.options = SimpleNamespace(**options)
        self.asked = []

    async def ask(self, role, prompt, variables, *, read, tries):
        self.asked.append((role, prompt, variables, tries))
        return read(self.outcome) if isinstance(self.outcome, str) else self.outcome

    async def judge(self, question, *, role):
        self.asked.append((role, question))
        return self.outcome


def test_a_history_is_the_latest_engagements_in_their_order():
    rye, owls, geese = (Engagement(title, True) for title in ("rye", "owls", "geese"))
    people = [Person("ada", (rye, owls, geese)), Person("ben", (rye,))]
    ada, ben = histories({}, people, Options(window=2))
    assert (ada.id, ada.user, ada.engagements) == ("ada", "ada", (owls, geese))
    assert ben.engagements == (rye,)


async def test_the_candidate_sees_numbered_titles_and_is_read(history):
    scripted = ScriptedDesk('[{"interest": "baking", "items": [1, 1]}]', max_interests=5)
    interests = await name_interests(history("ada", "+rye", "-trains"), scripted)
    assert interests == (Interest("baking", (1,)),)
    shown = [
        {"number": 1, "title": "rye", "liked": True},
        {"number": 2, "title": "trains", "liked": False},
    ]
    assert scripted.asked == [("candidate", "name", {"history": shown, "max_interests": 5}, 2)]


async def test_interests_beyond_the_most_asked_for_are_not_read(history):
    parsed = Parsed((Interest("a", (1,)), Interest("b", (1,)), Interest("c", (1,))), "strict")
    interests = await name_interests(history("ada", "+rye"), ScriptedDesk(parsed, max_interests=2))
    assert interests == (Interest("a", (1,)), Interest("b", (1,)))


def test_a_claim_holds_the_liked_items_that_an_interest_cites(history, named):
    ada = history("ada", "+rye", "-trains", "+owls")
    upstreams = {"name": named((ada, {"birds": (3, 2, 7, 1), "railways": (2,), "owls": (3,)}))}
    assert list(claims(upstreams, [], Options())) == [
        Claim(id="ada/1", user="ada", interest="birds", numbers=(3, 1), titles=("owls", "rye")),
        Claim(id="ada/3", user="ada", interest="owls", numbers=(3,), titles=("owls",)),
    ]


CLAIM = Claim(id="ada/1", user="ada", interest="birds", numbers=(3, 1), titles=("owls", "rye"))


async def test_the_judge_chooses_among_the_titles_and_numbers_are_kept():
    scripted = ScriptedDesk(Selected(chosen=(0,), rung="strict"))
    assert await weigh_evidence(CLAIM, scripted) == Support(kept=(3,))
    assert scripted.asked == [
        ("judge", Select(prompt="support", subject="birds", options=("owls", "rye")))
    ]


async def test_a_judge_that_keeps_nothing_is_a_value_and_one_that_fails_is_not():
    failure = NoVerdict("no_json")
    assert await weigh_evidence(CLAIM, ScriptedDesk(Selected(chosen=(), rung="strict"))) == Support(
        ()
    )
    assert await weigh_evidence(CLAIM, ScriptedDesk(failure)) is failure
