"""The panel: who decides, what a tie is, and what is left when members fail."""

from dataclasses import dataclass
from typing import Any

import pytest
from harness_judges.panel import make as make_panel

from harness.contracts.judge import Classified, Classify, JudgeParts, Member, Select, Selected, Vote
from harness.contracts.outcomes import NoVerdict

FAILED = NoVerdict("timeout", "600 s")
QUESTION = Select(prompt="p", subject="trains", options=("a", "b", "c", "d"))


@dataclass
class Decided:
    """A judge that has decided already."""

    verdict: Any
    name: str = "decided"
    version: int = 1
    models: tuple[Any, ...] = ()

    async def judge(self, question, ask):
        return self.verdict


class Votes:
    """What a panel asks with where no member asks a model."""

    def __init__(self):
        self.votes: list[Vote] = []

    def vote(self, vote):
        self.votes.append(vote)


def chosen(*places):
    return Selected(chosen=places, rung="text")


def given(*labels):
    return Classified(labels=labels, rung="text")


async def decide(question, *verdicts):
    members = tuple(
        Member(label=label, judge=Decided(verdict))
        for label, verdict in zip("xyzwv", verdicts, strict=False)
    )
    asking = Votes()
    verdict = await make_panel(JudgeParts(members=members)).judge(question, asking)  # type: ignore[arg-type]
    return verdict, asking.votes


TWO = Select(prompt="p", subject="trains", options=("a", "b", "c", "d"), at_most=2)


def selected(*places, **counts):
    return Selected(chosen=places, rung="majority", **counts)


@pytest.mark.parametrize(
    ("question", "verdicts", "decided"),
    [
        pytest.param(
            QUESTION, [chosen(0, 2), chosen(2, 3), chosen(2, 0, 1)], selected(2, 0),
            id="more than half, the most chosen first",
        ),
        pytest.param(QUESTION, [chosen(), chosen(), chosen(1)], selected(), id="nothing"),
        pytest.param(
            QUESTION, [chosen(0, 1), chosen(1, 2)], selected(1, tied=2), id="just half is a tie",
        ),
        # Each of three was chosen by two of three; the first two stay.
        pytest.param(
            TWO, [chosen(0, 1), chosen(1, 2), chosen(2, 0)], selected(0, 1, surplus=1),
            id="more than may be",
        ),
        pytest.param(
            QUESTION, [chosen(0), FAILED, chosen(0, 1)], selected(0, tied=1),
            id="two of three answered",
        ),
        pytest.param(
            QUESTION, [chosen(0), FAILED],
            NoVerdict("no_quorum", "1 of 2 answered; y: timeout", behind=("timeout",)),
            id="half are no quorum",
        ),
        pytest.param(
            QUESTION, [chosen(0), FAILED, FAILED],
            NoVerdict("no_quorum", "1 of 3 answered; y: timeout, z: timeout", behind=("timeout",)),
            id="fewer are none",
        ),
    ],
)  # fmt: skip
async def test_what_just_half_chose_is_not_selected_and_counted_as_tied(
    question, verdicts, decided
):
    verdict, votes = await decide(question, *verdicts)
    assert verdict == decided
    assert votes == [Vote(*vote) for vote in zip("xyz", verdicts, strict=False)]


@pytest.mark.parametrize(
    ("verdicts", "labels", "tied"),
    [
        # All three differ about the second, and of two that speak of the third one says A and one
        # B; of the fourth nobody says anything, which is no tie.
        (
            [given("A", "A", "A", None), given("A", "B", "B", None), given("B", "C", None, None)],
            ("A", None, None, None), 2,
        ),
        ([given("A"), given("A"), given("B"), given("B"), given("B")], ("B",), 0),
        ([given(), given()], (), 0),
    ],
)  # fmt: skip
async def test_the_label_given_most_often_is_the_texts(verdicts, labels, tied):
    question = Classify(
        prompt="p", texts=("1", "2", "3", "4")[: len(labels)], labels=("A", "B", "C")
    )
    verdict, _ = await decide(question, *verdicts)
    assert verdict == Classified(labels=labels, rung="majority", tied=tied)


async def test_what_is_behind_a_missing_quorum_is_each_cause_of_its_members_once():
    unreadable, none_exists = NoVerdict("no_json"), NoVerdict("schema")
    verdict, _ = await decide(QUESTION, unreadable, none_exists, unreadable)
    assert verdict.causes == ("no_json", "schema")
    # A member may be a panel itself.
    several = NoVerdict("no_quorum", behind=("empty", "timeout"))
    verdict, _ = await decide(QUESTION, several, NoVerdict("timeout"))
    assert verdict.causes == ("empty", "timeout")


async def test_a_tie_about_every_text_is_no_verdict():
    question = Classify(prompt="p", texts=("1",), labels=("A", "B"))
    verdict, votes = await decide(question, given("A"), given("B"))
    assert isinstance(verdict, NoVerdict)
    assert verdict.cause == "tied"
    assert len(votes) == 2
