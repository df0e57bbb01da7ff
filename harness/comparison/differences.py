"""Differences of runs over the units that both have scored: intervals, tests, ranks, slices."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate, pairwise
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from harness.base.errors import HarnessError
from harness.base.hashing import stable_int
from harness.comparison.document import (
    SAME,
    ChangedUnit,
    ChangedUnits,
    ComparedSlice,
    Difference,
    MeanDifference,
)
from harness.contracts.records import Score
from harness.runs.journal import Head, scan
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.means import MeanOverTasks
from harness.scoring.summary import MetricResult
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.contracts.benchmark import Metric
    from harness.contracts.task import IntervalSpec
    from harness.scoring.stats import Interval, NoInterval, Part, PValue, Undefined


Units = Mapping[str, tuple[str, float]]
"""By the id of a unit its user and its value."""


def differences_of(
    reference: FinishedTask,
    name: str,
    metric: Metric,
    values: Mapping[str, Mapping[str, tuple[str, float]]],
    against: str | None,
) -> Iterator[Difference]:
    """Each run minus the run `against`, or without it minus each run after it.

    `values` are by run the units that count, with user and number; runs without a common unit have
    no difference.
    """
    chosen = list(itertools.combinations(values, 2))
    if against is not None:
        chosen = [(run, against) for run in values if run != against and against in values]
    for first, second in chosen:
        pairs = [
            (user, value, values[second][unit][1])
            for unit, (user, value) in values[first].items()
            if unit in values[second]
        ]
        if pairs:
            yield _difference(reference, name, metric, (first, second), pairs)


def _difference(
    reference: FinishedTask,
    name: str,
    metric: Metric,
    runs: tuple[str, str],
    pairs: Sequence[tuple[str, float, float]],
) -> Difference:
    import numpy as np

    from harness.scoring.stats import Undefined, paired_interval, paired_p, statistic_of

    users, ours, theirs = zip(*pairs, strict=True)
    first, second = np.array(ours), np.array(theirs)
    clusters = np.array([stable_int(user) for user in users], dtype=np.uint64)
    interval = reference.task.interval
    drawn = paired_interval(
        first,
        second,
        clusters,
        seed=stable_int("paired", reference.manifest.seed, reference.task.name, name),
        statistic=metric.statistic,
        **msgspec.structs.asdict(interval),
    )
    test: PValue | Undefined = Undefined("it is measured without any model")
    if not metric.baseline:
        test = paired_p(
            first,
            second,
            clusters,
            seed=stable_int("exchanged", reference.manifest.seed, reference.task.name, name),
            statistic=metric.statistic,
        )
    value = statistic_of(first, metric.statistic) - statistic_of(second, metric.statistic)
    return difference_from(
        name, runs, interval, drawn, test, n=len(pairs), users=len(set(users)),
        value=value if math.isfinite(value) else None,
    )  # fmt: skip


def difference_from(
    metric: str,
    runs: tuple[str, str],
    how: IntervalSpec,
    drawn: Interval | NoInterval,
    test: PValue | Undefined,
    *,
    value: float | None,
    n: int,
    users: int,
) -> Difference:
    """A difference with what was drawn and what was tested, or why there is neither."""
    from harness.scoring.stats import Interval, PValue

    return Difference(
        metric=metric,
        first=runs[0],
        second=runs[1],
        value=value,
        n=n,
        users=users,
        interval=(drawn.low, drawn.high) if isinstance(drawn, Interval) else None,
        confidence=how.confidence,
        no_interval=None if isinstance(drawn, Interval) else drawn.reason,
        interval_method=how.method,
        p=test.value if isinstance(test, PValue) else None,
        exact=isinstance(test, PValue) and test.exact,
        no_p=None if isinstance(test, PValue) else test.reason,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CommonUnits(FinishedTask):
    """A compared task of a run, of which by metric the units count that all runs share."""

    common: Mapping[str, Units]

    def units(self, metric: str) -> Units:
        """By the id of each common unit of the metric its user and its number."""
        return self.common[metric]


def difference_of_mean(
    mean: MeanOverTasks,
    runs: tuple[str, str],
    first: Mapping[str, CommonUnits],
    second: Mapping[str, CommonUnits],
) -> MeanDifference:
    """The difference of two runs in a mean, by the units of each one's tasks."""
    import numpy as np

    from harness.scoring.stats import NoInterval, Undefined, interval_together, statistic_of

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
    if parts[0]:
        ours, theirs = (
            math.fsum(part.weight * statistic_of(part.values, part.statistic) for part in side)
            for side in parts
        )
        taken = [dataclasses.replace(part, weight=-part.weight) for part in parts[1]]
        drawn = interval_together(
            [*parts[0], *taken],
            seed=stable_int("paired together", seed, mean.name, metric),
            **msgspec.structs.asdict(how),
        )
        test = _p_value(*parts, seed=stable_int("exchanged together", seed, mean.name, metric))
        difference = difference_from(
            metric, runs, how, drawn, test, value=ours - theirs,
            n=sum(len(part.values) for part in parts[0]),
            users=len(np.unique(np.concatenate([part.clusters for part in parts[0]]))),
        )  # fmt: skip
    else:
        why = "a repeat has a value in one of the runs alone"
        difference = difference_from(
            metric, runs, how, NoInterval(why), Undefined(why), value=None, n=0, users=0
        )
    spread = {run: stdev(one.values()) for run, one in values.items() if len(one) > 1}
    return MeanDifference(
        name=mean.name,
        over=mean.over,
        tasks=mean.tasks,
        higher_is_better=mean.higher_is_better,
        difference=difference,
        deviations=(spread if mean.over == "repeats" else {}) or msgspec.UNSET,
    )


