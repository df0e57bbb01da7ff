"""The judges: a model with the benchmark's prompt, word overlap, and a panel."""

from dataclasses import dataclass
from typing import Any

import pytest
from harness_judges.lexical import make as make_lexical
from harness_judges.llm import make as make_llm
from harness_judges.panel import make as make_panel
from inline_snapshot import snapshot

from harness import registry as plugin_manager
from harness.base.errors import UsageError
from harness.contracts.judge import Classified, Classify, JudgeParts, Member, Select, Selected, Vote
from harness.contracts.outcomes import CallFailed, NoVerdict
from harness.testing import ScriptedModel

OPTIONS = ("Night trains in Europe", "Baking bread", "A train journey at night")


class Recorder:
    """Stands in for the Desk at the edge: keeps what was asked and reads a prepared reply."""

    def __init__(self, reply):
        self.reply = reply
        self.asked: list[tuple[str, dict[str, Any], int]] = []

    async def __call__(self, model, prompt, variables, *, read, tries, corrected=False):
        self.asked.append((prompt, dict(variables), tries))
        return self.reply if isinstance(self.reply, CallFailed) else read(self.reply)


async def llm(question, reply):
    ask = Recorder(reply)
    judge = make_llm(JudgeParts(model=ScriptedModel()))
    return await judge.judge(question, ask), ask


async def test_llm_gives_the_template_all_parts_and_a_label_that_does_not_exist_is_counted():
    question = Select(
        prompt="support", subject="trains", options=OPTIONS, at_most=2, variables={"language": "en"}
    )
    verdict, ask = await llm(question, "1, 3")
    assert verdict == Selected(chosen=(0, 2), rung="text")
    labels = ["1", "2", "3"]
    told = {
        "subject": "trains", "options": list(OPTIONS), "labels": labels, "at_most": 2,
        "choices": list(zip(labels, OPTIONS, strict=True)), "language": "en",
    }  # fmt: skip
    assert ask.asked == [("support", told, 3)]
    question = Classify(prompt="kind", texts=OPTIONS[:2], labels=("travel", "food"))
    verdict, ask = await llm(question, '["travel", "food"]')
    assert verdict == Classified(labels=("travel", "food"), rung="strict")
    assert ask.asked[0][1] == {"texts": list(OPTIONS[:2]), "labels": ["travel", "food"]}
    question = Select(prompt="p", subject="x", options=("y",), variables={"subject": "z"})
    with pytest.raises(ValueError, match="subject"):
        await llm(question, "1")
    labels = ("item_0", "item_1", "item_2")
    question = Select(prompt="find", subject="trains", options=OPTIONS, labels=labels)
    verdict, ask = await llm(question, "item_2, item_99, `Item_0`")
    assert ask.asked[0][1]["labels"] == list(labels)
    assert verdict == Selected(chosen=(2, 0), rung="text", unknown=1)
    for reply in ("item_2, other_3", "item_2, item_x", "item_98, item_99"):
        verdict, _ = await llm(question, reply)
        assert isinstance(verdict, NoVerdict)


async def test_llm_asks_nothing_about_nothing_and_keeps_the_cause_of_a_failure():
    question = Select(prompt="p", subject="trains", options=OPTIONS)
    failed = CallFailed("timeout", "after 600 s")
    assert (await llm(question, failed))[0] == NoVerdict("timeout", "after 600 s")
    assert (await llm(question, "Not one that I would name."))[0].cause == "schema"
    verdict, ask = await llm(Select(prompt="p", subject="trains", options=()), "x")
    assert (verdict, ask.asked) == (Selected(chosen=(), rung="rule"), [])
    verdict, ask = await llm(Classify(prompt="p", texts=(), labels=("a",)), "x")
    assert (verdict, ask.asked) == (Classified(labels=(), rung="rule"), [])


async def lexical(question, **args):
    return await make_lexical(JudgeParts(args=args)).judge(question, Recorder("never asked"))


async def test_lexical_selects_and_classifies_by_overlap_and_is_named_after_its_share():
    question = Select(prompt="p", subject="Night journeys by train", options=OPTIONS)
    assert await lexical(question) == Selected(chosen=(2, 0), rung="rule")
    assert await lexical(question, share="1") == Selected(chosen=(2,), rung="rule")
    one = Select(prompt="p", subject="trains", options=OPTIONS, at_most=1)
    assert await lexical(one) == Selected(chosen=(0,), rung="rule")
    verdict = await lexical(Select(prompt="p", subject="the … of", options=OPTIONS))
    assert verdict.cause == "no_words"
    question = Classify(
        prompt="p", texts=("Hobbies: board game nights", "Bread"), labels=("games", "hobby games")
    )
    assert await lexical(question) == Classified(labels=("games", None), rung="rule")
    assert make_lexical(JudgeParts()).name == "lexical"
    assert make_lexical(JudgeParts(args={"share": "0.25"})).name == "lexical:share=0.25"
    for args in ({"share": "0"}, {"share": "2"}, {"share": "nan"}):
        with pytest.raises(UsageError):
            make_lexical(JudgeParts(args=args))


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
    decided = zip("xyzwv", map(Decided, verdicts), strict=False)
    members = tuple(Member(label=label, judge=judge) for label, judge in decided)
    asking = Votes()
    verdict = await make_panel(JudgeParts(members=members)).judge(question, asking)  # type: ignore[arg-type]
    return verdict, asking.votes


