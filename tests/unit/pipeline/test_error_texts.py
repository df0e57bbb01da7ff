"""What is said of stages that ask wrongly, and of files of answers, word for word."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from harness.cli.main import main
from harness.errors import HarnessError
from harness.judging import Select
from harness.parsing import TextReader
from harness.pipeline.benchmark import Item, Stage
from harness.pipeline.roles import Binding

SAY = {"say.candidate": "say it"}
QUESTION = Select(prompt="say", subject="it", options=("x", "y"), labels=("a", "b"))


@dataclass(eq=False)
class Judging:
    """A judge that gives or asks what it should not."""

    does: Callable[[Any], Any]
    models: tuple = ()
    name: str = "odd"
    version: int = 1

    async def judge(self, question, ask):
        return await self.does(ask)


def one_item(upstreams, data, options):
    yield Item(id="a", user="u")


def stage(work, name="say", **more):
    given = {"roles": ("candidate",), "prompts": ("say",), **more}
    return Stage(name, item=Item, value=str, items=one_item, work=work, **given)


async def said(house, stages, models, **more):
    house.prompts = SAY
    with pytest.raises(HarnessError) as caught:
        await house.run(stages, models, **more)
    return str(caught.value)


def ask(role="candidate", **how):
    async def work(item, desk):
        await desk.ask(role, "say", {}, read=TextReader(), **how)

    return work


def judge(role):
    async def work(item, desk):
        await desk.judge(QUESTION, role=role)

    return work


async def option(item, desk):
    return desk.options.window


WRONG = {
    "another role": (
        ask("judge"),
        """\
stage 'say' asks a role it does not declare
  found:    judge
  expected: candidate
  to do:    add it to the stage's `roles`, or to its `judges` if it judges there""",
    ),
    "no judge": (
        judge("candidate"),
        """\
stage 'say' has 'candidate' judge without declaring it as a judge
  found:    candidate
  expected: the role in the stage's `judges`""",
    ),
    "an option": (
        option,
        """\
stage 'say' reads an option it does not declare
  found:    window
  expected: no option
  to do:    add it to the stage's `options`: only declared ones enter its key""",
    ),
    "too often": (
        ask(repeat=1_000_000),
        """\
stage 'say' asks one question too often
  found:    1,000,001 times
  expected: at most 1,000,000: the numbers after them are those of repeats""",
    ),
}


@pytest.mark.parametrize("what", WRONG)
async def test_stages_that_ask_wrongly(what, house, scripted):
    work, text = WRONG[what]
    assert await said(house, [stage(work)], {"candidate": scripted("m")}) == text


def test_a_prompt_that_is_not_declared(house, scripted):
    house.prompts = SAY
    _, _, [context] = house.contexts([stage(option)], {"candidate": scripted("m")})
    with pytest.raises(HarnessError) as caught:
        context.template("sing", "candidate")
    assert (
        str(caught.value)
        == """\
stage 'say' has no prompt 'sing' for the role 'candidate'
  expected: prompts/toy/sing.candidate.j2, with 'sing' in the stage's `prompts`"""
    )


async def test_a_judge_that_asks_another_model_and_one_that_gives_no_verdict(house, scripted):
    judging = stage(judge("judge"), roles=(), prompts=(), judges=("judge",))
    own, other = scripted("own"), scripted("other")

    async def elsewhere(ask):
        await ask(other, "say", {}, read=TextReader(), tries=1)

    async def word(ask):
        return "yes"

    async def of(does):
        asked = {"judges": {"judge": Judging(does, models=(own,))}}
        return await said(house, [judging], {"judge": own}, **asked)

    assert (
        await of(elsewhere)
        == """\
the judge of the role 'judge' asks a model that is not its own
  found:    scripted:other
  expected: one of its `models`"""
    )
    assert (
        await of(word)
        == """\
the judge 'odd' gave no verdict
  found:    str
  expected: Selected, Classified or NoVerdict"""
    )


async def test_a_judge_by_rule_that_is_asked_a_question(house):
    async def verdict(ask):
        raise AssertionError("nobody asks it for a verdict")

    by_rule = Binding(role="judge", label="lexical", model=None, judge=Judging(verdict))
    judging = stage(ask("judge"), roles=(), prompts=(), judges=("judge",))
    assert (
        await said(house, [judging], {"judge": by_rule})
        == """\
stage 'say' asks the role 'judge' a question of its own
  found:    lexical, which only judges
  expected: desk.judge(…)"""
    )


async def test_stages_that_wait_for_each_other_end_the_run(house, monkeypatch):
    async def idle(item, desk):
        raise AssertionError("neither can begin")

    # What holds the order when a benchmark is read would say it before.
    monkeypatch.setattr("harness.pipeline.stages.check_order", lambda benchmark: None)
    circle = [
        stage(idle, "one", roles=(), prompts=(), after=("two",)),
        stage(idle, "two", roles=(), prompts=(), after=("one",)),
    ]
    assert (
        await said(house, circle, {})
        == """\
no stage can go on, though some are not done
  found:    t/one, t/two
  expected: stages whose `after` lead back to a first one"""
    )


@pytest.fixture
def waiting(tmp_path, monkeypatch, capsys):
    """What `harness replies` says of a file, for a run whose questions are written down."""
    monkeypatch.chdir(tmp_path)
    arguments = "--model openai:model=m,base_url=http://127.0.0.1:9/v1 --judge lexical"
    given = f"{arguments} --tasks interests --data sample --limit 2 --no_store"
    assert main(["requests", *given.split(), "--out", "asked.jsonl", "--output_path", "kept"]) == 0
    (folder,) = (path for path in (tmp_path / "kept").iterdir() if path.is_dir())

    def said(file):
        capsys.readouterr()
        assert main(["replies", str(folder), file]) in (1, 2)
        return capsys.readouterr().err

    return said


def test_files_that_hold_no_answers(waiting, tmp_path):
    assert (
        waiting("none.jsonl")
        == """\
harness: none.jsonl: a file of answers cannot be read
  found:    No such file or directory
  expected: a file of JSON lines, as a batch service writes it
"""
    )
    assert (
        waiting("asked.jsonl")
        == """\
harness: 2 lines hold no answer of a batch; nothing was taken in
  found:    asked.jsonl:1: a request, not an answer
            asked.jsonl:2: a request, not an answer
  expected: lines as {"custom_id": …, "response": {"status_code": …, "body": …}, "error": …}
"""
    )
    stranger = {"custom_id": "x", "response": {"status_code": 200, "body": {}}, "error": None}
    (tmp_path / "other.jsonl").write_text(json.dumps(stranger))
    assert (
        waiting("other.jsonl")
        == """\
harness: 1 line answers nothing that this run asked; nothing was taken in
  found:    other.jsonl:1: 'x'
  expected: a custom_id that `harness requests` wrote for this run
  to do:    give each run the answers to its own requests
"""
    )
    os.mkfifo(tmp_path / "pipe")
    assert (
        waiting("pipe")
        == """\
harness: pipe: answers are read twice
  found:    a pipe or a device
  expected: a file
"""
    )
