"""Differences of runs over the units that both have scored: intervals, tests, ranks, slices."""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from harness.base.errors import HarnessError
from harness.base.hashing import stable_int
from harness.contracts.records import Score
from harness.runs.journal import Head, scan
from harness.scoring.finished_task import FinishedTask
from harness.scoring.summary import MetricResult

if TYPE_CHECKING:
    from harness.contracts.benchmark import Metric
    from harness.contracts.task import IntervalSpec
    from harness.scoring.stats import Interval, NoInterval, PValue, Undefined


Units = Mapping[str, tuple[str, float]]
"""By the id of a unit its user and its value."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The metric of the first run minus that of the second, over the units that both have scored.

    The interval is from a paired bootstrap: the same users are drawn for both runs. `p` is from
    the paired permutation test, `exact` if the test used all possible exchanges, and `p_holm` is
    adjusted for all tests of the comparison, None for a repeat where the mean over repeats is
    tested; without a `p`, `no_p` is the reason. `value` is None if the statistic of the common
    units is undefined for one of the runs.
    """

    metric: str
    first: str
    second: str
    value: float | None
    n: int
    users: int
    interval: tuple[float, float] | None
    confidence: float
    no_interval: str | None = None
    interval_method: Literal["percentile", "bca"] = "percentile"
    p: float | None = None
    p_holm: float | None = None
    exact: bool = False
    no_p: str | None = None


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
        draws=interval.draws,
        confidence=interval.confidence,
        method=interval.method,
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


POWER = 0.8
"""How often people show a difference as large as `least_seen`."""


def least_seen(se: float, n: int, *, confidence: float = 0.95) -> float:
    """The smallest difference that n people can show; `se` is the standard error of one.

    `least_seen(0.3, 200)` is 0.059.
    """
    z = NormalDist().inv_cdf
    return (z((1.0 + confidence) / 2.0) + z(POWER)) * se / math.sqrt(n)


def least_shown(difference: Difference) -> float | None:
    """The smallest difference that these people can show, by the width of their interval."""
    if difference.interval is None:
        return None
    low, high = difference.interval
    of_all = (high - low) / 2.0 / NormalDist().inv_cdf((1.0 + difference.confidence) / 2.0)
    se = of_all * math.sqrt(difference.users)
    return least_seen(se, difference.users, confidence=difference.confidence)


def is_established(difference: Difference) -> bool:
    """Whether a difference with adjusted p shows an order: 0 is outside its interval, p is small.

    A metric without p has its interval alone.
    """
    if difference.value is None or difference.interval is None:
        return False
    low, high = difference.interval
    p = difference.p_holm
    return not low <= 0.0 <= high and (p is None or p < 1.0 - difference.confidence)


def holm_adjusted(found: Sequence[Difference]) -> list[Difference]:
    """The differences with p values adjusted after Holm for all tests among them."""
    from harness.scoring.stats import holm

    values = iter(holm([each.p for each in found if each.p is not None]))
    return [
        each if each.p is None else msgspec.structs.replace(each, p_holm=next(values))
        for each in found
    ]


class RankInterval(msgspec.Struct, frozen=True, kw_only=True):
    """The ranks that a run may have: `behind` other runs are better, and it is better than `ahead`.

    `best` is 1 more than the number of better runs, and `worst` leaves out the runs that are worse.
    """

    best: int
    worst: int
    behind: tuple[str, ...]
    ahead: tuple[str, ...]


def rank_intervals(
    runs: Sequence[str], differences: Iterable[Difference], *, higher_is_better: bool
) -> dict[str, RankInterval]:
    """By run its ranks, from the differences of all pairs, whose p values are adjusted.

    A run is better than another only where the interval of their paired difference lies wholly on
    its side of 0, and the adjusted p value, if the metric has one, is below 1 − confidence.
    """
    behind: dict[str, list[str]] = {run: [] for run in runs}
    ahead: dict[str, list[str]] = {run: [] for run in runs}
    for each in differences:
        if each.interval is not None and is_established(each):
            pair = each.first, each.second
            better, worse = pair if (each.interval[0] > 0.0) is higher_is_better else pair[::-1]
            ahead[better].append(worse)
            behind[worse].append(better)
    return {
        run: RankInterval(
            best=1 + len(behind[run]),
            worst=len(runs) - len(ahead[run]),
            behind=tuple(behind[run]),
            ahead=tuple(ahead[run]),
        )
        for run in runs
    }


FoundT = TypeVar("FoundT", MetricResult, Difference)


LEAST_USERS = 20


FEW = f"fewer than {LEAST_USERS} users"
"""The reason why a small part has no interval."""


class ComparedSlice(msgspec.Struct, frozen=True, kw_only=True):
    """The runs over the units with one `value` of a `slice`.

    `common` are by run and metric the results over the units that all runs share. With fewer than
    20 users there is no interval.
    """

    slice: str
    value: str
    common: dict[str, dict[str, MetricResult]]
    differences: tuple[Difference, ...]


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


SAME = 1e-12
"""Smaller changes are rounding errors of sums."""


class ChangedUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit with its value in the first and the second run, and the command that shows each."""

    unit: str
    user: str
    first: float
    second: float
    commands: tuple[str, str]


class ChangedUnits(msgspec.Struct, frozen=True, kw_only=True):
    """How many units are better, worse and the same in the first of two runs in one metric.

    `largest` are those that changed most.
    """

    metric: str
    first: str
    second: str
    better: int
    worse: int
    same: int
    largest: tuple[ChangedUnit, ...]


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
