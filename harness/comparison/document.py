"""The document of a comparison, and the only rule by which one run is better than another.

A difference is significant if 0 lies outside its interval and its p after Holm is small. All that
is said of runs, in tables, sentences and pages, follows from `decisions`, `established` and
`verdict`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET

from harness.base.redaction import without_key_material
from harness.runs.atomic_files import atomic_write
from harness.scoring.grouping import grouped
from harness.scoring.means import MeanOverTasks
from harness.scoring.summary import MetricResult

FORMAT = 1


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


def is_significant(difference: Difference) -> bool:
    """Whether 0 lies outside the interval, and p after Holm is below 1 − its confidence.

    A metric without p has its interval alone.
    """
    if difference.value is None or difference.interval is None:
        return False
    low, high = difference.interval
    p = difference.p_holm
    return not low <= 0.0 <= high and (p is None or p < 1.0 - difference.confidence)


SAME = 1e-12
"""Smaller differences are rounding errors of sums."""

POWER = 0.8
"""How often people show a difference as large as `least_seen`."""


def least_seen(se: float, n: int, *, confidence: float = 0.95) -> float:
    """The smallest difference that n people can show; `se` is the standard error of one.

    `least_seen(0.3, 200)` is 0.059.
    """
    z = NormalDist().inv_cdf
    return (z((1.0 + confidence) / 2.0) + z(POWER)) * se / math.sqrt(n)


def least_shown(difference: Difference) -> float | None:
    """The smallest difference that these people can show, by the width of their interval.

    It is 0 where no value of any person differs.
    """
    if difference.interval is None:
        return None
    low, high = difference.interval
    if high - low < SAME:
        return 0.0
    of_all = (high - low) / 2.0 / NormalDist().inv_cdf((1.0 + difference.confidence) / 2.0)
    se = of_all * math.sqrt(difference.users)
    return least_seen(se, difference.users, confidence=difference.confidence)


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is not compared, and why."""

    run: str
    path: str
    label: str
    because: tuple[str, ...]


class ComparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a comparison.

    `metrics` are over all units of the run, `common` over the units that every run with a value of
    the metric has scored. `counts` are the counts that the oracle changed. `marks` are the
    differences from the other runs that --force overrode.
    """

    run: str
    path: str
    label: str
    model: str
    marks: tuple[str, ...]
    units: int
    counts: dict[str, int]
    metrics: dict[str, MetricResult]
    common: dict[str, MetricResult]


class OracleUse(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of the oracle, the metrics that depend on it, and a warning if it is too small.

    `models` counts the different candidates of its runs.
    """

    runs: int
    models: int
    file: str | None
    metrics: tuple[str, ...]
    warning: str | None = None


class ComparedSlice(msgspec.Struct, frozen=True, kw_only=True):
    """The runs over the units with one `value` of a `slice`.

    `common` are by run and metric the results over the units that all runs share. With fewer than
    20 users there is no interval.
    """

    slice: str
    value: str
    common: dict[str, dict[str, MetricResult]]
    differences: tuple[Difference, ...]


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


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of runs of one task, which leaves the runs' own summaries as they are.

    If the benchmark has an oracle, the runs are scored against their common one. `doubts` are
    signs in the scores that the runs should not be compared, and differences of their servers.
    `main` names the metrics that a short table shows, the main one first. `slices` are given if
    runs are compared by a slice of the data, `changed` are the units behind each difference. If
    the `runs` are tasks of one run, `within` is that run.
    """

    task: str
    version: int
    benchmark: str
    roles: dict[str, str]
    data: dict[str, Any]
    not_comparable_because: tuple[str, ...]
    chosen: str
    main: tuple[str, ...] = ()
    runs: tuple[ComparedRun, ...]
    refused: tuple[Refused, ...]
    oracle: OracleUse | None
    differences: tuple[Difference, ...]
    doubts: tuple[str, ...] = ()
    slices: tuple[ComparedSlice, ...] | msgspec.UnsetType = msgspec.UNSET
    changed: tuple[ChangedUnits, ...] | msgspec.UnsetType = msgspec.UNSET
    within: str | msgspec.UnsetType = msgspec.UNSET


class MeanDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two runs in a mean over these tasks, on the units that all runs share.

    The interval draws the same users in all tasks and both runs; `n` of the difference counts the
    units of all tasks. `deviations` are, over repeats, the standard deviation of each run.
    """

    name: str
    over: Literal["tasks", "repeats"]
    tasks: tuple[str, ...]
    higher_is_better: bool
    difference: Difference
    deviations: dict[str, float] | msgspec.UnsetType = UNSET


