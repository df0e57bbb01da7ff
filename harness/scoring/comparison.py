"""Comparisons of runs of one task, scored against a common oracle if the benchmark has one."""

from __future__ import annotations

import dataclasses
import itertools
import math
import traceback
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from harness.base.errors import DataError, HarnessError, PluginError, UsageError
from harness.base.hashing import stable_int
from harness.base.redaction import without_key_material
from harness.contracts.records import Score
from harness.runs.atomic_files import atomic_write
from harness.scoring.aggregate import Columns, counted_values, sound
from harness.scoring.comparable import (
    ComparisonSet,
    Refused,
    candidate_of,
    comparison_set,
    server_differences,
)
from harness.scoring.finished_task import FinishedTask
from harness.scoring.score_run import chosen_metrics
from harness.scoring.summary import MetricResult

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


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The metric of the first run minus that of the second, over the units that both have scored.

    The interval is from a paired bootstrap: the same users are drawn for both runs. `p` is from
    the paired permutation test, `exact` if the test used all possible exchanges, and `p_holm` is
    adjusted for all tests of the comparison; without a `p`, `no_p` is the reason. `value` is None
    if the statistic of the common units is undefined for one of the runs.
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
    """

    task: str
    version: int
    benchmark: str
    roles: dict[str, str]
    data: dict[str, Any]
    not_comparable_because: tuple[str, ...]
    chosen: str
    runs: tuple[ComparedRun, ...]
    refused: tuple[Refused, ...]
    oracle: OracleUse | None
    differences: tuple[Difference, ...]
    doubts: tuple[str, ...] = ()


class ComparisonDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A file of comparisons."""

    format: int = FORMAT
    comparisons: tuple[Comparison, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Rescored:
    """A run's scores against the oracle, without details, and the changed counts."""

    scores: list[Score[Any]]
    counts: dict[str, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Together:
    """The oracle of all runs and the file, each run's scores against it, and doubts."""

    united: Any
    rescored: dict[str, _Rescored]
    doubts: tuple[str, ...]


def read_oracle(path: Path, oracle: Oracle, options: Any) -> Any:
    """The oracle in a file, for runs with these options; DataError if there is none."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(
            "the oracle cannot be read",
            where=str(path),
            found=error.strerror or str(error),
            expected="a file that `harness score --export_oracle` wrote",
        ) from error
    try:
        return oracle.read(data, options)
    except HarnessError as error:
        error.where = f"{path}, {error.where}" if error.where else str(path)
        raise


def compare(
    tasks: Sequence[FinishedTask], *, file: Path | None = None, force: bool = False
) -> tuple[Comparison, Any]:
    """The comparison of runs of one task, and the oracle of these runs and a file.

    If the benchmark has no oracle, it is None, and the runs' own scores are compared.
    """
    runs = comparison_set(tasks, force=force)
    oracle = runs.reference.benchmark.oracle
    if not runs.members:
        raise UsageError(
            f"no run of task {runs.reference.task.name!r} can be compared",
            found="; ".join(f"{each.run}: {', '.join(each.because)}" for each in runs.refused),
            hint="add --force to compare them anyway; they are marked then",
        )
    if oracle is None:
        together = _Together(
            united=None, rescored={task.run: _as_kept(task) for task in runs.members}, doubts=()
        )
        metrics, use = chosen_metrics(runs.reference.task, runs.reference.benchmark), None
    else:
        held = None if file is None else read_oracle(file, oracle, runs.reference.options)
        together = _against_oracle(runs, oracle, held)
        of_runs = [each.scores for each in together.rescored.values()]
        metrics, use = _metrics(runs, oracle, file, absent=_absent(oracle, held, of_runs))
    scores = {run: each.scores for run, each in together.rescored.items()}
    own = {task.run: _results(task, scores[task.run], metrics) for task in runs.members}
    common: dict[str, dict[str, MetricResult]] = {task.run: {} for task in runs.members}
    differences: list[Difference] = []
    for name, metric in metrics.items():
        having = [task for task in runs.members if own[task.run][name].value is not None]
        of_others = runs.reference.benchmark.stages_of_others
        values = {
            task.run: counted_values(scores[task.run], name, metric, of_others) for task in having
        }
        units = set.intersection(*map(set, values.values())) if values else set()
        for task in having:
            common[task.run] |= _common(task, name, metric, values[task.run], units)
        differences += _differences(runs.reference, name, metric, values)
    reasons = [why for task in runs.members for why in task.summary.not_comparable_because]
    summary = runs.reference.summary
    comparison = Comparison(
        task=summary.task,
        version=summary.version,
        benchmark=summary.benchmark,
        roles={role: name for role, name in summary.roles.items() if role != "candidate"},
        data=summary.data,
        not_comparable_because=tuple(dict.fromkeys(reasons)),
        chosen=runs.chosen,
        runs=tuple(
            ComparedRun(
                run=task.run,
                path=str(task.path),
                label=task.label,
                model=task.manifest.model,
                marks=runs.marks[task.run],
                units=len(scores[task.run]),
                counts=together.rescored[task.run].counts,
                metrics=own[task.run],
                common=common[task.run],
            )
            for task in runs.members
        ),
        refused=runs.refused,
        oracle=use,
        differences=_adjusted(differences),
        doubts=(*together.doubts, *server_differences(runs.members)),
    )
    return comparison, together.united


def _against_oracle(runs: ComparisonSet, oracle: Oracle, held: Any) -> _Together:
    """The oracle of all runs, and the scores of each run against it.

    The stored scores are read again each time, a unit at a time: all details need much memory.
    """
    try:
        united = oracle.gather(_scores(runs), held)
        return _Together(
            united=united,
            rescored={task.run: _rescored(task, oracle, united) for task in runs.members},
            doubts=tuple(oracle.doubts(_scores(runs))) if oracle.doubts else (),
        )
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
    """How many of the runs' users are not in the file, and of how many; 0 without a file."""
    everybody = {score.user for of_run in scores for score in of_run}
    if held is None or oracle.users is None:
        return 0, len(everybody)
    return len(everybody.difference(oracle.users(held))), len(everybody)


def _metrics(
    runs: ComparisonSet, oracle: Oracle, file: Path | None, *, absent: tuple[int, int]
) -> tuple[dict[str, Metric], OracleUse]:
    """The task's metrics, with a warning in the notes of those that depend on the oracle.

    `absent` is how many users are not in the file, and of how many.
    """
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


def _common(
    task: FinishedTask,
    name: str,
    metric: Metric,
    values: Mapping[str, tuple[str, float]],
    units: Collection[str],
) -> dict[str, MetricResult]:
    """A metric of a run over the units that count for every run with the metric."""
    kept: list[Score[Any]] = [
        Score(id=unit, user=user, values={metric.of or name: value})
        for unit, (user, value) in values.items()
        if unit in units
    ]
    return _results(task, kept, {name: metric}, least_scored=0.0)


def _differences(
    reference: FinishedTask,
    name: str,
    metric: Metric,
    values: Mapping[str, Mapping[str, tuple[str, float]]],
) -> Iterator[Difference]:
    """The difference of each two runs that have scored the same units."""
    for first, second in itertools.combinations(values, 2):
        pairs = [
            (user, value, values[second][unit][1])
            for unit, (user, value) in values[first].items()
            if unit in values[second]
        ]
        if pairs:
            yield _difference(reference, name, metric, (first, second), pairs)


def _difference(
    reference: FinishedTask,
    name: str,
    metric: Metric,
    runs: tuple[str, str],
    pairs: Sequence[tuple[str, float, float]],
) -> Difference:
    import numpy as np

    from harness.scoring.stats import (
        Interval,
        PValue,
        Undefined,
        paired_interval,
        paired_p,
        statistic_of,
    )

    users, ours, theirs = zip(*pairs, strict=True)
    first, second = np.array(ours), np.array(theirs)
    clusters = np.array([stable_int(user) for user in users], dtype=np.uint64)
    interval = reference.task.interval
    drawn = paired_interval(
        first,
        second,
        clusters,
        seed=stable_int("paired", reference.manifest.seed, reference.task.name, name),
        statistic=metric.statistic,
        draws=interval.draws,
        confidence=interval.confidence,
        method=interval.method,
    )
    test: PValue | Undefined = Undefined("it is measured without any model")
    if not metric.baseline:
        test = paired_p(
            first,
            second,
            clusters,
            seed=stable_int("exchanged", reference.manifest.seed, reference.task.name, name),
            statistic=metric.statistic,
        )
    value = statistic_of(first, metric.statistic) - statistic_of(second, metric.statistic)
    return Difference(
        metric=name,
        first=runs[0],
        second=runs[1],
        value=value if math.isfinite(value) else None,
        n=len(pairs),
        users=len(set(users)),
        interval=(drawn.low, drawn.high) if isinstance(drawn, Interval) else None,
        confidence=interval.confidence,
        no_interval=None if isinstance(drawn, Interval) else drawn.reason,
        interval_method=interval.method,
        p=test.value if isinstance(test, PValue) else None,
        exact=isinstance(test, PValue) and test.exact,
        no_p=None if isinstance(test, PValue) else test.reason,
    )


def _adjusted(found: Sequence[Difference]) -> tuple[Difference, ...]:
    """The differences with p values adjusted after Holm for all tests among them."""
    from harness.scoring.stats import holm

    adjusted = iter(holm([each.p for each in found if each.p is not None]))
    return tuple(
        each if each.p is None else msgspec.structs.replace(each, p_holm=next(adjusted))
        for each in found
    )


def write_comparisons(path: Path, comparisons: Sequence[Comparison]) -> None:
    """Write comparisons to a file, atomically and without secrets."""
    document = ComparisonDocument(comparisons=tuple(comparisons))
    values = without_key_material(msgspec.to_builtins(document))
    data = msgspec.json.format(msgspec.json.encode(values), indent=2) + b"\n"
    atomic_write(path, data, option="--output")
