"""Comparisons of runs: of all tasks that they finished, or of several tasks of one run.

The runs of a task are scored against a common oracle if the benchmark has one.
"""

from __future__ import annotations

import dataclasses
import itertools
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET

from harness.base.errors import (
    DataError,
    HarnessError,
    PluginError,
    UsageError,
    one_of,
)
from harness.base.redaction import without_key_material
from harness.contracts.records import Score
from harness.contracts.stage import CANDIDATE
from harness.runs.atomic_files import atomic_write
from harness.scoring.aggregate import Columns, counted_values, sound, with_computed
from harness.scoring.comparable import (
    THE_CANDIDATE,
    ComparisonSet,
    NoneComparable,
    Refused,
    candidate_of,
    comparison_set,
    follows,
    named_differences,
    server_differences,
    settings_of,
)
from harness.scoring.differences import (
    ChangedUnits,
    ComparedSlice,
    Difference,
    Units,
    changed_units,
    differences_of,
    holm_adjusted,
    is_established,
    sliced,
    units_of_slices,
)
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.means import (
    CommonUnits,
    MeanDifference,
    MeanOverTasks,
    difference_of_mean,
    means_of,
)
from harness.scoring.score_run import chosen_metrics
from harness.scoring.summary import MetricResult, main_metrics
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.contracts.benchmark import Metric, Oracle


FORMAT = 1


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


class ComparisonDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Comparisons, and by run its means over groups and repeats, on common units.

    `mean_differences` are the differences of these means, `gates` the decided gates.
    """

    format: int = FORMAT
    comparisons: tuple[Comparison, ...]
    means: dict[str, tuple[MeanOverTasks, ...]] = {}
    mean_differences: tuple[MeanDifference, ...] | msgspec.UnsetType = msgspec.UNSET
    gates: tuple[DecidedGate, ...] | msgspec.UnsetType = msgspec.UNSET


class Compared(NamedTuple):
    """A comparison, the oracle of its runs and a file, and each run's task on common units."""

    comparison: Comparison
    oracle: Any
    tasks: tuple[CommonUnits, ...]


class ComparedTasks(NamedTuple):
    """The comparisons, and errors for the tasks that are `skipped` or that `failed`."""

    compared: list[Compared]
    skipped: list[DataError]
    failed: list[HarnessError]

    def compares_repeat_of(self, name: str) -> bool:
        """Whether another repeat of the task is compared; only the first is compared by slice."""
        known = {task_and_repeat(each.comparison.task)[0] for each in self.compared}
        return task_and_repeat(name)[0] in known

    def document(self) -> ComparisonDocument:
        """The comparisons, and the means over their tasks, with p values adjusted for all tests."""
        one_run = any(each.comparison.within for each in self.compared)
        means = {} if one_run else common_means(self.compared)
        found = list(differences_of_means(self.compared, means))
        comparisons, differences = adjusted_together(
            [each.comparison for each in self.compared], found
        )
        return ComparisonDocument(
            comparisons=tuple(comparisons),
            means=means,
            mean_differences=tuple(differences) or UNSET,
        )


def compare_tasks(
    tasks: Iterable[FinishedTask],
    *,
    metrics: Sequence[str] = (),
    everything: bool = False,
    against: str | None = None,
    force: bool = False,
    oracle: Path | None = None,
    alone: bool = False,
    by: str | None = None,
    gated: Mapping[str, Sequence[str]] = {},
) -> ComparedTasks:
    """The comparison of each task; without `metrics` of its main ones.

    Without `against`, three or more runs are compared with the one that has the best value. With
    `everything`, all metrics and all pairs of runs are compared. `oracle` is the file of an
    oracle. With `alone`, a task of one run is compared with the file if it has an oracle. `by` is a
    slice of the data, by which the first repeat of a task is compared, `gated` are further metrics
    by task. Raises UsageError for a metric or slice that no task has.
    """
    by_name = grouped((task.task.name, task) for task in tasks)
    known = {
        name: chosen_metrics(of_runs[0].task, of_runs[0].benchmark)
        for name, of_runs in by_name.items()
    }
    every = dict.fromkeys(each for names in known.values() for each in names)
    for name in metrics if every else ():
        one_of(name, every, f"no task of these runs has a metric {name!r}", where="--metric")
    best: dict[str, dict[str, str]] = {}
    found = ComparedTasks([], [], [])
    for name, of_runs in by_name.items():
        asked = [metric for metric in metrics if metric in known[name]]
        further = [metric for metric in gated.get(name, ()) if metric in known[name]]
        why = ""
        if len(of_runs) < 2 and not (alone and of_runs[0].benchmark.oracle is not None):
            why = f"only {of_runs[0].label} has finished it"
        elif metrics and not [*asked, *further]:
            why = f"it has no metric {' or '.join(metrics)}"
        if why:
            found.skipped.append(DataError(f"task {name} is not compared: {why}"))
            continue
        try:
            main = (*asked,) if metrics else main_of(of_runs[0], known[name])
            base: str | Mapping[str, str] | None = against
            if against is None and len(of_runs) > 2 and not everything:
                # All repeats of a task are compared with the same runs, so that their mean is too.
                base = best.setdefault(task_and_repeat(name)[0], best_runs(of_runs, main))
            compared = compare(
                of_runs,
                file=oracle,
                force=force,
                only=() if everything and not metrics else tuple(dict.fromkeys((*main, *further))),
                all_pairs=everything,
                against=base,
                by=None if found.compares_repeat_of(name) else by,
            )
            found.compared.append(compared)
        except HarnessError as error:
            found.failed.append(error)
    if by is not None:
        check_slice(by, found.compared)
    return found


