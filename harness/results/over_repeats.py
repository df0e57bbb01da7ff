"""What the repeats of a run's tasks came to together: each metric's mean and spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from harness.errors import DataError
from harness.results.summary import TaskSummary
from harness.tasks.repeats import task_and_repeat

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
