"""Gates: bounds that the interval of a difference between two runs must lie beyond."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from harness.base.errors import HarnessError, UsageError, one_of
from harness.comparison.document import Comparison, ComparisonDocument, DecidedGate, least_shown
from harness.comparison.matching import NoneComparable
from harness.scoring.grouping import grouped
from harness.scoring.means import tasks_of_group
from harness.scoring.score_run import chosen_metrics
from harness.scoring.summary import main_metrics
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark, Metric
    from harness.runs.manifest import Manifest

WHERE = "--gate"
EXPECTED = "TASK.METRIC>BOUND, or < for a metric that is better when lower"
_GATE = re.compile(r"\s*([^\s<>]+\.[^\s<>]+)\s*([<>])\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*")


class Gate(NamedTuple):
    """A gate on a metric of a task or group: `tasks` are those of all runs that it is about."""

    text: str
    name: str
    metric: str
    above: bool
    bound: float
    tasks: tuple[str, ...]


class GatedRun(NamedTuple):
    """A compared run: its label and manifest, the benchmarks of its tasks, and which finished."""

    label: str
    manifest: Manifest
    benchmarks: Mapping[str, Benchmark]
    finished: frozenset[str]


def gates_of(texts: Sequence[str], runs: Sequence[GatedRun]) -> tuple[Gate, ...]:
    """The gates of these texts; UsageError for a name or a direction that cannot be meant."""
    names = {name: None for run in runs for name in (*run.manifest.tasks, *run.manifest.groups)}
    return tuple(_gate(text, runs, list(names)) for text in texts)


def check_base(many: int, against: str | None) -> None:
    """Raise UsageError unless gates know which of so many runs is the base."""
    if many < 2 or (many > 2 and against is None):
        raise UsageError(
            "a gate needs to know which run is the base",
            where=WHERE,
            found=f"{many} {'run' if many == 1 else 'runs'} without --against",
            expected="two runs, of which the second is the base, or --against RUN",
        )


def metrics_by_task(gates: Sequence[Gate]) -> dict[str, tuple[str, ...]]:
    """By task, each repeat on its own, the metrics of the gates about it."""
    found = grouped((task, gate.metric) for gate in gates for task in gate.tasks)
    return {task: tuple(dict.fromkeys(metrics)) for task, metrics in found.items()}


def _gate(text: str, runs: Sequence[GatedRun], names: Sequence[str]) -> Gate:
    parts = _GATE.fullmatch(text)
    try:
        bound = float(parts[3]) if parts else math.nan
    except ValueError:
        bound = math.nan
    if parts is None or not math.isfinite(bound):
        raise UsageError("this is no gate", where=WHERE, found=text, expected=EXPECTED)
    dots = [dot for dot, sign in enumerate(parts[1]) if sign == "."]
    ways = [(parts[1][:dot], parts[1][dot + 1 :]) for dot in dots]
    name, metric = next((way for way in ways if way[0] in names), ways[0])
    if names:
        one_of(name, names, f"no run has a task or group {name!r}", where=WHERE, found=text)
    tasks = dict.fromkeys(task for run in runs for task in _tasks(name, run.manifest))
    known = {
        task: chosen_metrics(run.manifest.tasks[task].task(), benchmark)
        for run in runs
        for task, benchmark in run.benchmarks.items()
        if task in tasks
    }
    every = {one: each for metrics in known.values() for one, each in metrics.items()}
    if known:
        one_of(metric, every, f"{name!r} has no metric {metric!r}", where=WHERE, found=text)
    above = parts[2] == ">"
    if metric in every and above is not every[metric].higher_is_better:
        way, sign = ("lower", "<") if above else ("higher", ">")
        raise UsageError(
            f"{metric} is better when {way}, and this gate asks for worse values",
            where=WHERE,
            found=text,
            expected=f"{name}.{metric}{sign}BOUND",
        )
    for run in runs:
        if why := _no_mean(name, metric, run, known):
            raise UsageError(
                f"group {name!r} has no mean of {metric}: {why}",
                where=WHERE,
                found=text,
                expected=f"a gate for each task: {', '.join(f'{task}.{metric}' for task in tasks)}",
            )
    return Gate(text.strip(), name, metric, above, bound, tuple(tasks))


def _tasks(name: str, manifest: Manifest) -> list[str]:
    """The tasks of a name: those of a group, or a task, with all repeats."""
    members = {name}
    if name in manifest.groups:
        members |= {*tasks_of_group(name, manifest.groups)}
    return [one for one in manifest.tasks if {one, task_and_repeat(one)[0]} & members]


def _no_mean(
    name: str, metric: str, run: GatedRun, known: Mapping[str, Mapping[str, Metric]]
) -> str:
    """Why a group of a run has no mean of a metric; empty if it has one, or is no group."""
    manifest = run.manifest
    if name not in manifest.groups or name in manifest.tasks:
        return ""
    if name in manifest.without_mean:
        return "its file says that a mean over its tasks means nothing"
    tasks = [task for task in _tasks(name, manifest) if task in known and task in run.benchmarks]
    if lacking := [task for task in tasks if metric not in known[task]]:
        return f"{', '.join(lacking)} has no such metric"
    if len({task_and_repeat(task)[0] for task in _tasks(name, manifest)}) < 2:
        return "it has one task"
    firsts = {main_metrics(run.benchmarks[task].main, known[task])[:1] for task in tasks}
    return "its tasks have different main metrics" if len(firsts) > 1 else ""


def with_gates(
    document: ComparisonDocument,
    gates: Sequence[Gate],
    runs: Sequence[GatedRun],
    against: str | None,
    failed: Sequence[HarnessError] = (),
) -> ComparisonDocument:
    """The comparison with the decided gates; as it is where there are none.

    Each gate is decided for each run but the base, which is `against` or else the last run.
    """
    by_id = {run.manifest.run_id: run for run in runs}
    base = against if against is not None else next(reversed(by_id), "")
    pairs: list[Sequence[GatedRun]] = [(by_id[run], by_id[base]) for run in by_id if run != base]
    found = [_decided(gate, pair, document, failed) for gate in gates for pair in pairs or [()]]
    return msgspec.structs.replace(document, gates=tuple(found)) if found else document


def _decided(
    gate: Gate,
    runs: Sequence[GatedRun],
    document: ComparisonDocument,
    failed: Sequence[HarnessError],
) -> DecidedGate:
    labels = {run.manifest.run_id: run.label for run in runs}
    first, second = labels or (None, None)
    about: dict[str, Any] = {
        "gate": gate.text, "task": gate.name, "metric": gate.metric, "above": gate.above,
        "bound": gate.bound, "first": first, "second": second, "labels": labels, "holds": None,
    }  # fmt: skip
    # A mean only over all tasks of the gate.
    every = [
        mean.difference
        for mean in document.mean_differences or ()
        if mean.name == gate.name and {*mean.tasks} == {*gate.tasks}
    ]
    for one in document.comparisons if len(gate.tasks) == 1 else ():
        every += one.differences if one.task == gate.name else ()
    wanted = (gate.metric, first, second)
    found = next((one for one in every if (one.metric, one.first, one.second) == wanted), None)
    if not runs:
        about["undecided"] = "a run cannot be read"
    elif found is None:
        about["undecided"] = _why_not(gate, document, runs, failed)
    elif found.value is None or found.interval is None:
        about["undecided"] = f"no interval: {found.no_interval}"
    else:
        low, high = found.interval
        about |= {
            "value": found.value, "interval": found.interval, "confidence": found.confidence,
            "users": found.users, "least_seen": least_shown(found),
            "holds": low > gate.bound if gate.above else high < gate.bound,
        }  # fmt: skip
    return DecidedGate(**about)


def _why_not(
    gate: Gate,
    document: ComparisonDocument,
    runs: Sequence[GatedRun],
    failed: Sequence[HarnessError],
) -> str:
    for run in runs:
        absent = [task for task in gate.tasks if task not in run.finished]
        if absent:
            return f"{run.label} has not finished {', '.join(absent)}"
    ids = {run.manifest.run_id: run.label for run in runs}
    judged: list[Comparison | NoneComparable] = [*document.comparisons]
    judged += [error for error in failed if isinstance(error, NoneComparable)]
    for found in judged:
        unlike = [
            f"{ids[each.run]} is not compared on {found.task}: {'; '.join(each.because)}"
            for each in found.refused
            if found.task in gate.tasks and each.run in ids
        ]
        if unlike:
            return "; ".join(unlike)
    for comparison in document.comparisons:
        if comparison.task in gate.tasks:
            for one in comparison.runs:
                result = one.metrics.get(gate.metric)
                if one.run in ids and result is not None and result.value is None:
                    return f"{ids[one.run]}, {comparison.task}: {result.undefined}"
    compared = [comparison.task for comparison in document.comparisons]
    if absent := [task for task in gate.tasks if task not in compared]:
        return f"{', '.join(absent)} could not be compared"
    return "the runs have no unit in common, or not the same tasks"