def check_slice(name: str, compared: Sequence[Compared]) -> None:
    """Raise UsageError if no task that was compared has such a slice."""
    if not compared or any(each.comparison.slices for each in compared):
        return
    scores = (score for each in compared for score in each.tasks[0].scores())
    known = sorted({slice for score in scores for slice in score.slices or ()})
    one_of(
        name, known, f"no task of these runs has a slice {name!r}", where="--by",
        none="runs of a benchmark whose scores have slices",
    )  # fmt: skip


PEOPLE = ("benchmark", "data", "limit", "seed")
"""The settings, besides the chosen people, that decide which people a task asks about."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Method(FinishedTask):
    """A task that takes the place of a run."""

    @property
    def run(self) -> str:
        return self.task.name


def compare_methods(
    tasks: Sequence[FinishedTask],
    *,
    metrics: Sequence[str] = (),
    everything: bool = False,
    force: bool = False,
    against: str | None = None,
    by: str | None = None,
) -> Compared:
    """The comparison of tasks of one run; what else differs than the people is compared and named.

    Without `metrics` the main ones are compared, with `everything` all. `against` is a task.
    """
    benchmarks = {one.task.name: one.task.benchmark for one in tasks}
    if len({*benchmarks.values()}) > 1:
        raise UsageError(
            "the tasks are not of one benchmark",
            where="--tasks",
            found=", ".join(f"{name} of {benchmark}" for name, benchmark in benchmarks.items()),
            expected="tasks of one benchmark, such as two methods",
        )
    known = chosen_metrics(tasks[0].task, tasks[0].benchmark)
    shared = [
        name
        for name in known
        if all(name in chosen_metrics(one.task, one.benchmark) for one in tasks)
    ]
    for name in metrics:
        problem = f"the tasks do not share a metric {name!r}"
        one_of(name, shared, problem, where="--metric", found=", ".join(benchmarks))
    main = main_of(tasks[0], shared)
    methods = [_Method(**{**vars(one), "label": one.task.name}) for one in tasks]

    def people(task: FinishedTask) -> Mapping[str, Any]:
        every = settings_of(task)
        return {name: each for name, each in every.items() if name in PEOPLE or "chosen " in name}

    found = compare(
        methods,
        only=metrics or (shared if everything else main),
        all_pairs=everything,
        against=against,
        force=force,
        by=by,
        settings=people,
    )
    first, *others = methods
    doubts = [
        f"{one.task.name} against {first.task.name}: {'; '.join(ways)}"
        for one in others
        if (ways := named_differences(settings_of(one), settings_of(first)))
    ]
    comparison = msgspec.structs.replace(
        found.comparison,
        task=tasks[0].task.benchmark,
        within=tasks[0].run,
        chosen="tasks of one run on the same people",
        doubts=(*found.comparison.doubts, *doubts),
    )
    return found._replace(comparison=comparison)


Rescored = tuple[list[Score[Any]], dict[str, int]]
"""A run's scores against the oracle, without details, and the changed counts."""


class _Measured(NamedTuple):
    """By run the metrics on common units and all units that count, and the differences."""

    common: dict[str, dict[str, MetricResult]]
    counting: dict[str, dict[str, Units]]
    differences: tuple[Difference, ...]


