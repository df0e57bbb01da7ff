"""Comparisons of runs of one task, scored against a common oracle if the benchmark has one."""

from __future__ import annotations

import dataclasses
import itertools
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from harness.base.errors import DataError, HarnessError, PluginError
from harness.base.redaction import without_key_material
from harness.contracts.records import Score
from harness.contracts.stage import CANDIDATE
from harness.runs.atomic_files import atomic_write
from harness.scoring.aggregate import Columns, counted_values, sound
from harness.scoring.comparable import (
    THE_CANDIDATE,
    ComparisonSet,
    NoneComparable,
    candidate_of,
    comparison_set,
    follows,
    server_differences,
    settings_of,
)
from harness.scoring.comparison_document import (
    CommonUnits,
    Compared,
    ComparedRun,
    Comparison,
    ComparisonDocument,
    MeanDifference,
    OracleUse,
    Units,
)
from harness.scoring.finished_task import FinishedTask
from harness.scoring.paired_differences import (
    ComparedSlice,
    Difference,
    changed_units,
    differences_of,
    holm_adjusted,
    sliced,
    units_of_slices,
)
from harness.scoring.score_run import chosen_metrics
from harness.scoring.summary import MetricResult, main_metrics

if TYPE_CHECKING:
    from harness.contracts.benchmark import Metric, Oracle


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Rescored:
    """A run's scores against the oracle, without details, and the changed counts."""

    scores: list[Score[Any]]
    counts: dict[str, int]


class _Measured(NamedTuple):
    """By run the metrics on common units, these units and all that count, and the differences."""

    common: dict[str, dict[str, MetricResult]]
    units: dict[str, dict[str, Units]]
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
        rescored = {task.run: _as_kept(task) for task in runs.members}
        metrics, use = chosen_metrics(runs.reference.task, runs.reference.benchmark), None
    else:
        held = None if file is None else read_oracle(file, oracle, runs.reference.options)
        united, rescored, doubts = _against_oracle(runs, oracle, held)
        of_runs = [each.scores for each in rescored.values()]
        metrics, use = _metrics(runs, oracle, file, absent=_absent(oracle, held, of_runs))
    metrics = {name: metric for name, metric in metrics.items() if not only or name in only}
    scores = {run: each.scores for run, each in rescored.items()}
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
                units=len(rescored[task.run].scores),
                counts=rescored[task.run].counts,
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
    on_common = tuple(
        _on_common(task, main, common[task.run], found.units[task.run]) for task in runs.members
    )
    return Compared(comparison, united, on_common)


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
    kept: dict[str, dict[str, Units]] = {run: {} for run in common}
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
        shared = _shared(values)
        for task in having:
            kept[task.run][name] = shared[task.run]
            counting[task.run][name] = values[task.run]
            # However few units are shared.
            units: list[Score[Any]] = [
                Score(id=unit, user=user, values={metric.of or name: value})
                for unit, (user, value) in shared[task.run].items()
            ]
            common[task.run] |= _results(task, units, {name: metric}, least_scored=0.0)
        if pairs:
            one = against.get(name) if isinstance(against, Mapping) else against
            differences += differences_of(runs.reference, name, metric, values, one)
    return _Measured(common, kept, counting, tuple(differences))


def _shared(values: Mapping[str, Units]) -> dict[str, Units]:
    units = set.intersection(*map(set, values.values())) if values else set()
    return {
        run: {unit: one for unit, one in of_run.items() if unit in units}
        for run, of_run in values.items()
    }


def _on_common(
    task: FinishedTask,
    main: tuple[str, ...],
    results: Mapping[str, MetricResult],
    units: Mapping[str, Units],
) -> CommonUnits:
    shown = {name: results[name] for name in main if name in results}
    summary = msgspec.structs.replace(task.summary, metrics=shown, main=main)
    return CommonUnits(**{**vars(task), "summary": summary}, common=units)


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
) -> tuple[Any, dict[str, _Rescored], tuple[str, ...]]:
    """The oracle of all runs, the scores of each run against it, and doubts.

    The stored scores are read again each time, a unit at a time: all details need much memory.
    """
    try:
        united = oracle.gather(_scores(runs), held)
        rescored = {task.run: _rescored(task, oracle, united) for task in runs.members}
        return united, rescored, tuple(oracle.doubts(_scores(runs))) if oracle.doubts else ()
    except HarnessError:
        raise
    except Exception as error:
        raise PluginError(
            f"benchmark {runs.reference.benchmark.name!r} failed to compare runs",
            found=traceback.format_exc(limit=-4).strip(),
            hint="the scores are kept: fix the benchmark, then run `harness score`",
        ) from error


def _as_kept(task: FinishedTask) -> _Rescored:
    scores = [msgspec.structs.replace(each, details=None, counts={}) for each in task.scores()]
    return _Rescored(scores=scores, counts={})


def _scores(runs: ComparisonSet) -> Iterator[Score[Any]]:
    return (score for task in runs.members for score in task.scores())


def _rescored(task: FinishedTask, oracle: Oracle, united: Any) -> _Rescored:
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    scores = []
    for score in task.scores():
        rescored = sound(oracle.rescore(score, united, task.options))
        before.update(score.counts)
        after.update(rescored.counts)
        scores.append(msgspec.structs.replace(rescored, details=None, counts={}))
    names = sorted(before.keys() | after.keys())
    counts = {name: after[name] for name in names if after[name] != before[name]}
    return _Rescored(scores=scores, counts=counts)


def _absent(oracle: Oracle, held: Any, scores: Iterable[Sequence[Score[Any]]]) -> tuple[int, int]:
    everybody = {score.user for of_run in scores for score in of_run}
    if held is None or oracle.users is None:
        return 0, len(everybody)
    return len(everybody.difference(oracle.users(held))), len(everybody)


def _metrics(
    runs: ComparisonSet, oracle: Oracle, file: Path | None, *, absent: tuple[int, int]
) -> tuple[dict[str, Metric], OracleUse]:
    """The task's metrics, with a warning in the notes of those that depend on the oracle."""
    metrics = chosen_metrics(runs.reference.task, runs.reference.benchmark)
    moved = {name for name, each in metrics.items() if {name, each.of} & {*oracle.metrics}}
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