class DecidedGate(msgspec.Struct, frozen=True, kw_only=True):
    """A gate on the difference `first` − `second`, of which the second is the base.

    It `holds` if the interval lies wholly above the bound, or below it if not `above`; None if this
    cannot be decided, for the reason `undecided`. `least_seen` is the smallest difference that
    these people can show. `labels` are by run those of the two.
    """

    gate: str
    task: str
    metric: str
    above: bool
    bound: float
    first: str | None
    second: str | None
    labels: dict[str, str] = {}
    value: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float | None = None
    users: int = 0
    holds: bool | None
    undecided: str | None = None
    least_seen: float | None = None


class Better(NamedTuple):
    """A run that is significantly better than another one."""

    winner: str
    loser: str
    difference: Difference


def better_of(differences: Iterable[Difference], *, higher_is_better: bool) -> Iterator[Better]:
    """Which runs are significantly better than which others."""
    for each in filter(is_significant, differences):
        ahead = ((each.value or 0.0) > 0) is higher_is_better
        pair = (each.first, each.second) if ahead else (each.second, each.first)
        yield Better(*pair, each)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a comparison shows of one main metric of a task, or of its mean over these `tasks`.

    `name` is that of the task, of the group, or of the task whose repeats the mean is `over`. A run
    wins by the `first` main metric. `results` are those of the runs with a value, on the `n` units
    that they share, of those that were `asked` about. A task `in_mean` is decided by a mean over
    it, which counts in its place.
    """

    name: str
    over: Literal["tasks", "repeats"] | None = None
    tasks: tuple[str, ...]
    metric: str
    higher_is_better: bool
    first: bool
    results: Mapping[str, MetricResult | MeanOverTasks]
    n: int
    asked: int
    differences: tuple[Difference, ...]
    in_mean: bool = False

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs with a value."""
        return tuple(self.results)

    @property
    def better(self) -> tuple[Better, ...]:
        """Which runs are significantly better than which others."""
        return tuple(better_of(self.differences, higher_is_better=self.higher_is_better))

    @property
    def winner(self) -> str | None:
        """The only run that is not significantly worse than another; None while several are."""
        worse = {each.loser for each in self.better}
        left = [run for run in self.results if run not in worse]
        return left[0] if worse and len(left) == 1 else None

    @property
    def undecided(self) -> tuple[Difference, ...]:
        """The differences with an interval that are not significant."""
        return tuple(
            each for each in self.differences if each.interval and not is_significant(each)
        )


class ComparisonDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Comparisons, and by run its means over groups and repeats, on common units.

    `mean_differences` are the differences of these means, `gates` the decided gates.
    """

    format: int = FORMAT
    comparisons: tuple[Comparison, ...]
    means: dict[str, tuple[MeanOverTasks, ...]] = {}
    mean_differences: tuple[MeanDifference, ...] | msgspec.UnsetType = msgspec.UNSET
    gates: tuple[DecidedGate, ...] | msgspec.UnsetType = msgspec.UNSET

    def labels(self) -> dict[str, str]:
        """By run its label, with a `*` if the run was forced in."""
        found: dict[str, str] = {}
        for run in (run for one in self.comparisons for run in one.runs):
            found[run.run] = max(found.get(run.run, ""), run.label + " *" * bool(run.marks))
        return found

    def decisions(self) -> tuple[Decision, ...]:
        """What is shown of each mean that all runs have and of each task, by main metric.

        A mean stands before its first task.
        """
        found = [*self._of_means()]
        for one in self.comparisons:
            tested = self.without_repeats(one)
            for metric in one.main:
                common = {run.run: run.common[metric] for run in one.runs if metric in run.common}
                found.append(_of_task(one, one.task, metric, common, tested))
        covers = [(each.metric, {*each.tasks}) for each in found if each.over is not None]
        places = {one.task: place for place, one in enumerate(self.comparisons)}
        found.sort(key=lambda each: min(places.get(task, 0) for task in each.tasks))
        return tuple(
            replace(
                each,
                in_mean=any(
                    metric == each.metric
                    and tasks >= {*each.tasks}
                    and (each.over is None or tasks > {*each.tasks})
                    for metric, tasks in covers
                ),
            )
            for each in found
        )

    def _of_means(self) -> Iterator[Decision]:
        """Each mean that every run has, of the same tasks."""
        firsts = {one.task: one.main[:1] for one in self.comparisons}
        means: dict[tuple[str, str, str], dict[str, MeanOverTasks]] = {}
        for run, of_run in self.means.items():
            for mean in (mean for mean in of_run if mean.value is not None):
                means.setdefault((mean.over, mean.name, mean.metric), {})[run] = mean
        for key, by_run in means.items():
            mean = next(iter(by_run.values()))
            same_tasks = len({frozenset(each.tasks) for each in by_run.values()}) == 1
            if by_run.keys() != self.labels().keys() or not same_tasks:
                continue
            differences = tuple(
                one.difference
                for one in self.mean_differences or ()
                if (one.over, one.name, one.difference.metric) == key
            )
            n = max((each.n for each in differences), default=0)
            yield Decision(
                name=mean.name,
                over=mean.over,
                tasks=mean.tasks,
                metric=mean.metric,
                higher_is_better=mean.higher_is_better,
                first=any(firsts.get(task) == (mean.metric,) for task in mean.tasks),
                results=by_run,
                n=n,
                asked=n,
                differences=differences,
            )

    def parts(self, one: Comparison) -> tuple[Decision, ...]:
        """What is shown of each part of a task's data, metric after metric."""
        return tuple(
            _of_task(
                one,
                f"{part.slice} {part.value}",
                metric,
                {run: of[metric] for run, of in part.common.items() if metric in of},
                part.differences,
            )
            for metric in one.main
            for part in one.slices or ()
        )

    def without_repeats(self, one: Comparison) -> list[Difference]:
        """The differences of a task, but for a repeat whose mean over repeats is tested."""
        in_means = {
            (mean.difference.metric, frozenset((mean.difference.first, mean.difference.second)))
            for mean in self.mean_differences or ()
            if mean.over == "repeats" and one.task in mean.tasks
        }
        return [
            each
            for each in one.differences
            if (each.metric, frozenset((each.first, each.second))) not in in_means
        ]

    def tested(self) -> list[Difference]:
        """All differences, also within slices, for whose tests p values are adjusted together."""
        found = [one.difference for one in self.mean_differences or ()]
        for one in self.comparisons:
            found += self.without_repeats(one)
            found += [each for part in one.slices or () for each in part.differences]
        return [each for each in found if each.p is not None]

    def established(self) -> tuple[tuple[Decision, Better], ...]:
        """Everywhere that one run is better than another; a mean stands for its tasks."""
        return tuple(
            (each, one) for each in self.decisions() if not each.in_mean for one in each.better
        )

    def verdict(self) -> str:
        """Who is better, in one sentence; empty where no two runs were compared.

        Each task counts once, by its first main metric or by that of a mean over it.
        """
        decided = [each for each in self.decisions() if each.first and not each.in_mean]
        counted = [each for each in decided if each.differences]
        if not counted:
            return ""
        labels = self.labels()
        alone = len(counted) == 1
        wins = Counter(each.winner for each in counted if each.winner is not None)
        undecided = [each for each in counted if each.winner is None and each.undecided]
        parts = []
        if wins:
            (leader, most), *others = wins.most_common()
            worse = {each.name for each, one in self.established() if one.loser == leader}
            said = f"{labels[leader]} wins on {_tasks([counted[0].name] * most, len(counted))}"
            if worse or not alone:
                said += f" and is worse on {'it too' if alone else len(worse) or 'none'}"
            parts.append(said + "".join(f", {labels[run]} wins on {n:,}" for run, n in others))
        else:
            pairs = grouped(((one.winner, one.loser), each) for each, one in self.established())
            for (winner, loser), won in pairs.items():
                on = _tasks(list({each.name: None for each in won}), len(counted))
                metrics = {each.metric: None for each in won if not each.first}
                by = f" by {', '.join(metrics)}" if metrics else ""
                parts.append(f"{labels[winner]} is better than {labels[loser]} on {on}{by}")
            undecided = [each for each in undecided if not each.better]
        if undecided:
            parts.append(_undecided(undecided, len(counted)))
        if untested := [
            each.name for each in counted if not any(o.interval for o in each.differences)
        ]:
            parts.append(f"no test is possible on {_tasks(untested, len(counted))}")
        return "; ".join(parts)