def read_oracle(path: Path, oracle: Oracle, options: Any) -> Any:
    """The oracle in a file, for runs with these options; DataError if there is none."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(
            "the oracle cannot be read",
            where=str(path),
            found=error.strerror or str(error),
            expected="a file that `harness compare --export_oracle` wrote",
        ) from error
    try:
        return oracle.read(data, options)
    except HarnessError as error:
        error.where = f"{path}, {error.where}" if error.where else str(path)
        raise


def compare(
    tasks: Sequence[FinishedTask],
    *,
    file: Path | None = None,
    force: bool = False,
    only: Collection[str] = (),
    all_pairs: bool = True,
    against: str | Mapping[str, str] | None = None,
    by: str | None = None,
    settings: Callable[[FinishedTask], Mapping[str, Any]] = settings_of,
) -> Compared:
    """The comparison of runs of one task, scored against the oracle of these runs and a file.

    If the benchmark has no oracle, it is None, and the runs' own scores are compared. `only` names
    the metrics; without it all are compared. The run `against`, one for all metrics or by metric,
    is subtracted from each other one; without it each run is subtracted from those before it, of
    more than two only with `all_pairs`. `by` names a slice of the data. `settings` are
    what the runs must agree in.
    """
    runs = comparison_set(tasks, force=force, settings=settings)
    oracle = runs.reference.benchmark.oracle
    if not runs.members:
        raise NoneComparable(runs.reference.task.name, runs.refused)
    united, doubts = None, tuple[str, ...]()
    if oracle is None:
        rescored = {
            task.run: ([_bare(score) for score in task.scores()], dict[str, int]())
            for task in runs.members
        }
        metrics, use = chosen_metrics(runs.reference.task, runs.reference.benchmark), None
    else:
        held = None if file is None else read_oracle(file, oracle, runs.reference.options)
        united, rescored, doubts = _against_oracle(runs, oracle, held)
        users = {score.user for each, _ in rescored.values() for score in each}
        covered = oracle.users(held) if held is not None and oracle.users else users
        metrics, use = _metrics(runs, oracle, file, absent=(len(users - {*covered}), len(users)))
    metrics = {name: metric for name, metric in metrics.items() if not only or name in only}
    scores = {run: each for run, (each, _) in rescored.items()}
    own = {task.run: _results(task, scores[task.run], metrics) for task in runs.members}
    pairs = all_pairs or against is not None or len(runs.members) == 2
    found = _measured(runs, metrics, scores, own, against=against, pairs=pairs)
    common = found.common
    parts: list[ComparedSlice] = []
    for value, units in (units_of_slices(scores, by) if by is not None else {}).items():
        part = _measured(runs, metrics, scores, own, units, against=against, pairs=pairs)
        parts.append(sliced(by or "", value, part.common, part.differences))
    reasons = [why for task in runs.members for why in task.summary.not_comparable_because]
    summary = runs.reference.summary
    named = tuple(name for name in only if name in metrics)
    main = named or main_of(runs.reference, metrics)
    comparison = Comparison(
        task=summary.task,
        version=summary.version,
        benchmark=summary.benchmark,
        roles={
            role: THE_CANDIDATE if follows(runs.reference, role) else name
            for role, name in summary.roles.items()
            if role != CANDIDATE
        },
        data=summary.data,
        not_comparable_because=tuple(dict.fromkeys(reasons)),
        chosen=runs.chosen,
        main=main,
        runs=tuple(
            ComparedRun(
                run=task.run,
                path=str(task.path),
                label=task.label,
                model=task.manifest.model,
                marks=runs.marks[task.run],
                units=len(scores[task.run]),
                counts=rescored[task.run][1],
                metrics=own[task.run],
                common=common[task.run],
            )
            for task in runs.members
        ),
        refused=runs.refused,
        oracle=use,
        differences=found.differences,
        doubts=(*doubts, *server_differences(runs.members)),
        slices=tuple(parts) or msgspec.UNSET,
        changed=tuple(changed_units(found.differences, runs.members, found.counting, metrics))
        or msgspec.UNSET,
    )
    (comparison,), _ = adjusted_together([comparison], ())
    on_common = []
    for task in runs.members:
        shown = {name: common[task.run][name] for name in main if name in common[task.run]}
        kept = msgspec.structs.replace(task.summary, metrics=shown, main=main)
        shared = {one: _shared(one, found.counting)[task.run] for one in found.counting[task.run]}
        on_common.append(CommonUnits(**{**vars(task), "summary": kept}, common=shared))
    return Compared(comparison, united, tuple(on_common))


def _measured(
    runs: ComparisonSet,
    metrics: Mapping[str, Metric],
    scores: Mapping[str, Sequence[Score[Any]]],
    own: Mapping[str, Mapping[str, MetricResult]],
    only: Collection[str] | None = None,
    *,
    against: str | Mapping[str, str] | None,
    pairs: bool,
) -> _Measured:
    """The metrics on common units, with differences if `pairs`; `only` names the units that count.

    A run without a value of a metric, as `own` has it, is left out of it.
    """
    common: dict[str, dict[str, MetricResult]] = {task.run: {} for task in runs.members}
    counting: dict[str, dict[str, Units]] = {run: {} for run in common}
    differences: list[Difference] = []
    if only is not None:
        scores = {run: [one for one in of if one.id in only] for run, of in scores.items()}
    of_others = runs.reference.benchmark.stages_of_others
    for name, metric in metrics.items():
        having = [task for task in runs.members if own[task.run][name].value is not None]
        values = {
            task.run: counted_values(scores[task.run], name, metric, of_others) for task in having
        }
        for task in having:
            counting[task.run][name] = values[task.run]
        shared = _shared(name, counting)
        for task in having:
            # However few units are shared.
            units: list[Score[Any]] = [
                Score(id=unit, user=user, values={metric.of or name: value})
                for unit, (user, value) in shared[task.run].items()
            ]
            common[task.run] |= _results(task, units, {name: metric}, least_scored=0.0)
        if pairs:
            one = against.get(name) if isinstance(against, Mapping) else against
            differences += differences_of(runs.reference, name, metric, values, one)
    return _Measured(common, counting, tuple(differences))


def _shared(metric: str, counting: Mapping[str, Mapping[str, Units]]) -> dict[str, Units]:
    """By run the units of a metric that all runs with a value of it have."""
    values = {run: of_run[metric] for run, of_run in counting.items() if metric in of_run}
    units = set.intersection(*map(set, values.values())) if values else set()
    return {
        run: {unit: one for unit, one in of_run.items() if unit in units}
        for run, of_run in values.items()
    }


def main_of(task: FinishedTask, metrics: Collection[str]) -> tuple[str, ...]:
    """The main metrics of a task among these, and after them those of runs that share an oracle."""
    oracle = task.benchmark.oracle
    known = {name: task.benchmark.metrics[name] for name in metrics}
    main = main_metrics(task.summary.main, known)
    further = [name for name in (oracle.main if oracle else ()) if name in metrics]
    return tuple(dict.fromkeys((*main, *further)))


def best_runs(
    tasks: Sequence[FinishedTask], metrics: Iterable[str], bases: Collection[str] = ()
) -> dict[str, str]:
    """By metric the run that others are compared with: one of `bases`, else that of the best value.

    Only runs that can be compared are there.
    """
    found: dict[str, str] = {}
    members = comparison_set(tasks).members
    base = next((task.run for task in members if task.run in bases), None)
    for metric in metrics:
        values: dict[str, float] = {}
        for task in members:
            result = task.summary.metrics.get(metric)
            if result is not None and result.value is not None:
                values[task.run] = result.value if result.higher_is_better else -result.value
        if values:
            found[metric] = base or max(values, key=values.__getitem__)
    return found


def _against_oracle(
    runs: ComparisonSet, oracle: Oracle, held: Any
) -> tuple[Any, dict[str, Rescored], tuple[str, ...]]:
    """The oracle of all runs, the scores of each run against it, and doubts.

    The stored scores are read again each time, a unit at a time: all details need much memory.
    """

    def scores() -> Iterator[Score[Any]]:
        return (score for task in runs.members for score in task.scores())

    try:
        united = oracle.gather(scores(), held)
        rescored = {task.run: _rescored(task, oracle, united) for task in runs.members}
        return united, rescored, tuple(oracle.doubts(scores())) if oracle.doubts else ()
    except HarnessError:
        raise
    except Exception as error:
        raise PluginError(
            f"benchmark {runs.reference.benchmark.name!r} failed to compare runs",
            found=traceback.format_exc(limit=-4).strip(),
            hint="the scores are kept: fix the benchmark, then run `harness score RUN`",
        ) from error


def _bare(score: Score[Any]) -> Score[Any]:
    return msgspec.structs.replace(score, details=None, counts={})


def _rescored(task: FinishedTask, oracle: Oracle, united: Any) -> Rescored:
    metrics = chosen_metrics(task.task, task.benchmark)
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    scores = []
    for score in task.scores():
        rescored = with_computed(sound(oracle.rescore(score, united, task.options)), metrics)
        before.update(score.counts)
        after.update(rescored.counts)
        scores.append(_bare(rescored))
    names = sorted(before.keys() | after.keys())
    counts = {name: after[name] for name in names if after[name] != before[name]}
    return scores, counts


def _metrics(
    runs: ComparisonSet, oracle: Oracle, file: Path | None, *, absent: tuple[int, int]
) -> tuple[dict[str, Metric], OracleUse]:
    """The task's metrics, with a warning in the notes of those that depend on the oracle."""
    metrics = chosen_metrics(runs.reference.task, runs.reference.benchmark)
    moved = {
        name for name, each in metrics.items() if {name, each.of, *each.needs} & {*oracle.metrics}
    }
    many = len(runs.members)
    models = len({candidate_of(task) for task in runs.members})
    those = f"{many} {'run' if many == 1 else 'runs'}"
    warning = None
    if file is None and models < oracle.enough:
        warning = (
            f"the oracle is made of {those} of {models} {'model' if models == 1 else 'models'} and "
            f"needs {oracle.enough} models or more: each added model may change it a lot"
        )
    elif absent[0]:
        warning = (
            f"{file} lacks {absent[0]:,} of {absent[1]:,} users: for them the oracle is made of "
            f"{those} alone"
        )
    noted = {
        name: dataclasses.replace(each, note=warning or "") if name in moved else each
        for name, each in metrics.items()
    }
    use = OracleUse(
        runs=many,
        models=models,
        file=str(file) if file else None,
        metrics=tuple(name for name in metrics if name in moved),
        warning=warning,
    )
    return noted, use


