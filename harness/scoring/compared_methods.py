"""Comparisons of several tasks of one run on the same people, such as two methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.base.errors import UsageError
from harness.scoring.comparable import named_differences, settings_of
from harness.scoring.comparison import compare, main_of
from harness.scoring.comparison_document import Compared
from harness.scoring.finished_task import FinishedTask
from harness.scoring.score_run import chosen_metrics

PEOPLE = ("benchmark", "data", "limit", "seed")
"""The settings, besides the chosen people, that decide which people a task asks about."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Method(FinishedTask):
    """A task that takes the place of a run."""

    @property
    def run(self) -> str:
        return self.task.name


def compare_methods(
    tasks: Sequence[FinishedTask],
    *,
    metrics: Sequence[str] = (),
    everything: bool = False,
    force: bool = False,
    against: str | None = None,
    by: str | None = None,
) -> Compared:
    """The comparison of tasks of one run; what else differs than the people is compared and named.

    Without `metrics` the main ones are compared, with `everything` all. `against` is a task.
    """
    benchmarks = {one.task.name: one.task.benchmark for one in tasks}
    if len({*benchmarks.values()}) > 1:
        raise UsageError(
            "the tasks are not of one benchmark",
            where="--tasks",
            found=", ".join(f"{name} of {benchmark}" for name, benchmark in benchmarks.items()),
            expected="tasks of one benchmark, such as two methods",
        )
    known = chosen_metrics(tasks[0].task, tasks[0].benchmark)
    shared = [
        name
        for name in known
        if all(name in chosen_metrics(one.task, one.benchmark) for one in tasks)
    ]
    named = [one.task.name for one in tasks]
    if unknown := [one for one in metrics if one not in shared]:
        raise UsageError(
            f"the tasks do not share a metric {unknown[0]!r}",
            where="--metric",
            found=", ".join(named),
            expected=", ".join(shared),
        )
    main = [name for name in main_of(tasks[0], known) if name in shared]
    methods = [_Method(**{**vars(one), "label": one.task.name}) for one in tasks]
    found = compare(
        methods,
        only=metrics or (shared if everything else main),
        all_pairs=everything,
        against=against,
        force=force,
        by=by,
        settings=_people,
    )
    first, *others = methods
    doubts = [
        f"{one.task.name} against {first.task.name}: {'; '.join(ways)}"
        for one in others
        if (ways := named_differences(settings_of(one), settings_of(first)))
    ]
    comparison = msgspec.structs.replace(
        found.comparison,
        task=tasks[0].task.benchmark,
        within=tasks[0].run,
        chosen="tasks of one run on the same people",
        doubts=(*found.comparison.doubts, *doubts),
    )
    return found._replace(comparison=comparison)


def _people(task: FinishedTask) -> Mapping[str, Any]:
    """What the tasks must agree in: the benchmark, the data and the people."""
    every = settings_of(task)
    return {name: each for name, each in every.items() if name in PEOPLE or "chosen " in name}
