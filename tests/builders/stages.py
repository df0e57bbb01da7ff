"""Benchmarks and stages of which a test gives what it is about."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.runs import make_task

from harness.calls.client import Client
from harness.contracts.benchmark import Benchmark, NoOptions
from harness.contracts.model import Request
from harness.contracts.outcomes import Parsed
from harness.contracts.records import CallRecord
from harness.contracts.stage import Item, Stage
from harness.contracts.task import Task
from harness.parsing import TextReader
from harness.pipeline.desk import Binding, ItemDesk, StageContext
from harness.pipeline.preparation import PreparedTask
from harness.pipeline.settings import RunSettings
from harness.prompts.templates import Templates
from harness.testing import ScriptedModel

PROMPTS = Path(__file__).parents[2] / "prompts"
SAY = {"say.candidate": "say {{ word }}"}


class Word(Item, frozen=True, kw_only=True):
    word: str = ""


def word(spelt: str) -> Word:
    """The item of a word, which belongs to the user that it begins with."""
    return Word(id=spelt, user=spelt[0], word=spelt)


def words(*spelt: str) -> Callable[..., Iterable[Word]]:
    """The items of a stage: these words."""
    return lambda upstreams, data, options: map(word, spelt)


async def say(item: Word, desk: Any) -> Any:
    """What the candidate answers to `SAY`, or why it did not."""
    answer = await desk.ask("candidate", "say", {"word": item.word}, read=TextReader())
    return answer.value if isinstance(answer, Parsed) else answer


def say_stage(
    items: Any, work: Any = say, name: str = "say", roles: Any = ("candidate",), **fields: Any
) -> Stage:
    """A stage of words, which may ask `SAY`."""
    given = {"value": str, "prompts": ("say",), **fields}
    return Stage(name, item=Word, items=items, work=work, roles=roles, **given)


def outcomes(records: Iterable[Any]) -> dict[str, Any]:
    """The outcomes of records by item."""
    return {record.id: record.outcome for record in records}


def make_stage(name: str, item: Any = Item, value: Any = str, **fields: Any) -> Stage:
    """A stage that has neither items nor work."""
    return Stage(name, item=item, value=value, **{"items": None, "work": None, **fields})


def make_benchmark(*stages: Stage, **fields: Any) -> Benchmark:
    """The benchmark `toy` of these stages, which neither loads nor scores."""
    usual: dict[str, Any] = {
        "name": "toy", "version": 1, "load": None, "score": None, "metrics": {},
    }  # fmt: skip
    return Benchmark(stages=stages, **{**usual, **fields})


def make_contexts(
    prompts: Path, task: Task, benchmark: Benchmark, bindings: Mapping[str, Any], **fields: Any
) -> list[StageContext]:
    """The contexts of a benchmark's stages, with the prompts in a folder."""
    usual: dict[str, Any] = {"options": NoOptions(), "run_id": "run", "repeat": 1, "thinking": ()}
    given = {name: fields.pop(name, value) for name, value in usual.items()}
    run_id, thinking = given.pop("run_id"), given.pop("thinking")
    prepared = PreparedTask(
        task=task, benchmark=benchmark, stages=benchmark.stages, bindings=bindings,
        templates=Templates([prompts]),
        settings=RunSettings(**{"tasks": (), "model": "", "seed": 0, **fields}), **given,
    )  # fmt: skip
    return [*prepared.contexts(run_id, thinking)]


@dataclass(frozen=True)
class Worked:
    """What a stage's work came to, and what it asked for that."""

    outcome: Any
    calls: tuple[CallRecord, ...]
    requests: tuple[Request, ...]

    @property
    def repeats(self) -> list[int]:
        return [call.repeat for call in self.calls]

    @property
    def asked(self) -> list[str]:
        """The prompts in the order of asking, with the number of a repeated question."""
        return [f"{one.prompt}#{one.repeat}" if one.repeat else one.prompt for one in self.calls]

    def shown(self, prompt: str) -> list[str]:
        """What each question with this prompt showed."""
        texts = [one.messages[-1].content for one in self.requests if one.topic.prompt == prompt]
        return [text for text in texts if text]


async def work_at_desk(
    stage: Stage, item: Any, answers: Any, *, benchmark: str, options: Any, judge: Any = None,
    seed: int = 0,
) -> Worked:  # fmt: skip
    """A stage's work on an item with a desk and the prompts of a benchmark.

    `answers` are given in turn, and all of them, or made by a function of the request.
    """
    left = None if callable(answers) else list(answers)
    model = ScriptedModel(answers if left is None else lambda request: left.pop(0))
    bindings = {role: Binding(role=role, label=role, model=model) for role in stage.roles}
    bindings |= {
        role: Binding(role=role, label=role, model=None, judge=judge) for role in stage.judges
    }
    [context] = make_contexts(
        PROMPTS, make_task(benchmark=benchmark),
        make_benchmark(stage, name=benchmark, options=type(options)), bindings,
        options=options, seed=seed,
    )  # fmt: skip
    client = Client(store=None, run_id="run")
    desk = ItemDesk(item=item, context=context, client=client, memo=lambda name, asker: None)
    outcome = await stage.work(item, desk)
    assert not left, f"answers that nobody asked for: {left}"
    return Worked(outcome, tuple(desk.calls), tuple(model.requests))
