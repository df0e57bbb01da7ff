"""The stages of a run and their items, in an order that opens each engine as seldom as possible."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from harness.base import clock
from harness.base.errors import PluginError
from harness.calls.engines import SharedEngines, overlap
from harness.contracts.benchmark import Benchmark
from harness.contracts.model import Model
from harness.contracts.records import record_type
from harness.contracts.stage import CANDIDATE, Item, Stage
from harness.pipeline.desk import StageContext
from harness.pipeline.preparation import PreparedTask
from harness.pipeline.progress import StageProgress
from harness.runs.journal import JournalRecords


class State(Enum):
    """The state of a stage. A stage that is put off waits for answers after this session."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    PUT_OFF = "put off"
    HALTED = "halted"


@dataclass(eq=False, kw_only=True)
class StageRun:
    """One stage of one task in a run. `items` makes its items and is called once."""

    context: StageContext
    journal: Path
    items: Callable[[], Iterator[Item]]
    progress: StageProgress
    state: State = State.WAITING

    @property
    def task(self) -> str:
        """The name of the stage's task."""
        return self.context.task.name


@dataclass(kw_only=True)
class Plan:
    """All stages of a run in the order of tasks and stages, and which of them may run now.

    `resource` names what a model occupies while its engine runs. A resource is held by the models
    of the stages that run on it; stages that need other models on it wait until it is free.
    """

    runs: Sequence[StageRun]
    resource: Callable[[Model], str | None]
    _held: dict[str, frozenset[Model]] = field(default_factory=dict)

    def admit(self) -> list[StageRun]:
        """The stages to start now, marked as running; stages that open engines serve come first."""
        # A resource stays held while a running or ready stage needs it for the same models.
        wanted = self._running() + self._ready()
        needed = {need for run in wanted for need in self._needs(run).items()}
        self._held = dict(one for one in self._held.items() if one in needed)
        held = self._held.items()
        admitted = [run for run in self._ready() if self._needs(run).items() <= held]
        for run in admitted:
            run.state = State.RUNNING
        for run in self._ready():
            needs = self._needs(run)
            if all(self._held.get(name, models) == models for name, models in needs.items()):
                self._held.update(needs)
                run.state = State.RUNNING
                admitted.append(run)
        if not admitted and self._held and not self._running():
            # Two stages each hold what the other needs: release everything and choose again.
            self._held.clear()
            return self.admit()
        return sorted(admitted, key=self.runs.index)

    def unfinished(self) -> list[StageRun]:
        """The stages that are waiting or running."""
        return [run for run in self.runs if run.state in (State.WAITING, State.RUNNING)]

    def halt(self, task: str) -> None:
        """Give up the stages of a task that have not started."""
        for run in self.runs:
            if run.task == task and run.state is State.WAITING:
                _leave(run, State.HALTED)

    def put_off(self, late: StageRun) -> None:
        """Leave a stage, and all stages after it, to a later session."""
        late.state = State.PUT_OFF
        behind = {late.context.stage.name}
        for run in self.runs:
            if run.task == late.task and behind.intersection(run.context.stage.after):
                behind.add(run.context.stage.name)
                _leave(run, State.PUT_OFF)

    def in_rounds(self, run: StageRun) -> bool:
        """Whether the stage needs several engines on one resource and so runs in rounds."""
        return any(len(models) > 1 for models in self._needs(run).values())

    def _running(self) -> list[StageRun]:
        return [run for run in self.runs if run.state is State.RUNNING]

    def _ready(self) -> list[StageRun]:
        not_done = {
            (run.task, run.context.stage.name) for run in self.runs if run.state is not State.DONE
        }
        return [
            run
            for run in self.runs
            if run.state is State.WAITING
            and not any((run.task, name) in not_done for name in run.context.stage.after)
        ]

    def _needs(self, run: StageRun) -> dict[str, frozenset[Model]]:
        needs: dict[str, set[Model]] = {}
        for model in run.context.models:
            resource = self.resource(model)
            if resource is not None:
                needs.setdefault(resource, set()).add(model)
        return {resource: frozenset(models) for resource, models in needs.items()}


