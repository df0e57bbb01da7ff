"""Benchmarks and stages of which a test gives what it is about."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.contracts.benchmark import Benchmark, NoOptions
from harness.contracts.outcomes import Parsed
from harness.contracts.stage import Item, Stage
from harness.contracts.task import Task
from harness.parsing import TextReader
from harness.pipeline.settings import RunSettings
from harness.pipeline.stage_context import StageContext, stage_context
from harness.prompts.templates import Templates

SAY = {"say.candidate": "say {{ word }}"}


class Word(Item, frozen=True, kw_only=True):
    word: str


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
    given: dict[str, Any] = {"options": NoOptions(), "run_id": "run", "repeat": 1, "thinking": ()}
    given = {name: fields.pop(name, usual) for name, usual in given.items()}
    settings = RunSettings(**{"tasks": (), "model": "", "seed": 0, **fields})
    return [
        stage_context(
            stage, task=task, benchmark=benchmark, bindings=bindings,
            templates=Templates([prompts]), settings=settings, **given,
        )
        for stage in benchmark.stages
    ]  # fmt: skip