TWO = Select(prompt="p", subject="trains", options=("a", "b", "c", "d"), at_most=2)


def selected(*places, **counts):
    return Selected(chosen=places, rung="majority", **counts)


def no_quorum(said):
    return NoVerdict("no_quorum", said, behind=("timeout",))


DECIDED = {
    "more than half, the most chosen first":
        (QUESTION, [chosen(0, 2), chosen(2, 3), chosen(2, 0, 1)], selected(2, 0)),
    "nothing": (QUESTION, [chosen(), chosen(), chosen(1)], selected()),
    "just half is a tie": (QUESTION, [chosen(0, 1), chosen(1, 2)], selected(1, tied=2)),
    # Each of three was chosen by two of three; the first two stay.
    "more than may be":
        (TWO, [chosen(0, 1), chosen(1, 2), chosen(2, 0)], selected(0, 1, surplus=1)),
    "two of three answered": (QUESTION, [chosen(0), FAILED, chosen(0, 1)], selected(0, tied=1)),
    "half are no quorum":
        (QUESTION, [chosen(0), FAILED], no_quorum("1 of 2 answered; y: timeout")),
    "fewer are none": (
        QUESTION, [chosen(0), FAILED, FAILED],
        no_quorum("1 of 3 answered; y: timeout, z: timeout"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("of", DECIDED)
async def test_what_just_half_chose_is_not_selected_but_a_tie(of):
    question, verdicts, decided = DECIDED[of]
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
    question = Classify(prompt="p", texts=tuple("1234")[: len(labels)], labels=("A", "B", "C"))
    verdict, _ = await decide(question, *verdicts)
    assert verdict == Classified(labels=labels, rung="majority", tied=tied)


async def test_a_missing_quorum_has_each_cause_once_and_a_tie_about_every_text_no_verdict():
    unreadable, none_exists = NoVerdict("no_json"), NoVerdict("schema")
    verdict, _ = await decide(QUESTION, unreadable, none_exists, unreadable)
    assert verdict.causes == ("no_json", "schema")
    # A member may be a panel itself.
    several = NoVerdict("no_quorum", behind=("empty", "timeout"))
    verdict, _ = await decide(QUESTION, several, NoVerdict("timeout"))
    assert verdict.causes == ("empty", "timeout")
    question = Classify(prompt="p", texts=("1",), labels=("A", "B"))
    verdict, votes = await decide(question, given("A"), given("B"))
    assert isinstance(verdict, NoVerdict)
    assert verdict.cause == "tied"
    assert len(votes) == 2


CASES = {
    ("lexical", "shares", "1"): (None, "shares", snapshot("""\
the judge 'lexical' has no argument 'shares'
expected: share=NUMBER\
""")),
    ("lexical", "share", "most"): ("the judge 'lexical'", "share=most", snapshot("""\
the share of words that an option must hold cannot be used
expected: a number above 0, at most 1\
""")),
    ("llm", "", ""): (None, None, snapshot("""\
the judge 'llm' needs a model
expected: the SPEC of a model
to do: give one, as in --judge openai:model=NAME\
""")),
    ("llm", "tries", "2"): (None, "tries", snapshot("""\
the judge 'llm' has no arguments of its own
expected: arguments after its model, as in llm:openai:model=NAME\
""")),
    ("panel", "", ""): (None, "none", snapshot("""\
a panel needs two judges or more
expected: panel:SPEC+SPEC+…, as in panel:openai:model=a+openai:model=b+openai:model=c\
""")),
}  # fmt: skip


@pytest.mark.parametrize(("judge", "name", "value"), CASES)
def test_arguments(judge, name, value, raised):
    factory = plugin_manager.load_plugins().judge(judge).factory
    model = ScriptedModel("yes") if name == "tries" else None
    parts = JudgeParts(model=model, args={name: value} if name else {})
    where, found, wording = CASES[judge, name, value]
    assert raised(UsageError, factory, parts, where=where, found=found) == wording


LABELS = {
    "item,label\nann/1,\n": ("labels.csv", None, snapshot("""\
the files contain no labels
expected: rows with an item and a label\
""")),
    "item,label\nann/9,yes\nann/9,yes\nann/8,no\nann/7,no\nann/6,no\n": (
        "labels.csv", "items ann/9, ann/8, ann/7, …",
        snapshot("""\
no label fits a decision of these runs
expected: the ids of items, as in `harness show RUN --sample ITEM`\
""")),
}  # fmt: skip


@pytest.mark.parametrize("labels", LABELS)
def test_labels_that_say_nothing_of_a_run(labels, small_run, tmp_path, monkeypatch, exits):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_text(labels)
    command = f"analyse judge-agreement {small_run} --labels labels.csv"
    where, found, wording = LABELS[labels]
    assert exits(2, UsageError, command, where=where, found=found) == wording


def test_a_run_without_a_panel(small_run, exits):
    command = f"analyse judge-panel {small_run}"
    assert exits(2, UsageError, command, found="interests") == snapshot("""\
no task of these runs has a panel as judge
expected: a run with --judge panel:SPEC+SPEC+…\
""")
