"""What is said of stages that ask wrongly, and of files of answers, word for word."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness_models import openai
from inline_snapshot import snapshot

from harness.base.errors import DataError, HarnessError, PluginError, PromptError, UsageError
from harness.calls.client import OwnAnswers
from harness.contracts.judge import Classified, Classify, Select, Selected
from harness.contracts.model import ModelSettings
from harness.contracts.records import Done
from harness.contracts.stage import Item, Stage
from harness.parsing import TextReader
from harness.pipeline.desk import Binding
from harness.pipeline.elsewhere import import_answers
from harness.runs.run_folder import RunFolder

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


def stage(work, name="say", **more):
    given = {"roles": ("candidate",), "prompts": ("say",), **more}
    items = lambda upstreams, data, options: [Item(id="a", user="u")]  # noqa: E731
    return Stage(name, item=Item, value=str, items=items, work=work, **given)


@pytest.fixture
def house(house):
    house.prompts = {"say.candidate": "say it"}
    return house


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


async def never(*given):
    raise AssertionError("nobody comes here")


JUDGING = stage(judge("judge"), roles=(), prompts=(), judges=("judge",))

WRONG = {
    "another role": (ask("judge"), None, "judge", snapshot("""\
stage 'say' asks a role it does not declare
expected: candidate
to do: add it to the stage's `roles`, or to its `judges` if desk.judge uses it""")),
    "no judge": (judge("candidate"), None, "candidate", snapshot("""\
stage 'say' calls desk.judge with 'candidate', which is no judge
expected: the role in the stage's `judges`""")),
    "an option": (option, None, "window", snapshot("""\
stage 'say' reads an option it does not declare
expected: no option
to do: add it to the stage's `options`: only declared options enter its key""")),
    "too often": (ask(repeat=1_000_000), None, "1,000,001 times", snapshot("""\
stage 'say' asks one question too often
expected: at most 1,000,000 times: later numbers belong to other repeats""")),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_stages_that_ask_wrongly(what, house, scripted, raised):
    work, where, found, wording = WRONG[what]
    models = {"candidate": scripted("m")}
    said = raised(PluginError, house.run, [stage(work)], models, where=where, found=found)
    assert said == wording


def test_a_prompt_that_is_not_declared(house, scripted, raised):
    _, _, [context] = house.contexts([stage(option)], {"candidate": scripted("m")})
    assert raised(PromptError, context.template, "sing", "candidate") == snapshot("""\
stage 'say' has no prompt 'sing' for the role 'candidate'
expected: prompts/toy/sing.candidate.j2, with 'sing' in the stage's `prompts`""")


def test_a_judge_that_asks_another_model_gives_no_verdict_or_is_asked_by_rule(
    house, scripted, raised
):
    own, other = scripted("own"), scripted("other")

    async def elsewhere(ask):
        await ask(other, "say", {}, read=TextReader(), tries=1)

    async def word(ask):
        return "yes"

    def run(does):
        judges = {"judge": Judging(does, models=(own,))}
        return house.run([JUDGING], {"judge": own}, judges=judges)

    found = "scripted:other"
    assert raised(PluginError, run, elsewhere, found=found) == snapshot("""\
the judge of the role 'judge' asks a model that it was not given
expected: one of the models in its JudgeParts""")
    assert raised(PluginError, run, word, found="str") == snapshot("""\
the judge 'odd' returned something that is no verdict
expected: Selected, Classified or NoVerdict""")
    by_rule = Binding(role="judge", label="lexical", model=None, judge=Judging(never))
    judging = stage(ask("judge"), roles=(), prompts=(), judges=("judge",))
    models, found = {"judge": by_rule}, "lexical, a judge"
    assert raised(PluginError, house.run, [judging], models, found=found) == snapshot("""\
stage 'say' calls desk.ask with 'judge', which is no model
expected: desk.judge(…) for this role""")