def _values(tasks: Mapping[str, CommonUnits], metric: str) -> dict[str, float]:
    found = {name: task.summary.metrics.get(metric) for name, task in tasks.items()}
    return {name: one.value for name, one in found.items() if one and one.value is not None}


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


FoundT = TypeVar("FoundT", MetricResult, Difference)


LEAST_USERS = 20


FEW = f"fewer than {LEAST_USERS} users"
"""The reason why a small part has no interval."""


def units_of_slices(
    scores: Mapping[str, Sequence[Score[Any]]], name: str
) -> dict[str, frozenset[str]]:
    """By value of a slice the units that every run with the unit puts there, in natural order."""
    values: dict[str, set[str | None]] = {}
    for score in (score for of_run in scores.values() for score in of_run):
        values.setdefault(score.id, set()).add((score.slices or {}).get(name))
    units: dict[str, set[str]] = {}
    for unit, found in values.items():
        (value, *others) = found
        if value is not None and not others:
            units.setdefault(value, set()).add(unit)
    return {value: frozenset(units[value]) for value in sorted(units, key=natural)}


def natural(value: str) -> list[str | int]:
    """A key that sorts 6-20 before 21-100, and texts by the alphabet."""
    parts = re.split(r"([0-9]+)", value)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


def sliced(
    name: str,
    value: str,
    common: Mapping[str, Mapping[str, MetricResult]],
    differences: Iterable[Difference],
) -> ComparedSlice:
    """The part of a value with a reason in place of each interval over too few users."""

    def bare(result: FoundT) -> FoundT:
        if result.users >= LEAST_USERS:
            return result
        return msgspec.structs.replace(result, interval=None, no_interval=FEW)

    return ComparedSlice(
        slice=name,
        value=value,
        common={
            run: {metric: bare(one) for metric, one in results.items()}
            for run, results in common.items()
        },
        differences=tuple(map(bare, differences)),
    )


MOST_KEPT = 10
"""The largest changes of two runs that a comparison holds."""


def changed_units(
    differences: Iterable[Difference],
    tasks: Iterable[FinishedTask],
    units: Mapping[str, Mapping[str, Mapping[str, tuple[str, float]]]],
    metrics: Mapping[str, Metric],
) -> Iterator[ChangedUnits]:
    """The changes behind each difference, of the units that both of its runs have.

    `units` are by run, metric and id of all units that count: user and value.
    """
    known = {task.run: task for task in tasks}

    @cache
    def ids(run: str) -> set[str]:
        """The ids of items and users with records; none where a journal cannot be read."""
        found, task = set[str](), known[run]
        for stage in task.entry.stages:
            with suppress(HarnessError):
                for _, _, head in scan(task.path / task.entry.folder / stage.file, Head):
                    found |= {head.id, head.user}
        return found

    def command(run: str, unit: str, user: str) -> str:
        """The command that shows a unit: its item if it is one, else everything of its user."""
        words = ["harness", "show", str(known[run].path), "--task", known[run].task.name]
        named = [name for name in (unit, user) if name in ids(run)][:1]
        return shlex.join([*words, *(word for name in named for word in ("--sample", name))])

    for each in differences:
        ours, theirs = (units[run][each.metric] for run in (each.first, each.second))
        pairs = [
            (unit, user, value, theirs[unit][1])
            for unit, (user, value) in ours.items()
            if unit in theirs
        ]
        changed = [one for one in pairs if abs(one[2] - one[3]) > SAME]
        changed.sort(key=lambda one: (-abs(one[2] - one[3]), one[0]))
        higher = sum(value > before for _, _, value, before in changed)
        better = higher if metrics[each.metric].higher_is_better else len(changed) - higher
        yield ChangedUnits(
            metric=each.metric,
            first=each.first,
            second=each.second,
            better=better,
            worse=len(changed) - better,
            same=len(pairs) - len(changed),
            largest=tuple(
                ChangedUnit(
                    unit=unit,
                    user=user,
                    first=value,
                    second=before,
                    commands=(command(each.first, unit, user), command(each.second, unit, user)),
                )
                for unit, user, value, before in changed[:MOST_KEPT]
            ),
        )
