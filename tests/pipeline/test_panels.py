"""A panel among real stages and engines: its calls, its votes, and engines that take turns."""

import msgspec
from builders.stages import Word
from harness_judges.llm import make as make_llm
from harness_judges.panel import make as make_panel

from harness.contracts.judge import JudgeParts, Member, Select, Selected, Vote
from harness.contracts.outcomes import NoVerdict
from harness.contracts.records import JudgedRecord
from harness.contracts.stage import Stage
from harness.pipeline.desk import Binding

PROMPT = {"weigh.judge": "which of {{ choices }} goes with {{ subject }}?"}


async def choose(item, desk):
    question = Select(prompt="weigh", subject=item.id, options=("x", "y"), labels=("a", "b"))
    verdict = await desk.judge(question)
    return verdict if isinstance(verdict, NoVerdict) else list(verdict.chosen)


WEIGH = Stage(
    "weigh", item=Word, value=list[int], work=choose, judges=("judge",),
    items=lambda upstreams, data, options: [Word(id=name, user=name) for name in data],
)  # fmt: skip


def panel_of(*models):
    members = tuple(
        Binding(
            role="judge", label=model.name, model=model, judge=make_llm(JudgeParts(model=model))
        )
        for model in models
    )
    judge = make_panel(
        JudgeParts(members=tuple(Member(label=one.label, judge=one.judge) for one in members))
    )
    return Binding(role="judge", label="panel", model=None, judge=judge, members=members)


async def test_every_vote_and_every_call_is_recorded_with_whose_it_is(house, scripted):
    house.prompts = PROMPT
    one, two, three = (
        scripted(name, lambda request, says=says: says)
        for name, says in (("one", "a"), ("two", "a, b"), ("three", "no idea"))
    )
    records = await house.run([WEIGH], {"judge": panel_of(one, two, three)}, data=["w"])
    [record] = records["weigh"]
    assert record.outcome.value == [0]
    calls = [(call.member, call.text) for call in record.calls]
    assert calls == [("one", "a"), ("two", "a, b"), *[("three", "no idea")] * 3]
    [line] = house.journal(1, "weigh").read_bytes().splitlines()
    [judged] = msgspec.json.decode(line, type=JudgedRecord).judged
    assert (judged.role, judged.prompt, judged.subject) == ("judge", "weigh", "w")
    assert judged.labels == ("a", "b")
    assert judged.verdict == Selected(chosen=(0,), rung="majority", tied=1)
    assert judged.votes[:2] == (
        Vote("one", Selected(chosen=(0,), rung="text")),
        Vote("two", Selected(chosen=(0, 1), rung="text")),
    )
    assert judged.votes[2].member == "three"
    assert isinstance(judged.votes[2].verdict, NoVerdict)


async def test_the_answers_of_a_panel_are_paid_for_once(house, scripted):
    house.prompts = PROMPT
    models = [scripted(name, lambda request: "a") for name in ("one", "two")]
    await house.run([WEIGH], {"judge": panel_of(*models)}, data=["s", "t"])
    # A third member changes the stage's key, and only it is asked anew.
    third = scripted("three", lambda request: "b")
    records = await house.run([WEIGH], {"judge": panel_of(*models, third)}, data=["s", "t"])
    assert [each.outcome.value for each in records["weigh"]] == [[0]] * 2
    assert [len(model.asked) for model in (*models, third)] == [2, 2, 2]