def test_verdicts_that_do_not_answer_the_question(house, scripted, raised):
    own = scripted("own")
    texts = Classify(prompt="say", texts=("x", "y"), labels=("good", "bad"))

    def run(question, verdict):
        async def give(ask):
            return verdict

        async def work(item, desk):
            await desk.judge(question)
            return "fine"

        stages = [stage(work, roles=(), prompts=(), judges=("judge",))]
        return house.run(stages, {"judge": own}, judges={"judge": Judging(give, models=(own,))})

    classified = snapshot("""\
the judge 'odd' returned a verdict that does not answer its question
expected: Classified(labels=…) with one label for each of the 2 texts: None, or one of good, bad""")
    for verdict in (
        Classified(labels=("good",)), Classified(labels=("good", "fine")), Selected(chosen=()),
    ):  # fmt: skip
        assert raised(PluginError, run, texts, verdict, found=repr(verdict)) == classified
    selected = snapshot("""\
the judge 'odd' returned a verdict that does not answer its question
expected: Selected(chosen=…) with positions of the 2 options, counted from 0""")
    for verdict in (Selected(chosen=(2,)), Selected(chosen=(-1,)), Classified(labels=())):
        assert raised(PluginError, run, QUESTION, verdict, found=repr(verdict)) == selected
    for question, verdict in (
        (texts, Classified(labels=("bad", None))), (QUESTION, Selected(chosen=(1, 0))),
    ):  # fmt: skip
        (record,) = asyncio.run(run(question, verdict))["say"]
        assert record.outcome == Done("fine")
        assert record.judged[0].verdict.rung == "rule"


def test_stages_that_wait_for_each_other_end_the_run(house, monkeypatch, raised):
    # What holds the order when a benchmark is read would say it before.
    monkeypatch.setattr("harness.pipeline.plan.check_order", lambda benchmark: None)
    circle = [
        stage(never, "one", roles=(), prompts=(), after=("two",)),
        stage(never, "two", roles=(), prompts=(), after=("one",)),
    ]
    assert raised(HarnessError, house.run, circle, {}, found="t/one, t/two") == snapshot("""\
deadlock: none of the unfinished stages can start
expected: stages whose `after` lead back to a stage without `after`""")


def test_files_that_hold_no_answers(tmp_path, monkeypatch, raised):
    monkeypatch.chdir(tmp_path)
    folder = RunFolder(tmp_path / "run")
    folder.asked.parent.mkdir(parents=True)
    folder.asked.write_text('{"key": "00ff"}\n')
    Path("asked.jsonl").write_text('{"custom_id": "00ff", "body": {}}\n' * 2)
    model = openai.make(ModelSettings(args={"model": "m", "base_url": "http://127.0.0.1:9/v1"}))

    def replies(kind, file, **expected):
        answers = import_answers([Path(file)], folder, model, OwnAnswers())
        return raised(kind, lambda: [*answers], **expected)

    found = "No such file or directory"
    assert replies(UsageError, "none.jsonl", where="none.jsonl", found=found) == snapshot("""\
a file of answers cannot be read
expected: a file of JSON lines, as a batch service writes it""")
    indent, request = "\n            ", "neither a response nor an error"
    found = f"asked.jsonl:1: {request}{indent}asked.jsonl:2: {request}"
    assert replies(DataError, "asked.jsonl", found=found) == snapshot("""\
lines that answer no question of this run: 2; nothing was imported
expected: lines as {"custom_id": …, "response": {"status_code": …, "body": …}, "error": …}, with a \
custom_id that --write_requests wrote for this run
to do: give each run the whole answers to its own requests""")
    Path("list.jsonl").write_text('["00ff"]')
    found = "list.jsonl:1: Expected `object`, got `array`"
    assert "nothing was imported" in replies(DataError, "list.jsonl", found=found)
    Path("torn.jsonl").write_text('{"custom_id": "00')
    found = "torn.jsonl:1: no JSON; its end may have been cut off"
    assert "nothing was imported" in replies(DataError, "torn.jsonl", found=found)
    stranger = {"custom_id": "x", "response": {"status_code": 200, "body": {}}, "error": None}
    (tmp_path / "other.jsonl").write_text(json.dumps(stranger))
    found = "other.jsonl:1: no question of this run has the key 'x'"
    assert "nothing was imported" in replies(DataError, "other.jsonl", found=found)
