"""Means of metrics over the tasks of a group or the repeats of a task, and their differences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Literal

import msgspec

from harness.base.errors import HarnessError
from harness.base.hashing import stable_int
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import FinishedTask, finished_task
from harness.scoring.grouping import grouped
from harness.scoring.summary import TaskSummary, main_metrics
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark
    from harness.contracts.task import IntervalSpec
    from harness.scoring.stats import Interval, NoInterval, Part


class MeanOverTasks(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of a metric over the tasks of the group `name`, or over the repeats of that task.

    Each task counts the same, a repeated one as the mean of its repeats. The interval is from a
    bootstrap that draws users together over all tasks. `tasks` are the finished tasks; a group has
    a mean only if every task has a value, a repeated task has that of the repeats with a value. If
    `value` or `interval` is None, `undefined` or `no_interval` is the reason.
    """

    name: str
    over: Literal["tasks", "repeats"]
    tasks: tuple[str, ...]
    metric: str
    higher_is_better: bool
    value: float | None
    interval: tuple[float, float] | None
    confidence: float
    undefined: str | None = None
    no_interval: str | None = None


def means_of(
    manifest: Manifest,
    summaries: Iterable[TaskSummary],
    finished: Callable[[str], FinishedTask],
) -> tuple[MeanOverTasks, ...]:
    """The means of a run: those of its groups, then those of its repeated tasks.

    A group has one for each main metric that its tasks share, none if the first of them differs or
    the group's file says that a mean means nothing.
    `finished` gives a finished task by name.
    """
    by_task = {summary.task: summary for summary in summaries}
    repeats = grouped((task_and_repeat(name)[0], name) for name in manifest.tasks)
    means: list[MeanOverTasks] = []
    for group in manifest.groups:
        members = tasks_of_group(group, manifest.groups)
        tasks = [repeats[name] for name in members if name in repeats]
        if len(tasks) > 1 and group not in manifest.without_mean:
            means += _means(group, "tasks", tasks, by_task, finished)
    for name, of_task in repeats.items():
        if len(of_task) > 1:
            means += _means(name, "repeats", [of_task], by_task, finished)
    return tuple(means)


def means_of_run(
    folder: RunFolder,
    manifest: Manifest,
    summaries: Iterable[TaskSummary],
    benchmark: Callable[[str], Benchmark],
) -> tuple[MeanOverTasks, ...]:
    """The means of a stored run, from its kept scores; `benchmark` finds benchmarks by name."""

    def finished(name: str) -> FinishedTask:
        owner = benchmark(manifest.tasks[name].task().benchmark)
        return finished_task(folder, manifest, name, owner, label=manifest.model)

    return means_of(manifest, summaries, finished)


def tasks_of_group(group: str, groups: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The names of a group's tasks, those of groups inside it included."""
    names: dict[str, None] = {}
    for member in groups[group]:
        within = tasks_of_group(member, groups) if member in groups else (member,)
        names.update(dict.fromkeys(within))
    return tuple(names)


def group_of(tasks: Collection[str], manifest: Manifest) -> str | None:
    """The first group of a run whose tasks in the run are these; None if there is no such group."""
    for group in manifest.groups:
        members = tasks_of_group(group, manifest.groups)
        if {name for name in manifest.tasks if task_and_repeat(name)[0] in members} == {*tasks}:
            return group
    return None


def interval_of_mean(
    parts: Sequence[Part], *, name: str, metric: str, seed: int, how: IntervalSpec
) -> Interval | NoInterval:
    """The interval of the mean of a metric over tasks; `name` and `seed` enter the draws."""
    from harness.scoring.stats import interval_together

    draws = stable_int("together", seed, name, metric)
    return interval_together(parts, seed=draws, **msgspec.structs.asdict(how))


def _means(
    name: str,
    over: Literal["tasks", "repeats"],
    tasks: Sequence[Sequence[str]],
    found: Mapping[str, TaskSummary],
    finished: Callable[[str], FinishedTask],
) -> Iterator[MeanOverTasks]:
    from harness.scoring.stats import Interval, part_of

    summaries = [found[each] for repeats in tasks for each in repeats if each in found]
    mains = [main_metrics(summary.main, summary.metrics) for summary in summaries]
    if len({main[:1] for main in mains}) != 1:
        return
    for metric in (name for name in mains[0] if all(name in main for main in mains)):
        results = {each.task: each.metrics[metric] for each in summaries}
        values_of = {name: result.value for name, result in results.items()}
        valued = [
            {name: value for name in repeats if (value := values_of.get(name)) is not None}
            for repeats in tasks
        ]
        first = results[summaries[0].task]
        mean = MeanOverTasks(
            name=name,
            over=over,
            tasks=tuple(results),
            metric=metric,
            higher_is_better=first.higher_is_better,
            value=None,
            interval=None,
            confidence=first.confidence,
        )
        without = sum(not values for values in valued)
        if without:
            why = f"{without} of {len(valued)} tasks have no value"
            yield msgspec.structs.replace(
                mean, undefined=why if over == "tasks" else "no repeat has a value"
            )
            continue
        value = fmean(fmean(values.values()) for values in valued)
        mean = msgspec.structs.replace(mean, value=value)
        weights = {task: 1 / (len(valued) * len(values)) for values in valued for task in values}
        try:
            parts = []
            for task, weight in weights.items():
                owner = finished(task)
                statistic = owner.benchmark.metrics[metric].statistic
                units = owner.units(metric).values()
                parts.append(part_of(units, statistic=statistic, weight=weight))
            how, seed = owner.task.interval, owner.manifest.seed
            drawn = interval_of_mean(parts, name=mean.name, metric=metric, seed=seed, how=how)
        except HarnessError as error:
            yield msgspec.structs.replace(mean, no_interval=str(error).splitlines()[0])
            continue
        if isinstance(drawn, Interval):
            ends = drawn.low, drawn.high
            yield msgspec.structs.replace(mean, interval=ends, confidence=how.confidence)
        else:
            yield msgspec.structs.replace(mean, no_interval=drawn.reason)
