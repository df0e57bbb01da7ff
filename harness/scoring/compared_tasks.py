"""Comparisons of all tasks that several runs have finished, or of several tasks of one run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from harness.base.errors import DataError, HarnessError, UsageError, did_you_mean, one_of
from harness.scoring.comparable import named_differences, settings_of
from harness.scoring.comparison import adjusted_together, best_runs, compare, main_of
from harness.scoring.comparison_document import Compared, ComparisonDocument
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.mean_differences import common_means, differences_of_means
from harness.scoring.score_run import chosen_metrics
from harness.tasks.repeats import task_and_repeat


class ComparedTasks(NamedTuple):
    """The comparisons, and errors for the tasks that are `skipped` or that `failed`."""

    compared: list[Compared]
    skipped: list[DataError]
    failed: list[HarnessError]

    def compares_repeat_of(self, name: str) -> bool:
        """Whether another repeat of the task is compared; only the first is compared by slice."""
        known = {task_and_repeat(each.comparison.task)[0] for each in self.compared}
        return task_and_repeat(name)[0] in known

    def document(self) -> ComparisonDocument:
        """The comparisons, and the means over their tasks, with p values adjusted for all tests."""
        one_run = any(each.comparison.within for each in self.compared)
        means = {} if one_run else common_means(self.compared)
        found = list(differences_of_means(self.compared, means))
        comparisons, differences = adjusted_together(
            [each.comparison for each in self.compared], found
        )
        return ComparisonDocument(
            comparisons=tuple(comparisons),
            means=means,
            mean_differences=tuple(differences) or UNSET,
        )


def compare_tasks(
    tasks: Iterable[FinishedTask],
    *,
    metrics: Sequence[str] = (),
    everything: bool = False,
    against: str | None = None,
    force: bool = False,
    oracle: Path | None = None,
    alone: bool = False,
    by: str | None = None,
    gated: Mapping[str, Sequence[str]] = {},
) -> ComparedTasks:
    """The comparison of each task; without `metrics` of its main ones.

    Without `against`, three or more runs are compared with the one that has the best value. With
    `everything`, all metrics and all pairs of runs are compared. `oracle` is the file of an
    oracle. With `alone`, a task of one run is compared with the file if it has an oracle. `by` is a
    slice of the data, by which the first repeat of a task is compared, `gated` are further metrics
    by task. Raises UsageError for a metric or slice that no task has.
    """
    by_name = grouped((task.task.name, task) for task in tasks)
    known = {
        name: chosen_metrics(of_runs[0].task, of_runs[0].benchmark)
        for name, of_runs in by_name.items()
    }
    every = dict.fromkeys(each for names in known.values() for each in names)
    for name in metrics if every else ():
        one_of(name, every, f"no task of these runs has a metric {name!r}", where="--metric")
    best: dict[str, dict[str, str]] = {}
    found = ComparedTasks([], [], [])
    for name, of_runs in by_name.items():
        asked = [metric for metric in metrics if metric in known[name]]
        further = [metric for metric in gated.get(name, ()) if metric in known[name]]
        why = ""
        if len(of_runs) < 2 and not (alone and of_runs[0].benchmark.oracle is not None):
            why = f"only {of_runs[0].label} has finished it"
        elif metrics and not [*asked, *further]:
            why = f"it has no metric {' or '.join(metrics)}"
        if why:
            found.skipped.append(DataError(f"task {name} is not compared: {why}"))
            continue
        try:
            main = (*asked,) if metrics else main_of(of_runs[0], known[name])
            base: str | Mapping[str, str] | None = against
            if against is None and len(of_runs) > 2 and not everything:
                # All repeats of a task are compared with the same runs, so that their mean is too.
                base = best.setdefault(task_and_repeat(name)[0], best_runs(of_runs, main))
            compared = compare(
                of_runs,
                file=oracle,
                force=force,
                only=() if everything and not metrics else tuple(dict.fromkeys((*main, *further))),
                all_pairs=everything,
                against=base,
                by=None if found.compares_repeat_of(name) else by,
            )
            found.compared.append(compared)
        except HarnessError as error:
            found.failed.append(error)
    if by is not None:
        check_slice(by, found.compared)
    return found


def check_slice(name: str, compared: Sequence[Compared]) -> None:
    """Raise UsageError if no task that was compared has such a slice."""
    if not compared or any(each.comparison.slices for each in compared):
        return
    scores = (score for each in compared for score in each.tasks[0].scores())
    known = {slice: None for score in scores for slice in score.slices or ()}
    raise UsageError(
        f"no task of these runs has a slice {name!r}",
        where="--by",
        expected=", ".join(sorted(known)) or "runs of a benchmark whose scores have slices",
        hint=did_you_mean(name, known),
    )


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
