"""Comparisons of runs: of all tasks that they finished, or of several tasks of one run.

The runs of a task are scored against a common oracle if the benchmark has one.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET

from harness.base.errors import DataError, HarnessError, UsageError, one_of
from harness.comparison.differences import (
    CommonUnits,
    Units,
    changed_units,
    difference_of_mean,
    differences_of,
    sliced,
    units_of_slices,
)
from harness.comparison.document import (
    ComparedRun,
    ComparedSlice,
    Comparison,
    ComparisonDocument,
    Difference,
    MeanDifference,
    OracleUse,
    holm_adjusted,
)
from harness.comparison.matching import (
    THE_CANDIDATE,
    ComparisonSet,
    NoneComparable,
    candidate_of,
    comparison_set,
    follows,
    named_differences,
    server_differences,
    settings_of,
)
from harness.contracts.records import Score
from harness.contracts.stage import CANDIDATE
from harness.scoring.aggregate import (
    Columns,
    code_of_benchmark,
    counted_values,
    sound,
    with_computed,
)
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.means import MeanOverTasks, means_of
from harness.scoring.score_run import chosen_metrics
from harness.scoring.summary import MetricResult, main_metrics
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.contracts.benchmark import Metric, Oracle


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

    def document(self) -> ComparisonDocument:
        """The comparisons, and the means over their tasks, with p values adjusted for all tests."""
        by_run: dict[str, dict[str, CommonUnits]] = {}
        for task in (task for each in self.compared for task in each.tasks):
            by_run.setdefault(task.run, {})[task.task.name] = task
        within = any(each.comparison.within for each in self.compared)
        means = {
            run: means_of(
                next(iter(tasks.values())).manifest,
                [task.summary for task in tasks.values()],
                tasks.__getitem__,
            )
            for run, tasks in ({} if within else by_run).items()
        }
        document = ComparisonDocument(
            comparisons=tuple(each.comparison for each in self.compared),
            means=means,
            mean_differences=tuple(self._of_means(by_run, means)) or UNSET,
        )
        return holm_adjusted(document)

    def _of_means(
        self,
        by_run: Mapping[str, Mapping[str, CommonUnits]],
        means: Mapping[str, Sequence[MeanOverTasks]],
    ) -> Iterator[MeanDifference]:
        """The difference of each mean that both runs have of the same tasks, for compared pairs.

        Two runs that tasks compare in either order are one pair, in the order of the first task.
        """
        pairs: dict[frozenset[str], tuple[str, str]] = {}
        for each in (each for one in self.compared for each in one.comparison.differences):
            pairs.setdefault(frozenset((each.first, each.second)), (each.first, each.second))
        for first, second in pairs.values():
            theirs = {(mean.over, mean.name, mean.metric): mean for mean in means.get(second, ())}
            for ours in means.get(first, ()):
                other = theirs.get((ours.over, ours.name, ours.metric))
                if other is None or None in (ours.value, other.value):
                    continue
                if {*ours.tasks} == {*other.tasks}:
                    sides = (
                        {name: by_run[run][name] for name in ours.tasks} for run in (first, second)
                    )
                    yield difference_of_mean(ours, (first, second), *sides)


def compare_tasks(
    tasks: Iterable[FinishedTask],
    *,
    metrics: Sequence[str] = (),
    everything: bool = False,
    against: str | Mapping[str, str] | None = None,
    force: bool = False,
    oracle: Path | None = None,
    alone: bool = False,
    by: str | None = None,
    gated: Mapping[str, Sequence[str]] = {},
) -> ComparedTasks:
    """The comparison of each task; without `metrics` of its main ones.

    Without `against`, a run or by task a run, three or more are compared with the best one. With
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
            repeated = task_and_repeat(name)[0]
            main = (*asked,) if metrics else main_of(of_runs[0], known[name])
            base: str | Mapping[str, str] | None = (
                against.get(repeated) if isinstance(against, Mapping) else against
            )
            if base is None and len(of_runs) > 2 and not everything:
                # All repeats of a task are compared with the same runs, so that their mean is too.
                base = best.setdefault(repeated, best_runs(of_runs, main))
            earlier = {task_and_repeat(each.comparison.task)[0] for each in found.compared}
            compared = compare(
                of_runs,
                file=oracle,
                force=force,
                only=() if everything and not metrics else tuple(dict.fromkeys((*main, *further))),
                all_pairs=everything,
                against=base,
                by=None if repeated in earlier else by,
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
    """By run and metric the units that count, those of them that all runs share, and the result on
    these; and the differences."""

    counting: dict[str, dict[str, Units]]
    shared: dict[str, dict[str, Units]]
    common: dict[str, dict[str, MetricResult]]
    differences: list[Difference]


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
        differences=tuple(found.differences),
        doubts=(*doubts, *server_differences(runs.members)),
        slices=tuple(parts) or msgspec.UNSET,
        changed=tuple(changed_units(found.differences, runs.members, found.counting, metrics))
        or msgspec.UNSET,
    )
    comparison, *_ = holm_adjusted(ComparisonDocument(comparisons=(comparison,))).comparisons
    on_common = []
    for task in runs.members:
        shown = {name: common[task.run][name] for name in main if name in common[task.run]}
        kept = msgspec.structs.replace(task.summary, metrics=shown, main=main)
        fields = {**vars(task), "summary": kept, "common": found.shared[task.run]}
        on_common.append(CommonUnits(**fields))
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
    ids = [task.run for task in runs.members]
    found = _Measured(
        {run: {} for run in ids}, {run: {} for run in ids}, {run: {} for run in ids}, []
    )
    if only is not None:
        scores = {run: [one for one in of if one.id in only] for run, of in scores.items()}
    of_others = runs.reference.benchmark.stages_of_others
    for name, metric in metrics.items():
        having = [task for task in runs.members if own[task.run][name].value is not None]
        values = {
            task.run: counted_values(scores[task.run], name, metric, of_others) for task in having
        }
        units = set.intersection(*map(set, values.values())) if values else set()
        for task in having:
            of_run = values[task.run]
            found.counting[task.run][name] = of_run
            found.shared[task.run][name] = {unit: of_run[unit] for unit in of_run if unit in units}
            on_units: list[Score[Any]] = [
                Score(id=unit, user=user, values={metric.of or name: value})
                for unit, (user, value) in found.shared[task.run][name].items()
            ]
            # However few units are shared.
            found.common[task.run] |= _results(task, on_units, {name: metric}, least_scored=0.0)
        if pairs:
            one = against.get(name) if isinstance(against, Mapping) else against
            found.differences.extend(differences_of(runs.reference, name, metric, values, one))
    return found


