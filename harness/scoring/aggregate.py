"""Metrics from a stream of scores, kept as columns of numbers instead of a list of units."""

from __future__ import annotations

import math
import traceback
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from harness.base.errors import HarnessError, PluginError
from harness.base.hashing import stable_int
from harness.contracts.task import IntervalSpec
from harness.scoring.summary import MetricResult

if TYPE_CHECKING:
    from harness.contracts.benchmark import Metric
    from harness.contracts.records import Score

NOT_FINITE = "not_finite"
"""The cause for a unit whose score is NaN or infinite."""


@contextmanager
def code_of_benchmark(problem: str, *, hint: str) -> Iterator[None]:
    """Where a benchmark's code runs: what it raises becomes a PluginError with its traceback."""
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:
        trace = traceback.format_exc(limit=-4).strip()
        raise PluginError(problem, found=trace, hint=hint) from error


class Columns:
    """Collects scores as columns: 8 bytes per unit and metric, and 8 for the unit's user.

    A unit with a metric neither in `values` nor in `missing` is no unit of this metric. `sound` has
    checked all scores. No value counts a unit that is missing by a stage in `of_others` as worst.

        Columns(metrics, scores).results(interval=task.interval, seed=0, task=task.name)
    """

    def __init__(
        self,
        metrics: Mapping[str, Metric],
        scores: Iterable[Score[Any]] = (),
        *,
        of_others: Collection[str] = (),
    ) -> None:
        self.units = 0
        self._metrics = metrics
        self._of_others = of_others
        self._lost = {name: array("d") for name in metrics}
        self._parts = dict.fromkeys(metrics, (0, 0))
        self._not_counted = {name: array("Q") for name in metrics}
        self._users = array("Q")
        self.counts: Counter[str] = Counter()
        self.slices: dict[str, Counter[str]] = defaultdict(Counter)
        self._values = {name: array("d") for name in metrics}
        self._worst = {name: array("d") for name in metrics}
        self._missing: dict[str, Counter[str]] = {name: Counter() for name in metrics}
        self._without_worst = dict.fromkeys(metrics, False)
        for score in scores:
            self.add(score)

    def add(self, score: Score[Any]) -> None:
        """Add one score."""
        self.units += 1
        self._users.append(stable_int(score.user))
        self.counts.update(score.counts)
        for name, value in (score.slices or {}).items():
            self.slices[name][value] += 1
        for name, metric in self._metrics.items():
            column = metric.of or name
            self._values[name].append(score.values.get(column, math.nan))
            self._worst[name].append(at_worst(score, column, metric))
            lost = lost_of(score, column)
            if lost:
                self._lost[name].append(lost)
            if score.parts and column in score.values:
                self._add_parts(name, score.parts.get(column, (0, 0)))
            if metric.worst is None and column not in score.worst:
                self._without_worst[name] |= column in score.missing or lost > 0
            if column in score.missing:
                self._missing[name][score.missing[column]] += 1
                if is_of_others(score.missing[column], self._of_others):
                    self._not_counted[name].append(self.units - 1)

    def _add_parts(self, name: str, parts: tuple[int, int]) -> None:
        missing, every = self._parts[name]
        self._parts[name] = missing + parts[0], every + parts[1]

    def extend(self, other: Columns) -> None:
        """Add the scores that another has of the same metrics, after those of this one."""
        for name in self._metrics:
            self._values[name] += other._values[name]
            self._worst[name] += other._worst[name]
            self._lost[name] += other._lost[name]
            self._add_parts(name, other._parts[name])
            self._missing[name].update(other._missing[name])
            self._without_worst[name] |= other._without_worst[name]
            self._not_counted[name].extend(self.units + unit for unit in other._not_counted[name])
        self._users += other._users
        self.units += other.units
        self.counts.update(other.counts)
        for name, counts in other.slices.items():
            self.slices[name].update(counts)

    def results(
        self, *, interval: IntervalSpec, seed: int, task: str, least_scored: float = 0.0
    ) -> dict[str, MetricResult]:
        """Every metric with its interval; the seed of each depends on seed, task and metric.

        A metric has no value if a smaller share than `least_scored` of what it is made of is there.
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
        everything = n + missing.total()
        left_out = _number(statistic_of(column[scored], metric.statistic))
        counted = _number(statistic_of(worst[np.isfinite(worst)], metric.statistic))
        lost = 0.0
        for share in self._lost[name]:  # as `sum` rounds differently from one Python to the next
            lost += share
        if self._without_worst[name]:
            counted = None
        in_value = worst.copy()
        in_value[np.frombuffer(self._not_counted[name], dtype=np.uint64).astype(np.intp)] = np.nan
        # If no unit has a score, units counted as worst do not make a value.
        counts = metric.missing == "counted" and n > 0
        value = left_out
        if counts:
            value = _number(statistic_of(in_value[np.isfinite(in_value)], metric.statistic))
        undefined = None
        if value is None:
            undefined = "the statistic has no value for these scores" if n else "nothing was scored"
        # Compares shares instead of numbers of units: 0.07 * 100 is more than 7.
        elif (n - lost) / everything < least_scored:
            few = "" if left_out is None else f"; over those few it is {left_out:.3f}"
            there = f"{(n - lost) / everything:.0%} is there"
            parts = f", and with the parts that are missing inside them {there}" if lost else ""
            undefined = (
                f"{n:,} of {everything:,} units have one{parts}, less than the required "
                f"{least_scored:.0%}{few}"
            )
            value = None
        drawn: Interval | NoInterval = NoInterval("there is no value to draw an interval for")
        if value is not None:
            used = np.isfinite(in_value) if counts else scored
            drawn = bootstrap_interval(
                (in_value if counts else column)[used],
                np.unique(users[used], return_inverse=True)[1],
                seed=seed,
                statistic=metric.statistic,
                **msgspec.structs.asdict(interval),
            )
        not_counted = len(self._not_counted[name])
        as_worst = missing.total() - not_counted
        both = counts and value is not None and (as_worst > 0 or value != left_out)
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
            missing_share=(lost + missing.total()) / everything if lost or missing else UNSET,
            missing_parts=self._parts[name] if self._parts[name][0] else UNSET,
            not_counted=not_counted if both and not_counted else UNSET,
            counts_as=UNSET if metric.counts_as == "worst" else metric.counts_as,
        )


def at_worst(score: Score[Any], column: str, metric: Metric) -> float:
    """A unit's number in a column if what is missing counts as worst; NaN if it does not count.

    It is never better than the unit's value: a `worst` of 0 is no loss to a correlation of -0.5.
    """
    lowest = math.nan if metric.worst is None else metric.worst
    if column not in score.values:
        return score.worst.get(column, lowest if column in score.missing else math.nan)
    value, lost = score.values[column], lost_of(score, column)
    mixed = (1 - lost) * value + lost * lowest if lost and metric.worst is not None else value
    counted = score.worst.get(column, mixed)
    return min(counted, value) if metric.higher_is_better else max(counted, value)


def lost_of(score: Score[Any], column: str) -> float:
    """The share that is missing of a unit's value in a column; 0 where it has no value.

    Where `lost` does not say it, it is that of the missing `parts`.
    """
    if score.parts and column in score.values and column not in (score.lost or {}):
        missing, every = score.parts.get(column, (0, 1))
        return missing / every if every else 0.0
    return score.lost.get(column, 0.0) if score.lost and column in score.values else 0.0


def is_of_others(cause: str, stages: Collection[str]) -> bool:
    """Whether a cause names one of these stages, as in `profile/empty`."""
    stage, slash, _ = cause.partition("/")
    return bool(slash) and stage in stages


def counted_values(
    scores: Iterable[Score[Any]], name: str, metric: Metric, of_others: Collection[str]
) -> dict[str, tuple[str, float]]:
    """Each unit that counts in a metric's value, with its user and its number."""
    column = metric.of or name
    if metric.missing == "left_out":
        return {
            each.id: (each.user, each.values[column]) for each in scores if column in each.values
        }
    counts = (
        (each, at_worst(each, column, metric))
        for each in scores
        if not is_of_others(each.missing.get(column, ""), of_others)
    )
    return {each.id: (each.user, value) for each, value in counts if math.isfinite(value)}


