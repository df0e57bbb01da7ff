"""The judges: a model with the benchmark's prompt, and word overlap."""

from typing import Any

import pytest
from harness_judges.lexical import make as make_lexical
from harness_judges.llm import make as make_llm

from harness.base.errors import UsageError
from harness.contracts.judge import Classified, Classify, JudgeParts, Select, Selected
from harness.contracts.outcomes import CallFailed, NoVerdict
from harness.testing import ScriptedModel

OPTIONS = ("Night trains in Europe", "Baking bread", "A train journey at night")


class Recorder:
    """JudgeInput in for the Desk at the edge: keeps what was asked and reads a prepared reply."""

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


async def test_llm_gives_the_template_the_parts_of_a_selection():
    question = Select(
        prompt="support", subject="trains", options=OPTIONS, at_most=2, variables={"language": "en"}
    )
    verdict, ask = await llm(question, "1, 3")
    assert verdict == Selected(chosen=(0, 2), rung="text")
    assert ask.asked == [
        (
            "support",
            {
                "subject": "trains",
                "options": list(OPTIONS),
                "labels": ["1", "2", "3"],
                "choices": list(zip(["1", "2", "3"], OPTIONS, strict=True)),
                "at_most": 2,
                "language": "en",
            },
            3,
        )
    ]


async def test_a_label_of_the_same_form_that_does_not_exist_is_counted():
    labels = ("item_0", "item_1", "item_2")
    question = Select(prompt="find", subject="trains", options=OPTIONS, labels=labels)
    verdict, ask = await llm(question, "item_2, item_99, `Item_0`")
    assert ask.asked[0][1]["labels"] == list(labels)
    assert verdict == Selected(chosen=(2, 0), rung="text", unknown=1)
    for reply in ("item_2, other_3", "item_2, item_x", "item_98, item_99"):
        verdict, _ = await llm(question, reply)
        assert isinstance(verdict, NoVerdict)


async def test_llm_classifies():
    question = Classify(prompt="kind", texts=OPTIONS[:2], labels=("travel", "food"))
    verdict, ask = await llm(question, '["travel", "food"]')
    assert verdict == Classified(labels=("travel", "food"), rung="strict")
    assert ask.asked[0][1] == {"texts": list(OPTIONS[:2]), "labels": ["travel", "food"]}


async def test_llm_keeps_the_cause_of_a_failure():
    question = Select(prompt="p", subject="trains", options=OPTIONS)
    failed = CallFailed("timeout", "after 600 s")
    assert (await llm(question, failed))[0] == NoVerdict("timeout", "after 600 s")
    assert (await llm(question, "Not one that I would name."))[0].cause == "schema"


async def test_llm_asks_nothing_about_nothing():
    verdict, ask = await llm(Select(prompt="p", subject="trains", options=()), "x")
    assert (verdict, ask.asked) == (Selected(chosen=(), rung="rule"), [])
    verdict, ask = await llm(Classify(prompt="p", texts=(), labels=("a",)), "x")
    assert (verdict, ask.asked) == (Classified(labels=(), rung="rule"), [])


async def test_a_question_may_not_hide_its_parts_behind_variables_of_its_own():
    question = Select(prompt="p", subject="x", options=("y",), variables={"subject": "z"})
    with pytest.raises(ValueError, match="subject"):
        await llm(question, "1")


async def lexical(question, **args):
    return await make_lexical(JudgeParts(args=args)).judge(question, Recorder("never asked"))


async def test_lexical_selects_by_overlap_the_best_first():
    question = Select(prompt="p", subject="Night journeys by train", options=OPTIONS)
    assert await lexical(question) == Selected(chosen=(2, 0), rung="rule")
    assert await lexical(question, share="1") == Selected(chosen=(2,), rung="rule")
    one = Select(prompt="p", subject="trains", options=OPTIONS, at_most=1)
    assert await lexical(one) == Selected(chosen=(0,), rung="rule")


async def test_lexical_has_no_verdict_where_there_is_nothing_to_compare():
    verdict = await lexical(Select(prompt="p", subject="the … of", options=OPTIONS))
    assert verdict.cause == "no_words"


async def test_lexical_classifies_by_the_part_of_a_label_that_is_held():
    question = Classify(
        prompt="p", texts=("Hobbies: board game nights", "Bread"), labels=("games", "hobby games")
    )
    assert await lexical(question) == Classified(labels=("games", None), rung="rule")


def test_lexical_names_itself_after_its_share():
    assert make_lexical(JudgeParts()).name == "lexical"
    assert make_lexical(JudgeParts(args={"share": "0.25"})).name == "lexical:share=0.25"
    for args in ({"share": "0"}, {"share": "2"}, {"share": "nan"}):
        with pytest.raises(UsageError):
            make_lexical(JudgeParts(args=args))