def _results(
    task: FinishedTask,
    scores: Sequence[Score[Any]],
    metrics: Mapping[str, Metric],
    *,
    least_scored: float | None = None,
) -> dict[str, MetricResult]:
    of_others = task.benchmark.stages_of_others
    return Columns(metrics, scores, of_others=of_others).results(
        interval=task.task.interval,
        seed=task.manifest.seed,
        task=task.task.name,
        least_scored=task.task.least_scored if least_scored is None else least_scored,
    )


def adjusted_together(
    comparisons: Sequence[Comparison], means: Sequence[MeanDifference]
) -> tuple[list[Comparison], list[MeanDifference]]:
    """Comparisons and means with p values adjusted after Holm for all their tests together.

    A single repeat is no test beside the mean over repeats.
    """
    repeats = {
        (task, each.difference.metric, frozenset((each.difference.first, each.difference.second)))
        for each in means
        if each.over == "repeats"
        for task in each.tasks
    }

    def tested(one: Comparison, each: Difference) -> bool:
        return (one.task, each.metric, frozenset((each.first, each.second))) not in repeats

    tests = [each.difference for each in means]
    for one in comparisons:
        tests += [each for each in one.differences if tested(one, each)]
        tests += [each for part in one.slices or () for each in part.differences]
    found = iter(holm_adjusted(tests))
    of_means = [msgspec.structs.replace(each, difference=next(found)) for each in means]
    comparisons = [
        msgspec.structs.replace(
            one,
            differences=tuple(
                next(found) if tested(one, each) else msgspec.structs.replace(each, p_holm=None)
                for each in one.differences
            ),
            slices=tuple(
                msgspec.structs.replace(
                    part, differences=tuple(itertools.islice(found, len(part.differences)))
                )
                for part in one.slices or ()
            )
            or msgspec.UNSET,
        )
        for one in comparisons
    ]
    return comparisons, of_means