def for_later(
    contexts: Iterable[StageContext], engines: SharedEngines | None, *, one_at_a_time: bool = False
) -> set[tuple[str, str]]:
    """The stages, by task and name, that a run leaves to its next session for its shared engines.

    Their engines cannot run next to the candidate's, or they come after such a stage. `contexts`
    has the stages of each task in order.
    """
    found: set[tuple[str, str]] = set()
    if engines is None or not engines.judge_later:
        return found
    for context in contexts:
        candidates = context.bindings[CANDIDATE].models if CANDIDATE in context.bindings else ()
        others = [
            model
            for model in context.models
            if model.occupies is not None and model not in candidates
        ]
        gives_way = any(
            one_at_a_time or overlap(model, candidate)
            for model in others
            for candidate in candidates
            if candidate.occupies is not None
        )
        task = context.task.name
        if gives_way or any((task, name) in found for name in context.stage.after):
            found.add((task, context.stage.name))
    return found


def _leave(run: StageRun, state: State) -> None:
    run.state = state
    run.progress.ended = clock.seconds()


Journals = Callable[[int, str], Path]
"""Gives the journal of a stage by its number and name."""


def stage_runs(
    prepared: PreparedTask, contexts: Sequence[StageContext], journals: Journals
) -> list[StageRun]:
    """The stage runs of a task, in the benchmark's order."""
    check_order(prepared.benchmark)

    def items(context: StageContext) -> Iterator[Item]:
        stage = context.stage
        upstream = [other for other in contexts if other.stage.name in stage.after]
        records = {other.stage.name: records_of(other, journals) for other in upstream}
        return iter(stage.items(Upstreams(stage, records), prepared.data, context.options))

    return [
        StageRun(
            context=context,
            journal=journals(context.number, context.stage.name),
            items=functools.partial(items, context),
            progress=StageProgress(task=prepared.task.name, stage=context.stage.name),
        )
        for context in contexts
    ]


def records_of(context: StageContext, journals: Journals) -> JournalRecords[Any, Any]:
    """The current records of a stage."""
    stage = context.stage
    kind = record_type(stage.item, stage.value)
    return JournalRecords(journals(context.number, stage.name), context.key, kind)


def check_order(benchmark: Benchmark) -> None:
    """Raise PluginError where a stage names a later one in `after`, or two share a name."""
    seen: set[str] = set()
    for stage in benchmark.stages:
        for name in stage.after:
            if name not in seen:
                raise PluginError(
                    f"stage {stage.name!r} of benchmark {benchmark.name!r} has a stage in `after` "
                    "that is not listed before it",
                    found=name,
                    expected=", ".join(sorted(seen)) or "a first stage without `after`",
                )
        if stage.name in seen:
            raise PluginError(
                f"benchmark {benchmark.name!r} has two stages named {stage.name!r}",
                expected="a different name for each stage",
            )
        seen.add(stage.name)


class Upstreams(dict[str, JournalRecords[Any, Any]]):
    """The records of the stages in `after` that the task has; PluginError for any other stage."""

    def __init__(self, stage: Stage, records: Mapping[str, JournalRecords[Any, Any]]) -> None:
        super().__init__(records)
        self._stage = stage

    def __missing__(self, name: str) -> JournalRecords[Any, Any]:
        after = self._stage.after
        raise PluginError(
            f"stage {self._stage.name!r} reads the records of a stage that "
            + ("this task does not have" if name in after else "is not in its `after`"),
            found=name,
            expected=", ".join(self) or "no stage",
            hint="look whether it is there first, since its `when` may leave it out"
            if name in after
            else f"write after={(*after, name)!r} in the Stage, if such a stage comes before it",
        )