def main_of(task: FinishedTask, metrics: Collection[str]) -> tuple[str, ...]:
    """The main metrics of a task among these, and after them those of runs that share an oracle."""
    oracle = task.benchmark.oracle
    known = {name: task.benchmark.metrics[name] for name in metrics}
    main = main_metrics(task.summary.main, known)
    further = [name for name in (oracle.main if oracle else ()) if name in metrics]
    return tuple(dict.fromkeys((*main, *further)))


def best_runs(tasks: Sequence[FinishedTask], metrics: Iterable[str]) -> dict[str, str]:
    """By metric the run with the best value of those that can be compared, if these are several.

    Of two the first minus the second is as good.
    """
    found: dict[str, str] = {}
    members = comparison_set(tasks).members
    for metric in metrics if len(members) > 2 else ():
        values: dict[str, float] = {}
        for task in members:
            result = task.summary.metrics.get(metric)
            if result is not None and result.value is not None:
                values[task.run] = result.value if result.higher_is_better else -result.value
        if values:
            found[metric] = max(values, key=values.__getitem__)
    return found


def _against_oracle(
    runs: ComparisonSet, oracle: Oracle, held: Any
) -> tuple[Any, dict[str, Rescored], tuple[str, ...]]:
    """The oracle of all runs, the scores of each run against it, and doubts.

    The stored scores are read again each time, a unit at a time: all details need much memory.
    """

    def scores() -> Iterator[Score[Any]]:
        return (score for task in runs.members for score in task.scores())

    with code_of_benchmark(
        f"benchmark {runs.reference.benchmark.name!r} failed to compare runs",
        hint="the scores are kept: fix the benchmark, then run `harness score RUN`",
    ):
        united = oracle.gather(scores(), held)
        rescored = {task.run: _rescored(task, oracle, united) for task in runs.members}
        return united, rescored, tuple(oracle.doubts(scores())) if oracle.doubts else ()


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