def write_comparisons(path: Path, document: ComparisonDocument) -> None:
    """Write comparisons to a file, atomically and without secrets."""
    values = without_key_material(msgspec.to_builtins(document))
    data = msgspec.json.format(msgspec.json.encode(values), indent=2) + b"\n"
    atomic_write(path, data, option="--output")


def common_means(compared: Iterable[Compared]) -> dict[str, tuple[MeanOverTasks, ...]]:
    """By run the means of its main metrics over groups and repeats, on common units."""
    return {
        run: means_of(
            next(iter(tasks.values())).manifest,
            [task.summary for task in tasks.values()],
            tasks.__getitem__,
        )
        for run, tasks in _by_run(compared).items()
    }


def differences_of_means(
    compared: Sequence[Compared], means: Mapping[str, Sequence[MeanOverTasks]]
) -> Iterator[MeanDifference]:
    """The difference of each mean that both runs have of the same tasks, for all compared pairs.

    Two runs that tasks compare in either order are one pair, in the order of the first task.
    """
    by_run = _by_run(compared)
    every = (each for one in compared for each in one.comparison.differences)
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for each in every:
        pairs.setdefault(frozenset((each.first, each.second)), (each.first, each.second))
    for first, second in pairs.values():
        theirs = {(mean.over, mean.name, mean.metric): mean for mean in means.get(second, ())}
        for ours in means.get(first, ()):
            other = theirs.get((ours.over, ours.name, ours.metric))
            if other is None or {*ours.tasks} != {*other.tasks}:
                continue
            if ours.value is not None and other.value is not None:
                sides = (
                    {name: by_run[run][name] for name in ours.tasks} for run in (first, second)
                )
                yield difference_of_mean(ours, (first, second), *sides)


