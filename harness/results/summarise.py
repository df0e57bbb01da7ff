"""From a stream of scores to metrics: columns of numbers, never a list of units."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from harness.errors import PluginError
from harness.hashing import stable_int
from harness.results.summary import MetricResult
from harness.tasks.task import IntervalSpec

if TYPE_CHECKING:
    from harness.pipeline.benchmark import Metric, Score

NOT_FINITE = "not_finite"
"""Why a unit has no score where its benchmark came to NaN or infinity."""


class Columns:
    """Collects scores as columns: 8 bytes a unit and metric, and 8 for whose unit it is.

    A unit that names a metric neither under `values` nor under `missing` is no unit of it.
    """

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self.units = 0
        self._metrics = metrics
        self._users = array("Q")
        self._values = {name: array("d") for name in metrics}
        self._missing: dict[str, Counter[str]] = {name: Counter() for name in metrics}

    def add(self, score: Score) -> None:
        """Take one score, as `sound` left it."""
        self.units += 1
        self._users.append(stable_int(score.user))
        for name, column in self._values.items():
            column.append(score.values.get(name, math.nan))
            if name in score.missing:
                self._missing[name][score.missing[name]] += 1

    def results(self, *, interval: IntervalSpec, seed: int, task: str) -> dict[str, MetricResult]:
        """Every metric with its interval; the seed of each is drawn from seed, task and metric."""
        return {
            name: self._result(
                name, interval=interval, seed=stable_int("bootstrap", seed, task, name)
            )
            for name in self._metrics
        }

    def _result(self, name: str, *, interval: IntervalSpec, seed: int) -> MetricResult:
        import numpy as np

        from harness.stats import Interval, NoInterval, bootstrap_interval, statistic_of

        metric = self._metrics[name]
        column = np.frombuffer(self._values[name], dtype=np.float64)
        scored = np.isfinite(column)
        values = column[scored]
        users, owners = np.unique(
            np.frombuffer(self._users, dtype=np.uint64)[scored], return_inverse=True
        )
        missing = self._missing[name]
        value = _number(statistic_of(values, metric.statistic))
        drawn: Interval | NoInterval = NoInterval("there is no value to draw an interval for")
        if value is not None:
            drawn = bootstrap_interval(
                values,
                owners,
                seed=seed,
                statistic=metric.statistic,
                draws=interval.draws,
                confidence=interval.confidence,
            )
        return MetricResult(
            value=value,
            n=len(values),
            users=len(users),
            interval=(drawn.low, drawn.high) if isinstance(drawn, Interval) else None,
            confidence=interval.confidence,
            missing=dict(sorted(missing.items())),
            counted_as_worst=_with_worst(values, metric, missing.total()),
            higher_is_better=metric.higher_is_better,
            description=metric.description,
            undefined=_why_undefined(value, len(values)),
            no_interval=drawn.reason if isinstance(drawn, NoInterval) else None,
        )


def summarise(
    scores: Iterable[Score],
    metrics: Mapping[str, Metric],
    *,
    interval: IntervalSpec,
    seed: int,
    task: str,
) -> dict[str, MetricResult]:
    """Each metric over all scores, with n, who fell out and why, and an interval over users."""
    columns = Columns(metrics)
    for score in scores:
        columns.add(sound(score))
    return columns.results(interval=interval, seed=seed, task=task)


def sound(score: Score) -> Score:
    """The score with plain finite numbers only; what is none of them is missing, with a cause."""
    plain = all(type(value) is float and math.isfinite(value) for value in score.values.values())
    if plain and not (score.missing and score.missing.keys() & score.values.keys()):
        return score
    values: dict[str, float] = {}
    missing = dict(score.missing)
    for name, given in score.values.items():
        try:
            value = float(given)
        except (TypeError, ValueError) as error:
            raise PluginError(
                f"the score of {score.id!r} is no number",
                where=f"metric {name!r}",
                found=repr(given),
                expected="a number, or a cause under `missing`",
            ) from error
        if name in missing:
            continue
        if math.isfinite(value):
            values[name] = value
        else:
            missing[name] = NOT_FINITE
    return msgspec.structs.replace(score, values=values, missing=missing)


def _with_worst(values: Any, metric: Metric, missing: int) -> float | None:
    import numpy as np

    from harness.stats import statistic_of

    whole = np.concatenate((values, np.full(missing, float(metric.worst))))
    return _number(statistic_of(whole, metric.statistic))


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _why_undefined(value: float | None, scored: int) -> str | None:
    if value is not None:
        return None
    return "the statistic has no value for these scores" if scored else "nothing was scored"
