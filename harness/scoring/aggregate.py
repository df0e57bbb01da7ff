"""Metrics from a stream of scores, kept as columns of numbers instead of a list of units."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import PluginError
from harness.base.hashing import stable_int
from harness.contracts.task import IntervalSpec
from harness.scoring.summary import MetricResult

if TYPE_CHECKING:
    from harness.contracts.benchmark import Metric
    from harness.contracts.records import Score

NOT_FINITE = "not_finite"
"""The cause for a unit whose score is NaN or infinite."""


class Columns:
    """Collects scores as columns: 8 bytes per unit and metric, and 8 for the unit's user.

    A unit with a metric neither in `values` nor in `missing` is no unit of this metric. `sound` has
    checked all scores.

        Columns(metrics, scores).results(interval=task.interval, seed=0, task=task.name)
    """

    def __init__(self, metrics: Mapping[str, Metric], scores: Iterable[Score[Any]] = ()) -> None:
        self.units = 0
        self._metrics = metrics
        self._users = array("Q")
        self.counts: Counter[str] = Counter()
        self._values = {name: array("d") for name in metrics}
        self._worst = {name: array("d") for name in metrics}
        self._missing: dict[str, Counter[str]] = {name: Counter() for name in metrics}
        for score in scores:
            self.add(score)

    def add(self, score: Score[Any]) -> None:
        """Add one score."""
        self.units += 1
        self._users.append(stable_int(score.user))
        self.counts.update(score.counts)
        for name, metric in self._metrics.items():
            column = metric.of or name
            self._values[name].append(score.values.get(column, math.nan))
            self._worst[name].append(at_worst(score, column, metric))
            if column in score.missing:
                self._missing[name][score.missing[column]] += 1

    def results(
        self, *, interval: IntervalSpec, seed: int, task: str, least_scored: float = 0.0
    ) -> dict[str, MetricResult]:
        """Every metric with its interval; the seed of each depends on seed, task and metric.

        A metric has no value if a smaller share of its units than `least_scored` has a score.
        """
        return {
            name: self._result(
                name,
                interval=interval,
                seed=stable_int("bootstrap", seed, task, name),
                least_scored=least_scored,
            )
            for name in self._metrics
        }

    def _result(
        self, name: str, *, interval: IntervalSpec, seed: int, least_scored: float
    ) -> MetricResult:
        import numpy as np

        from harness.scoring.stats import Interval, NoInterval, bootstrap_interval, statistic_of

        metric = self._metrics[name]
        column = np.frombuffer(self._values[name], dtype=np.float64)
        worst = np.frombuffer(self._worst[name], dtype=np.float64)
        scored = np.isfinite(column)
        users = np.frombuffer(self._users, dtype=np.uint64)
        missing = self._missing[name]
        n = int(scored.sum())
        left_out = _number(statistic_of(column[scored], metric.statistic))
        counted = _number(statistic_of(worst[np.isfinite(worst)], metric.statistic))
        if metric.worst is None and missing:
            counted = None
        # If no unit has a score, units counted as worst do not make a value.
        counts = metric.missing == "counted" and n > 0
        value = counted if counts else left_out
        undefined = None
        if value is None:
            undefined = "the statistic has no value for these scores" if n else "nothing was scored"
        # Compares shares instead of numbers of units: 0.07 * 100 is more than 7.
        elif n / (n + missing.total()) < least_scored:
            undefined = _too_few(left_out, n, missing.total(), least_scored)
            value = None
        drawn: Interval | NoInterval = NoInterval("there is no value to draw an interval for")
        if value is not None:
            used = np.isfinite(worst) if counts else scored
            drawn = bootstrap_interval(
                (worst if counts else column)[used],
                np.unique(users[used], return_inverse=True)[1],
                seed=seed,
                statistic=metric.statistic,
                draws=interval.draws,
                confidence=interval.confidence,
                method=interval.method,
            )
        both = counts and value is not None and (bool(missing) or value != left_out)
        return MetricResult(
            value=value,
            n=n,
            users=len(np.unique(users[scored])),
            interval=(drawn.low, drawn.high) if isinstance(drawn, Interval) else None,
            confidence=interval.confidence,
            missing=dict(sorted(missing.items())),
            counted_as_worst=counted,
            higher_is_better=metric.higher_is_better,
            description=metric.description,
            undefined=undefined,
            note=metric.note,
            no_interval=drawn.reason if isinstance(drawn, NoInterval) else None,
            left_out=left_out if both else None,
            baseline=metric.baseline,
            interval_method=interval.method,
        )


def at_worst(score: Score[Any], column: str, metric: Metric) -> float:
    """A unit's number in a column if missing units count as worst; NaN if it does not count."""
    if column not in score.missing:
        return score.worst.get(column, score.values.get(column, math.nan))
    return score.worst.get(column, math.nan if metric.worst is None else metric.worst)


def sound(score: Score[Any]) -> Score[Any]:
    """The score with plain finite numbers only; other values become missing, with a cause.

    `worst` keeps only the names that have a value or a cause.
    """
    plain = all(type(value) is float and math.isfinite(value) for value in score.values.values())
    if plain and not (score.missing or score.worst):
        return score
    values, worst = _floats(score, score.values), _floats(score, score.worst)
    missing = dict(score.missing)
    for name, value in values.items():
        if not (math.isfinite(value) and math.isfinite(worst.get(name, 0.0))):
            missing.setdefault(name, NOT_FINITE)
    values = {name: value for name, value in values.items() if name not in missing}
    known = values.keys() | missing.keys()
    worst = {n: value for n, value in worst.items() if n in known and math.isfinite(value)}
    return msgspec.structs.replace(score, values=values, missing=missing, worst=worst)


def _floats(score: Score[Any], given: Mapping[str, Any]) -> dict[str, float]:
    floats = {}
    for name, number in given.items():
        try:
            floats[name] = float(number)
        except (TypeError, ValueError, OverflowError) as error:
            raise PluginError(
                f"the score of {score.id!r} is not a number",
                where=f"metric {name!r}",
                found=repr(number),
                expected="a number, or a cause under `missing`",
            ) from error
    return floats


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _too_few(value: float | None, scored: int, missing: int, least: float) -> str:
    few = "" if value is None else f"; over those few it is {value:.3f}"
    units = f"{scored:,} of {scored + missing:,} units"
    return f"{units} have one, less than the required {least:.0%}{few}"