def sound(score: Score[Any]) -> Score[Any]:
    """The score with plain finite numbers only; other values become missing, with a cause."""
    for name, share in _floats(score, score.lost or {}).items():
        if not 0.0 <= share <= 1.0:
            raise PluginError(
                f"the score of {score.id!r} has lost a share that cannot be",
                where=f"metric {name!r}",
                found=repr(share),
                expected="a share from 0 to 1 under `lost`",
            )
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


def with_computed(score: Score[Any], metrics: Mapping[str, Metric]) -> Score[Any]:
    """The score with the columns that metrics compute from its others.

    A unit that lacks a column that a metric needs lacks that metric too.
    """
    for name, metric in metrics.items():
        if metric.compute is None:
            continue
        causes = [score.missing[column] for column in metric.needs if column in score.missing]
        if causes:
            values = {column: one for column, one in score.values.items() if column != name}
            missing = {**score.missing, name: causes[0]}
            score = msgspec.structs.replace(score, values=values, missing=missing)
        elif score.values.keys() >= {*metric.needs}:
            try:
                value = metric.compute(score)
            except Exception as error:
                raise PluginError(
                    f"the metric {name!r} cannot be computed",
                    where=f"the score of {score.id!r}",
                    found=traceback.format_exc(limit=-2).strip(),
                    hint="the records are kept: fix the metric, then run `harness score RUN`",
                ) from error
            lost = max((lost_of(score, column) for column in metric.needs), default=0.0)
            shares = {**(score.lost or {}), name: lost} if lost else score.lost
            values = {**score.values, name: value}
            score = sound(msgspec.structs.replace(score, values=values, lost=shares))
    return score


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
