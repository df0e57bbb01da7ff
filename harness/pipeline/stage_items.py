"""The stages of a prepared task for the plan: items are made from data and journals."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import PluginError
from harness.contracts.benchmark import Benchmark
from harness.contracts.records import record_type
from harness.contracts.stage import Item, Stage
from harness.pipeline.plan import StageRun
from harness.pipeline.preparation import PreparedTask
from harness.pipeline.progress import StageProgress
from harness.pipeline.stage_context import StageContext
from harness.runs.journal import JournalRecords

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
