"""Differences of runs in means over tasks or repeats, and differences without lost units."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from harness.base.hashing import stable_int
from harness.scoring.comparison_document import (
    CommonUnits,
    Compared,
    ComparisonDocument,
    MeanDifference,
)
from harness.scoring.group_means import MeanOverTasks, means_of
from harness.scoring.grouping import grouped
from harness.scoring.paired_differences import (
    Difference,
    differences_of,
    holm_adjusted,
    is_established,
)
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.scoring.stats import Part


def common_means(compared: Iterable[Compared]) -> dict[str, tuple[MeanOverTasks, ...]]:
    """By run the means of its main metrics over groups and repeats, on common units."""
    return {
        run: means_of(
            next(iter(tasks.values())).manifest,
            [task.summary for task in tasks.values()],
            tasks.__getitem__,
        )
        for run, tasks in _by_run(compared).items()
    }


def differences_of_means(
    compared: Sequence[Compared], means: Mapping[str, Sequence[MeanOverTasks]]
) -> Iterator[MeanDifference]:
    """The difference of each mean that both runs have of the same tasks, for all compared pairs.

    Two runs that tasks compare in either order are one pair, in the order of the first task.
    """
    by_run = _by_run(compared)
    every = (each for one in compared for each in one.comparison.differences)
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for each in every:
        pairs.setdefault(frozenset((each.first, each.second)), (each.first, each.second))
    for first, second in pairs.values():
        theirs = {(mean.over, mean.name, mean.metric): mean for mean in means.get(second, ())}
        for ours in means.get(first, ()):
            other = theirs.get((ours.over, ours.name, ours.metric))
            if other is None or {*ours.tasks} != {*other.tasks}:
                continue
            if ours.value is not None and other.value is not None:
                sides = (
                    {name: by_run[run][name] for name in ours.tasks} for run in (first, second)
                )
                yield difference_of_mean(ours, (first, second), *sides)


def _by_run(compared: Iterable[Compared]) -> dict[str, dict[str, CommonUnits]]:
    found: dict[str, dict[str, CommonUnits]] = {}
    for each in compared:
        for task in each.tasks:
            found.setdefault(task.run, {})[task.task.name] = task
    return found


def difference_of_mean(
    mean: MeanOverTasks,
    runs: tuple[str, str],
    first: Mapping[str, CommonUnits],
    second: Mapping[str, CommonUnits],
) -> MeanDifference:
    """The difference of two runs in a mean, by the units of each one's tasks."""
    import numpy as np

    from harness.scoring.stats import Interval, PValue, interval_together, statistic_of

    metric = mean.metric
    values = {run: _values(tasks, metric) for run, tasks in zip(runs, (first, second), strict=True)}
    parts: tuple[list[Part], list[Part]] = ([], [])
    if values[runs[0]].keys() == values[runs[1]].keys():
        # Each task counts the same, a repeated one as the mean of its repeats.
        repeats = grouped((task_and_repeat(name)[0], name) for name in values[runs[0]])
        weights = {name: 1 / (len(repeats) * len(own)) for own in repeats.values() for name in own}
        parts = (_parts(first, metric, weights), _parts(second, metric, weights))
    reference = next(iter(first.values()))
    how = reference.task.interval
    seed = reference.manifest.seed
    found: dict[str, Any] = {"value": None, "interval": None, "users": 0, "n": 0}
    why = "a repeat has a value in one of the runs alone"
    if parts[0]:
        ours, theirs = (
            math.fsum(part.weight * statistic_of(part.values, part.statistic) for part in side)
            for side in parts
        )
        taken = [dataclasses.replace(part, weight=-part.weight) for part in parts[1]]
        drawn = interval_together(
            [*parts[0], *taken],
            seed=stable_int("paired together", seed, mean.name, metric),
            draws=how.draws,
            confidence=how.confidence,
            method=how.method,
        )
        test = _p_value(*parts, seed=stable_int("exchanged together", seed, mean.name, metric))
        found = {
            "value": ours - theirs,
            "n": sum(len(part.values) for part in parts[0]),
            "users": len(np.unique(np.concatenate([part.clusters for part in parts[0]]))),
            "interval": (drawn.low, drawn.high) if isinstance(drawn, Interval) else None,
            "no_interval": None if isinstance(drawn, Interval) else drawn.reason,
            "p": test.value if isinstance(test, PValue) else None,
            "exact": isinstance(test, PValue) and test.exact,
            "no_p": None if isinstance(test, PValue) else test.reason,
        }
    spread = {run: stdev(one.values()) for run, one in values.items() if len(one) > 1}
    return MeanDifference(
        name=mean.name,
        over=mean.over,
        tasks=mean.tasks,
        higher_is_better=mean.higher_is_better,
        difference=Difference(
            metric=metric,
            first=runs[0],
            second=runs[1],
            confidence=how.confidence,
            interval_method=how.method,
            **({"no_interval": why, "no_p": why} | found),
        ),
        deviations=(spread if mean.over == "repeats" else {}) or UNSET,
    )