def _by_run(compared: Iterable[Compared]) -> dict[str, dict[str, CommonUnits]]:
    found: dict[str, dict[str, CommonUnits]] = {}
    for each in compared:
        for task in each.tasks:
            found.setdefault(task.run, {})[task.task.name] = task
    return found


class WithoutLost(NamedTuple):
    """A difference on the units that neither run lost; None if that leaves a task without units.

    `lost` is by run how many units of the difference it lost. The difference `holds` if it has the
    same sign and is established in the place of the one on all units.
    """

    lost: dict[str, int]
    left: Difference | None
    holds: bool


def without_lost(
    each: Difference, name: str, compared: Sequence[Compared], document: ComparisonDocument
) -> WithoutLost | None:
    """A difference of a task, or of the mean `name`, without the lost units that count in it.

    None if no lost unit counts. A unit is lost if the metric has no value of it.
    """
    runs = (each.first, each.second)
    found = [one for one in document.means.get(each.first, ()) if one.name == name]
    mean = next((one for one in found if one.metric == each.metric), None)
    names = mean.tasks if mean else (name,)
    sides: list[dict[str, CommonUnits]] = [{}, {}]
    lost = dict.fromkeys(runs, 0)
    for one in compared:
        known = {task.run: task for task in one.tasks if each.metric in task.common}
        if one.comparison.task not in names or not known.keys() >= {*runs}:
            continue
        gone = {}
        for run, task in ((run, known[run]) for run in runs):
            column, counted = task.benchmark.metrics[each.metric].of or each.metric, task.common
            gone[run] = {
                score.id
                for score in task.scores()
                if column in score.missing and score.id in counted[each.metric]
            }
        either = set().union(*gone.values())
        for side, run in zip(sides, runs, strict=True):
            units = known[run].units(each.metric)
            kept = {unit: units[unit] for unit in units if unit not in either}
            side[one.comparison.task] = dataclasses.replace(known[run], common={each.metric: kept})
            lost[run] += len(gone[run])
    if not any(lost.values()):
        return None
    left = None
    if all(task.units(each.metric) for task in sides[0].values()):
        if mean:
            left = difference_of_mean(mean, runs, *sides).difference
        else:
            ours, theirs = (side[name] for side in sides)
            metric = ours.benchmark.metrics[each.metric]
            values = {task.run: task.units(each.metric) for task in (ours, theirs)}
            (left,) = differences_of(theirs, each.metric, metric, values, theirs.run)
    if left is None or left.value is None or each.value is None:
        return WithoutLost(lost, left, holds=False)
    others = [one for one in tested_differences(document) if one is not each]
    again = holm_adjusted([left, *others])[0]
    same = (left.value > 0) == (each.value > 0)
    return WithoutLost(lost, again, holds=same and is_established(again))


def tested_differences(document: ComparisonDocument) -> Iterator[Difference]:
    """All differences for whose tests p values are adjusted together."""
    every = [one.difference for one in document.mean_differences or ()]
    for one in document.comparisons:
        every += one.differences
        every += [each for part in one.slices or () for each in part.differences]
    return (each for each in every if each.p_holm is not None)
