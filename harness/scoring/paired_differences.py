"""Differences of runs over the units that both have scored, with intervals and tests."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import msgspec

from harness.base.hashing import stable_int
from harness.scoring.finished_task import FinishedTask

if TYPE_CHECKING:
    from harness.contracts.benchmark import Metric


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

    from harness.scoring.stats import (
        Interval,
        PValue,
        Undefined,
        paired_interval,
        paired_p,
        statistic_of,
    )

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
    return Difference(
        metric=name,
        first=runs[0],
        second=runs[1],
        value=value if math.isfinite(value) else None,
        n=len(pairs),
        users=len(set(users)),
        interval=(drawn.low, drawn.high) if isinstance(drawn, Interval) else None,
        confidence=interval.confidence,
        no_interval=None if isinstance(drawn, Interval) else drawn.reason,
        interval_method=interval.method,
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
