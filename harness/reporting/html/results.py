"""Results by task and metric: the values of runs, of rules and of papers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

from harness.contracts.published import PublishedResult
from harness.reporting.html.compared_runs import ComparedRuns, Ending, endings_of
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.tables import missing_share
from harness.scoring.grouping import grouped
from harness.scoring.means import MeanOverTasks, means_of
from harness.scoring.score_run import unfinished_stages
from harness.scoring.summary import MetricResult, TaskSummary, baselines_of, main_metrics
from harness.tasks.repeats import task_and_repeat


@dataclass(frozen=True, kw_only=True)
class Value:
    """The value of a run in a metric; `why` there is none, if there is none.

    Of `of` units those of `causes` are missing; `missing` is the share of all that the value is
    made of, parts of units included. `other` is the value by the other policy for what is missing,
    which `counts` says of `value`. It is the mean of `repeats` repeats.
    """

    value: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float = 0.95
    of: int = 0
    causes: Mapping[str, int] = field(default_factory=dict)
    missing: float = 0.0
    other: float | None = None
    counts: bool = False
    repeats: int = 1
    why: str = ""


class Rule(NamedTuple):
    """What an answer without any model gets in a metric; `short` is its name in a row of it."""

    name: str
    value: float
    short: str


@dataclass(frozen=True, kw_only=True)
class Result:
    """A metric of a task, or its mean over the `tasks` of a group, by the label of each run.

    `first` is whether it is the first main metric, `words` are what it measures. The best of the
    `rules` stands first. It is `comparable` if a run may stand beside the `published` results.
    """

    name: str
    metric: str
    tasks: frozenset[str]
    values: Mapping[str, Value]
    higher_is_better: bool = True
    first: bool = True
    words: str = ""
    counts_as: str = "worst"
    rules: tuple[Rule, ...] = ()
    published: tuple[PublishedResult, ...] = ()
    comparable: bool = False
    ending: Ending | None = None

    @property
    def is_group(self) -> bool:
        """Whether it is a mean over several tasks."""
        return self.tasks != {self.name}

    @property
    def best_published(self) -> PublishedResult | None:
        """The best of the published results."""
        best = max if self.higher_is_better else min
        return best(self.published, key=lambda one: one.value) if self.published else None

    def leader(self, *, other: bool = False) -> str | None:
        """The run that is alone with the best value, by the other policy for what is missing."""
        sign = 1 if self.higher_is_better else -1
        known = {
            label: sign * value
            for label, one in self.values.items()
            if (value := one.other if other and one.other is not None else one.value) is not None
        }
        best = max(known.values(), default=None)
        first = [label for label, value in known.items() if value == best]
        return first[0] if len(first) == 1 else None

    @property
    def beaten_by(self) -> Rule | None:
        """The best rule without a model, if it is better than every run."""
        values = [one.value for one in self.values.values() if one.value is not None]
        if not (values and self.rules):
            return None
        best, sign = self.rules[0], 1 if self.higher_is_better else -1
        return best if all(sign * best.value > sign * value for value in values) else None


def results_of(runs: Sequence[ReportedRun], found: ComparedRuns) -> list[Result]:
    """The results of these runs: groups, each with its tasks behind it, and the other tasks."""
    values: dict[str, dict[str, dict[str, Value]]] = {}
    tasks: dict[str, set[str]] = {}
    shown: dict[tuple[str, str], MetricResult] = {}
    for run in runs:
        for name, metric, members, value, result in _values(run):
            values.setdefault(name, {}).setdefault(metric, {})[run.label] = value
            tasks.setdefault(name, set()).update(members)
            if result is not None:
                shown.setdefault((name, metric), result)
    endings = endings_of(found.document)
    every = [one for run in runs for one in run.summaries]
    comparable = {task_and_repeat(one.task)[0] for one in every if not one.not_comparable_because}
    results = []
    for name in _in_order(tasks):
        metrics = [metric for metric in values[name] if metric] or [""]
        for metric in metrics:
            result = shown.get((name, metric))
            higher = result is None or result.higher_is_better
            results.append(Result(
                name=name, metric=metric, tasks=frozenset(tasks[name]),
                values={**values[name].get("", {}), **values[name].get(metric, {})},
                higher_is_better=higher, first=metric == metrics[0],
                words=result.description.replace("`", "") if result else "",
                counts_as=(result.counts_as or "worst") if result else "worst",
                rules=_rules(runs, tasks[name], metric),
                published=_published(runs, name, metric, metrics),
                comparable=bool(tasks[name] & comparable),
                ending=endings.get((name, metric)),
            ))  # fmt: skip
    return results


_Found = tuple[str, str, set[str], Value, MetricResult | None]


def _values(run: ReportedRun) -> Iterator[_Found]:
    """The values of a run: means of its groups, then its tasks; repeats are one, their mean."""
    finished = {task.task.name: task for task in run.tasks}
    known = {each.task: each for each in run.summaries}
    means = means_of(run.manifest, [task.summary for task in run.tasks], finished.__getitem__)
    for mean in means:
        members = {task_and_repeat(task)[0] for task in mean.tasks}
        parts = {task: known[task].metrics[mean.metric] for task in mean.tasks}
        yield mean.name, mean.metric, members, _value(parts, mean), parts[mean.tasks[0]]
    repeated = {mean.name for mean in means if mean.over == "repeats"}
    for name, entry in run.manifest.tasks.items():
        base = task_and_repeat(name)[0]
        if base in repeated:
            continue
        summary = known.get(name)
        if summary is None:
            undone = unfinished_stages(entry)
            done = len(entry.stages) - len(undone)
            why = f"{done} of {len(entry.stages)} stages done" if undone else "not scored"
            yield base, "", {base}, Value(why=f"{why}, {run.status}"), None
            continue
        metrics = main_metrics(summary.main, summary.metrics)
        for metric in metrics:
            result = summary.metrics[metric]
            yield base, metric, {base}, _value({name: result}, result), result
        if not metrics:
            yield base, "", {base}, Value(why="no metric"), None


def _value(parts: Mapping[str, MetricResult], result: MetricResult | MeanOverTasks) -> Value:
    others = grouped(
        (task_and_repeat(task)[0], one.counted_as_worst if one.left_out is None else one.left_out)
        for task, one in parts.items()
    )
    known = [[one for one in of_task if one is not None] for of_task in others.values()]
    whole = [*map(len, known)] == [*map(len, others.values())]
    return Value(
        value=result.value, interval=result.interval, confidence=result.confidence,
        of=sum(part.n + sum(part.missing.values()) for part in parts.values()),
        causes=dict(sum((Counter(part.missing) for part in parts.values()), Counter())),
        missing=fmean(map(missing_share, parts.values())),
        other=fmean(map(fmean, known)) if whole else None,
        counts=any(part.left_out is not None for part in parts.values()),
        repeats=len(parts) // len(others),
        why="" if result.value is not None else f"no value: {result.undefined}",
    )  # fmt: skip


def _in_order(tasks: Mapping[str, set[str]]) -> list[str]:
    """The tasks in their order, each group at its first task with its other members behind it."""
    order: dict[str, None] = {}
    for task in (name for name in tasks if tasks[name] == {name}):
        groups = [name for name in tasks if name != task and task in tasks[name]]
        outer = max(groups, key=lambda group: len(tasks[group]), default=task)
        order |= dict.fromkeys((outer, *(name for name in tasks if tasks[name] < tasks[outer])))
        order[task] = None
    return list(order)


def _rules(runs: Sequence[ReportedRun], tasks: Collection[str], metric: str) -> tuple[Rule, ...]:
    """What answers without any model get in all these tasks, the best first.

    They ask nothing, so that the first run of a task speaks for all.
    """
    first: dict[str, TaskSummary] = {}
    for each in (each for run in runs for each in run.summaries if metric in each.metrics):
        first.setdefault(task_and_repeat(each.task)[0], each)
    if not metric or not first.keys() >= {*tasks}:
        return ()
    return tuple(
        Rule(name, value, name.removeprefix(f"{metric}_"))
        for name, value in baselines_of([first[task] for task in tasks], metric)
    )


def _published(
    runs: Sequence[ReportedRun], name: str, metric: str, metrics: Sequence[str]
) -> tuple[PublishedResult, ...]:
    """The published results of a task or group in a metric, else in one named after it."""
    benchmarks = {task.benchmark.name: task.benchmark for run in runs for task in run.tasks}
    results = [
        one
        for benchmark in benchmarks.values()
        for one in (benchmark.published() if benchmark.published else ())
        if one.task == name
    ]
    if any(one.metric in metrics for one in results):
        return tuple(one for one in results if one.metric == metric)
    return tuple(one for one in results if metric and one.metric.startswith(f"{metric}_"))