def _values(tasks: Mapping[str, CommonUnits], metric: str) -> dict[str, float]:
    found = {name: task.summary.metrics.get(metric) for name, task in tasks.items()}
    return {
        name: result.value
        for name, result in found.items()
        if result is not None and result.value is not None
    }


def _parts(
    tasks: Mapping[str, CommonUnits], metric: str, weights: Mapping[str, float]
) -> list[Part]:
    from harness.scoring.stats import part_of

    parts = []
    for name, weight in weights.items():
        units = tasks[name].units(metric)
        pairs = [units[unit] for unit in sorted(units)]
        statistic = tasks[name].benchmark.metrics[metric].statistic
        parts.append(part_of(pairs, statistic=statistic, weight=weight))
    return parts


def _p_value(first: Sequence[Part], second: Sequence[Part], *, seed: int) -> Any:
    """The paired permutation test of a weighted sum: all units of a user change sides together."""
    import numpy as np

    from harness.scoring.stats import paired_p, statistic_of

    ends = [0, *accumulate(len(part.values) for part in first)]
    weighted = list(zip(first, pairwise(ends), strict=True))

    def together(column: Any) -> float:
        return fmean(
            len(first) * part.weight * statistic_of(column[start:end], part.statistic)
            for part, (start, end) in weighted
        )

    # The mean over all units, if each counts by its task's weight; much faster than a function.
    plain = all(part.statistic == "mean" for part in first)
    scale = np.concatenate([
        np.full(end - start, ends[-1] * part.weight / (end - start) if plain else 1.0)
        for part, (start, end) in weighted
    ])  # fmt: skip
    ours, theirs = (np.concatenate([part.values for part in side]) for side in (first, second))
    return paired_p(
        ours * scale,
        theirs * scale,
        np.concatenate([part.clusters for part in first]),
        seed=seed,
        statistic="mean" if plain else together,
    )


class WithoutLost(NamedTuple):
    """A difference on the units that neither run lost; None if that leaves a task without units.

    `lost` is by run how many units of the difference it lost. The difference `holds` if it has the
    same sign and is established in the place of the one on all units.
    """

    lost: dict[str, int]
    left: Difference | None
    holds: bool


def without_lost(
    each: Difference, name: str, compared: Sequence[Compared], document: ComparisonDocument
) -> WithoutLost | None:
    """A difference of a task, or of the mean `name`, without the lost units that count in it.

    None if no lost unit counts. A unit is lost if the metric has no value of it.
    """
    runs = (each.first, each.second)
    found = [one for one in document.means.get(each.first, ()) if one.name == name]
    mean = next((one for one in found if one.metric == each.metric), None)
    names = mean.tasks if mean else (name,)
    sides: list[dict[str, CommonUnits]] = [{}, {}]
    lost = dict.fromkeys(runs, 0)
    for one in compared:
        known = {task.run: task for task in one.tasks if each.metric in task.common}
        if one.comparison.task not in names or not known.keys() >= {*runs}:
            continue
        gone = {run: _lost(known[run], each.metric) for run in runs}
        either = set().union(*gone.values())
        for side, run in zip(sides, runs, strict=True):
            units = known[run].units(each.metric)
            kept = {unit: units[unit] for unit in units if unit not in either}
            side[one.comparison.task] = dataclasses.replace(known[run], common={each.metric: kept})
            lost[run] += len(gone[run])
    if not any(lost.values()):
        return None
    left = None
    if all(task.units(each.metric) for task in sides[0].values()):
        if mean:
            left = difference_of_mean(mean, runs, *sides).difference
        else:
            ours, theirs = (side[name] for side in sides)
            metric = ours.benchmark.metrics[each.metric]
            values = {task.run: task.units(each.metric) for task in (ours, theirs)}
            (left,) = differences_of(theirs, each.metric, metric, values, theirs.run)
    if left is None or left.value is None or each.value is None:
        return WithoutLost(lost, left, holds=False)
    others = [one for one in tested_differences(document) if one is not each]
    again = holm_adjusted([left, *others])[0]
    same = (left.value > 0) == (each.value > 0)
    return WithoutLost(lost, again, holds=same and is_established(again))


def _lost(task: CommonUnits, metric: str) -> set[str]:
    """The units that count in a metric although the task has no value of them."""
    column = task.benchmark.metrics[metric].of or metric
    counted = task.units(metric)
    return {one.id for one in task.scores() if column in one.missing and one.id in counted}


def tested_differences(document: ComparisonDocument) -> Iterator[Difference]:
    """All differences for whose tests p values are adjusted together."""
    every = [one.difference for one in document.mean_differences or ()]
    for one in document.comparisons:
        every += one.differences
        every += [each for part in one.slices or () for each in part.differences]
    return (each for each in every if each.p_holm is not None)
