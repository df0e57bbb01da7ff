"""What the repeats of a run's tasks came to together: each metric's mean and spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from harness.base.errors import DataError
from harness.calls.pricing import Cost
from harness.tasks.repeats import task_and_repeat


class MetricResult(msgspec.Struct, frozen=True, kw_only=True):
    """One metric under both policies: missing units left out, and counted as worst.

    `value` leaves them out, unless `left_out` is there: then it counts them, and `left_out` is the
    value without them. `value` is None where nothing was scored, or too little to show; `undefined`
    then says why. `interval` is that of `value`, None where none can be drawn; `no_interval` then
    says why. `n` units of so many `users` have a value.
    `interval_method` is how its bounds came of the bootstrap's draws.
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
    baseline: bool = False
    interval_method: Literal["percentile", "bca"] = "percentile"


class RoleUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one role of one stage cost. Tokens are those of all replies, stored ones as well.

    Of `untold` replies no tokens were told, and are not among these; where none were told of any,
    they are None. A model that answers by rule uses none, which is 0.

    `cost` is there where the run was given prices.

    `asked_schema` calls asked the server to hold its reply to a schema; `met_schema` of them were
    answered with JSON that could be read as it stood.
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
    rungs: dict[str, int]
    untold: int = 0
    cost: Cost | None = None


class StageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How one stage went."""

    items: int
    done: int
    failures: dict[str, int]
    roles: dict[str, RoleUse]


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one task; its file's absence means the task is unfinished.

    `repeat` tells which of the run's repeats it is, from 1.
    """

    format: int
    task: str
    version: int
    content: str
    benchmark: str
    model: str
    roles: dict[str, str]
    data: dict[str, Any]
    comparable: bool
    not_comparable_because: tuple[str, ...]
    limit: int | None
    seed: int
    repeat: int = 1
    units: int
    counts: dict[str, int] = {}
    metrics: dict[str, MetricResult]
    stages: dict[str, StageSummary]


ALONE = "one value alone has no spread"


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A metric over the repeats that have a value of it, `n` of them; `without` have none.

    `sd` is the standard deviation of a sample, `stderr` that of the mean. What cannot be told is
    None, and `undefined` says why.
    """

    values: tuple[float | None, ...]
    n: int
    without: int
    mean: float | None
    sd: float | None
    stderr: float | None
    undefined: str | None
    higher_is_better: bool
    baseline: bool


class RepeatedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task over the repeats of it that are finished, by their names and in their order."""

    task: str
    repeats: tuple[str, ...]
    metrics: dict[str, Spread]


def over_repeats(summaries: Iterable[TaskSummary]) -> tuple[RepeatedTask, ...]:
    """Every task that has a repeat beside the first, over those that are finished."""
    tasks: dict[str, list[TaskSummary]] = {}
    for summary in sorted(summaries, key=lambda each: each.repeat):
        tasks.setdefault(task_and_repeat(summary.task)[0], []).append(summary)
    for name, repeats in tasks.items():
        _refuse_unlike(name, repeats)
    return tuple(
        RepeatedTask(
            task=name,
            repeats=tuple(each.task for each in repeats),
            metrics={metric: _spread(repeats, metric) for metric in repeats[0].metrics},
        )
        for name, repeats in tasks.items()
        if repeats[-1].repeat > 1
    )


def _refuse_unlike(task: str, repeats: Sequence[TaskSummary]) -> None:
    """Raise DataError where repeats were scored at times when the task had other metrics."""
    counted = Counter(metric for each in repeats for metric in each.metrics)
    if unlike := [metric for metric, times in counted.items() if times < len(repeats)]:
        raise DataError(
            f"the repeats of task {task!r} were not scored by the same metrics",
            found=f"not in all of them: {', '.join(sorted(unlike))}",
            hint="`harness score RUN` scores all of them again",
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