def _tasks(names: Sequence[str], of: int) -> str:
    return names[0] if of == 1 else f"{len(names):,} of {of:,} tasks"


def _of_task(
    one: Comparison,
    name: str,
    metric: str,
    common: Mapping[str, MetricResult],
    differences: Iterable[Difference],
) -> Decision:
    own = [run.metrics[metric] for run in one.runs]
    n = max((each.n for each in common.values()), default=0)
    asked = max(each.n + sum(each.missing.values()) for each in own)
    return Decision(
        name=name,
        tasks=(one.task,),
        metric=metric,
        higher_is_better=own[0].higher_is_better,
        first=one.main[:1] == (metric,),
        results=common,
        n=n,
        asked=asked if name == one.task else n,
        differences=tuple(each for each in differences if each.metric == metric),
    )


def _undecided(decisions: Sequence[Decision], of: int) -> str:
    """How many tasks are undecided, and the differences that these people can show."""
    if of == 1:
        counted = f"undecided on {decisions[0].name}"
    elif len(decisions) == of:
        counted = f"undecided on all {of:,} tasks"
    else:
        counted = f"{len(decisions):,} undecided"
    shown: dict[str, float] = {}
    users = set()
    for each in decisions:
        for one in each.undecided:
            if least := least_shown(one):
                shown[each.metric] = max(shown.get(each.metric, 0.0), least)
                users.add(one.users)
    if not shown:  # no value of any person differs
        return counted
    people = " to ".join(f"{one:,}" for one in dict.fromkeys((min(users), max(users))))
    sizes = [(f"{shown[metric]:.2g}".removeprefix("0"), metric)
             for metric in sorted(shown, key=shown.__getitem__)]  # fmt: skip
    span = f"{sizes[0][0]} up"
    if len(sizes) > 1:
        span = " to ".join(f"{size} ({metric})" for size, metric in (sizes[0], sizes[-1]))
    return f"{counted}: {people} people can show differences from {span}"


def holm_adjusted(document: ComparisonDocument) -> ComparisonDocument:
    """The document with p values adjusted after Holm for all its tests together.

    A single repeat is no test beside the mean over repeats.
    """
    from harness.scoring.stats import holm

    values = [each.p for each in document.tested() if each.p is not None]
    known = dict(zip(values, holm(values), strict=True))

    def adjusted(each: Difference, is_test: bool = True) -> Difference:
        p = known[each.p] if is_test and each.p is not None else None
        return msgspec.structs.replace(each, p_holm=p)

    comparisons = []
    for one in document.comparisons:
        tests = document.without_repeats(one)
        parts = tuple(
            msgspec.structs.replace(part, differences=tuple(map(adjusted, part.differences)))
            for part in one.slices or ()
        )
        own = tuple(adjusted(each, each in tests) for each in one.differences)
        comparisons.append(msgspec.structs.replace(one, differences=own, slices=parts or UNSET))
    means = tuple(
        msgspec.structs.replace(mean, difference=adjusted(mean.difference))
        for mean in document.mean_differences or ()
    )
    return msgspec.structs.replace(
        document, comparisons=tuple(comparisons), mean_differences=means or UNSET
    )


def write_comparisons(path: Path, document: ComparisonDocument) -> None:
    """Write comparisons to a file, atomically and without secrets."""
    values = without_key_material(msgspec.to_builtins(document))
    data = msgspec.json.format(msgspec.json.encode(values), indent=2) + b"\n"
    atomic_write(path, data, option="--output")


class RankInterval(NamedTuple):
    """The ranks that a run may have.

    `best` is 1 more than the number of better runs, and `worst` leaves out the runs that are worse.
    """

    best: int
    worst: int


def rank_intervals(
    runs: Sequence[str], differences: Iterable[Difference], *, higher_is_better: bool
) -> dict[str, RankInterval]:
    """By run its ranks, from the differences of all pairs, whose p values are adjusted."""
    better = list(better_of(differences, higher_is_better=higher_is_better))
    behind, ahead = Counter(one.loser for one in better), Counter(one.winner for one in better)
    return {run: RankInterval(1 + behind[run], len(runs) - ahead[run]) for run in runs}
