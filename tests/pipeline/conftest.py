"""Real stages, journals, store and engines around models that are scripted in the test."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from builders.runs import make_task
from builders.stages import SAY, make_benchmark, make_contexts

from harness.calls.budget import Budget, Meter
from harness.calls.client import Client
from harness.calls.engines import EngineGate
from harness.calls.store import Store
from harness.contracts.benchmark import NoOptions
from harness.contracts.identity import Identity
from harness.contracts.model import Model, Reply, Request
from harness.contracts.records import JournalLine
from harness.pipeline import preparation
from harness.pipeline.desk import Binding
from harness.pipeline.executors.execute import Executor
from harness.pipeline.executors.lanes import Lanes
from harness.pipeline.memos import CopiedMemory, Memory
from harness.pipeline.plan import Plan, stage_runs
from harness.runs.journal import JournalRecords

ANY_NUMBER = dict.fromkeys(("calls", "parsing", "judging", "errors"), 1.0)


@pytest.fixture(scope="module", autouse=True)
def one_catalogue() -> Iterator[None]:
    """The task files of the installed plugins are read once, as each command would read them."""
    read, found = preparation.Catalogue, {}

    def catalogue(plugins, *, include_path=()):
        if include_path:
            return read(plugins, include_path=include_path)
        return found.setdefault(id(plugins), (plugins, read(plugins)))[1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "Catalogue", catalogue)
        yield


@dataclass(eq=False)
class Scripted(Model):
    """A model that answers by a function, and notes when it is opened, asked and closed."""

    name: str
    answer: Callable[[Request], str] = lambda request: "ok"
    occupies: str | None = None
    concurrency: int = 4
    finish: str = "stop"
    events: list[str] = field(default_factory=list)
    asked: list[Request] = field(default_factory=list)

    @property
    def identity(self) -> Identity:
        return Identity(kind="scripted", name=self.name)

    async def open(self) -> None:
        self.events.append(f"open {self.name}")

    async def close(self) -> None:
        self.events.append(f"close {self.name}")

    async def ask(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(text=self.answer(request), finish=self.finish)


@dataclass
class House:
    """Runs the stages of a benchmark in a folder; again, and the same command goes on.

    The candidate may be asked to say a word, unless other prompts are given.
    """

    folder: Path
    prompts: dict[str, str] = field(default_factory=lambda: SAY)
    sampling: dict[str, Any] = field(default_factory=dict)
    options: Any = field(default_factory=NoOptions)
    seed: int = 0
    progress: dict[str, Any] = field(default_factory=dict)
    halted: list[Any] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    executor: Executor | None = None

    def contexts(self, stages, models, judges=None):
        for name, text in self.prompts.items():
            file = self.folder / "prompts" / "toy" / f"{name}.j2"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        task = make_task(roles=self.sampling)
        benchmark = make_benchmark(*stages, options=type(self.options))
        bindings = {
            role: model
            if isinstance(model, Binding)
            else Binding(role=role, label=role, model=model, judge=(judges or {}).get(role))
            for role, model in models.items()
        }
        contexts = make_contexts(
            self.folder / "prompts", task, benchmark, bindings, options=self.options,
            seed=self.seed,
        )  # fmt: skip
        return benchmark, task, contexts

    def journal(self, number: int, stage: str) -> Path:
        return self.folder / f"{number}-{stage}.jsonl"

    async def run(
        self, stages, models, *, judges=None, data=None, store=True,
        limits=ANY_NUMBER, retry_failures=False, ask_unanswered=False,
    ):  # fmt: skip
        benchmark, task, contexts = self.contexts(stages, models, judges)

        @dataclass
        class Prepared:
            benchmark: Any
            task: Any
            data: Any

        runs = stage_runs(Prepared(benchmark, task, data), contexts, self.journal)
        room = EngineGate(announce=self.told.append)
        kept = Store.open(self.folder / "calls.sqlite", warn=self.told.append) if store else None
        client = Client(store=kept, run_id="run", engines=room, meter=Meter(Budget()))
        self.ended = []
        self.executor = executor = Executor(
            plan=Plan(runs=runs, resource=room.resource),
            make_workers=partial(
                Lanes, client=client, memo=Memory(kept) if kept else CopiedMemory()
            ),
            limits=limits,
            retry_failures=retry_failures,
            ask_unanswered=ask_unanswered,
            on_stage_end=lambda run: self.ended.append(run.context.stage.name),
        )
        try:
            await executor.run()
        finally:
            await room.close()
            if kept is not None:
                kept.close()
            self.halted = executor.halted
            self.progress = {run.context.stage.name: run.progress for run in runs}
        return {context.stage.name: self.lines(context) for context in contexts}

    def lines(self, context):
        """The whole lines of a stage's journal, with the calls that stages do not see."""
        stage = context.stage
        line = JournalLine[stage.item, stage.value]
        return JournalRecords(self.journal(context.number, stage.name), context.key, line)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted
