"""The summary of a task: metrics, stages, roles and costs; and its spread over repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from harness.base.errors import DataError
from harness.calls.pricing import Cost
from harness.contracts.published import PublishedResult
from harness.scoring.grouping import grouped
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.contracts.benchmark import Metric


class MetricResult(msgspec.Struct, frozen=True, kw_only=True):
    """One metric with both policies for what is missing: left out, and counted as worst.

    `value` leaves out what is missing, unless `left_out` is given: then `value` counts it as worst,
    and `left_out` is the value without it. `missing_share` is the share that is missing of what the
    metric is made of: whole units, and parts of units; `missing_parts` is how many parts are, of
    the units that have a value, and of how many. `not_counted` missing units are left out of a
    `value` that counts the others, since a stage failed that does not ask the candidate. `value`
    is None if no unit or too few have a score; `undefined` is the reason. `interval` is the
    interval of `value`; if it is None, `no_interval` is the reason. `n` units of `users` users have
    a score; `missing` counts the others by cause. `interval_method` is how the interval's bounds
    follow from the bootstrap's draws. A `baseline` is the score of an answer without any model; it
    names the metric that it is a value of, if there is one. `counts_as` is as what a missing unit
    counts in `counted_as_worst` where that is not the worst value.
    """

    value: float | None
    n: int
    users: int
    interval: tuple[float, float] | None
    confidence: float
    missing: dict[str, int]
    counted_as_worst: float | None
    higher_is_better: bool
    description: str
    undefined: str | None = None
    note: str = ""
    no_interval: str | None = None
    left_out: float | None = None
    baseline: bool | str = False
    interval_method: Literal["percentile", "bca"] = "percentile"
    missing_share: float | msgspec.UnsetType = msgspec.UNSET
    missing_parts: tuple[int, int] | msgspec.UnsetType = msgspec.UNSET
    not_counted: int | msgspec.UnsetType = msgspec.UNSET
    counts_as: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def units_behind(self) -> int:
        """How many units are behind the value, those that it counts as worst included."""
        if self.left_out is None:
            return self.n
        return self.n + sum(self.missing.values()) - (self.not_counted or 0)


class RoleUse(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of one role of one stage. Tokens are of all replies, also of stored ones.

    `untold` replies came without usage, and no tokens of them are counted; if all did, the tokens
    are None. A model that answers by rule uses 0 tokens.

    `cost` is given if the run had prices.

    `asked_schema` calls asked the server for a reply that meets a schema; `met_schema` of them got
    JSON that could be read without repair. `thought_out` replies spent their limit on thinking.

    `truncated` replies reached their limit, `refused` ones were stopped by a content filter: also
    those that were read all the same, or asked again. Older summaries do not have them.
    """

    calls: int
    from_store: int
    failed: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    asked_schema: int
    met_schema: int
    thought_out: int = 0
    truncated: int | msgspec.UnsetType = msgspec.UNSET
    refused: int | msgspec.UnsetType = msgspec.UNSET
    rungs: dict[str, int]
    untold: int = 0
    cost: Cost | None = None


class StageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one stage: its items, how many have a value, and the causes of the others."""

    items: int
    done: int
    failures: dict[str, int]
    roles: dict[str, RoleUse]


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one task; a task without this file is unfinished.

    `repeat` is the number of the repeat within the run, from 1. `thinks` is whether the candidate
    thought before it answered; None if that is not known. `main` names the metrics that a short
    table shows, the main one first. `slices` are the parts of the data: by slice and value the
    number of units. `published` is what the benchmark's paper reports for this task.
    """

    format: int
    task: str
    version: int
    content: str
    benchmark: str
    model: str
    thinks: bool | None = None
    roles: dict[str, str]
    data: dict[str, Any]
    comparable: bool
    not_comparable_because: tuple[str, ...]
    limit: int | None
    seed: int
    repeat: int = 1
    units: int
    counts: dict[str, int] = {}
    notes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    main: tuple[str, ...] = ()
    metrics: dict[str, MetricResult]
    stages: dict[str, StageSummary]
    slices: dict[str, dict[str, int]] | msgspec.UnsetType = msgspec.UNSET
    published: tuple[PublishedResult, ...] | msgspec.UnsetType = msgspec.UNSET


def main_metrics(
    named: Sequence[str], metrics: Mapping[str, Metric] | Mapping[str, MetricResult]
) -> tuple[str, ...]:
    """The main metrics of a task: those of `named` that it has, else its first own metric."""
    own = [name for name, metric in metrics.items() if not metric.baseline]
    return tuple(name for name in named if name in metrics) or tuple(own[:1])


def baselines_of(summaries: Sequence[TaskSummary], metric: str) -> list[tuple[str, float]]:
    """What answers without any model get in a metric, as means over these tasks, the best first."""
    values = grouped(
        (name, one.value)
        for each in summaries
        for name, one in each.metrics.items()
        if one.baseline == metric and one.value is not None
    )
    many = len(summaries)
    means = [(name, sum(of) / many) for name, of in values.items() if len(of) == many]
    higher = summaries[0].metrics[metric].higher_is_better
    return sorted(means, key=lambda one: one[1], reverse=higher)


ALONE = "one value alone has no spread"


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A metric over `n` repeats that have a value; `without` more repeats have none.

    `sd` is the standard deviation of the sample, `stderr` the standard error of the mean. If `sd`
    is None, `undefined` is the reason.
    """

    values: tuple[float | None, ...]
    n: int
    without: int
    mean: float | None
    sd: float | None
    stderr: float | None
    undefined: str | None
    higher_is_better: bool
    baseline: bool | str


class RepeatedTask(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of a task over its finished repeats, whose names are in `repeats` in order."""

    task: str
    repeats: tuple[str, ...]
    metrics: dict[str, Spread]


def over_repeats(summaries: Iterable[TaskSummary]) -> tuple[RepeatedTask, ...]:
    """Every task with more than one repeat, over its finished repeats."""
    ordered = sorted(summaries, key=lambda each: each.repeat)
    tasks = grouped((task_and_repeat(summary.task)[0], summary) for summary in ordered)
    for name, repeats in tasks.items():
        counted = Counter(metric for each in repeats for metric in each.metrics)
        if unlike := [metric for metric, times in counted.items() if times < len(repeats)]:
            raise DataError(
                f"the repeats of task {name!r} were not scored by the same metrics",
                found=f"not in all of them: {', '.join(sorted(unlike))}",
                hint="run `harness score RUN` to score all of them again",
            )
    return tuple(
        RepeatedTask(
            task=name,
            repeats=tuple(each.task for each in repeats),
            metrics={metric: _spread(repeats, metric) for metric in repeats[0].metrics},
        )
        for name, repeats in tasks.items()
        if repeats[-1].repeat > 1
    )


def _spread(repeats: Sequence[TaskSummary], metric: str) -> Spread:
    from statistics import fmean, stdev

    results = [each.metrics[metric] for each in repeats]
    values = [each.value for each in results if each.value is not None]
    sd = stdev(values) if len(values) > 1 else None
    without = next((each.undefined for each in results if each.value is None), None)
    return Spread(
        values=tuple(each.value for each in results),
        n=len(values),
        without=len(results) - len(values),
        mean=fmean(values) if values else None,
        sd=sd,
        stderr=None if sd is None else sd / len(values) ** 0.5,
        undefined=None if sd is not None else ALONE if values else without,
        higher_is_better=results[0].higher_is_better,
        baseline=results[0].baseline,
    )
