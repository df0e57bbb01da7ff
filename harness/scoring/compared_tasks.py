"""Comparisons of all tasks that several runs have finished."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.base.errors import DataError, HarnessError, UsageError, did_you_mean
from harness.scoring.comparison import (
    Compared,
    ComparisonDocument,
    adjusted,
    common_means,
    compare,
    main_of,
)
from harness.scoring.finished_task import FinishedTask
from harness.scoring.score_run import chosen_metrics


class ComparedTasks(NamedTuple):
    """The comparisons, and errors for the tasks that are `skipped` or that `failed`."""

    compared: list[Compared]
    skipped: list[DataError]
    failed: list[HarnessError]

    def document(self) -> ComparisonDocument:
        """The comparisons with p values adjusted for all tests, and the means over their tasks."""
        comparisons = adjusted([each.comparison for each in self.compared])
        return ComparisonDocument(comparisons=tuple(comparisons), means=common_means(self.compared))


def compare_tasks(
    tasks: Iterable[FinishedTask],
    *,
    metrics: Sequence[str] = (),
    everything: bool = False,
    against: str | None = None,
    force: bool = False,
    oracle: Path | None = None,
    alone: bool = False,
) -> ComparedTasks:
    """The comparison of each task; without `metrics` of its main ones.

    With `everything`, all metrics and all pairs of runs are compared. `oracle` is the file of an
    oracle. With `alone`, a task of one run is compared with the file if it has an oracle. Raises
    UsageError for a metric that no task has.
    """
    by_name: dict[str, list[FinishedTask]] = {}
    for task in tasks:
        by_name.setdefault(task.task.name, []).append(task)
    known = {
        name: chosen_metrics(of_runs[0].task, of_runs[0].benchmark)
        for name, of_runs in by_name.items()
    }
    _check_metrics(metrics, list(dict.fromkeys(each for names in known.values() for each in names)))
    found = ComparedTasks([], [], [])
    for name, of_runs in by_name.items():
        asked = [metric for metric in metrics if metric in known[name]]
        why = ""
        if len(of_runs) < 2 and not (alone and of_runs[0].benchmark.oracle is not None):
            why = f"only {of_runs[0].label} has finished it"
        elif metrics and not asked:
            why = f"it has no metric {' or '.join(metrics)}"
        if why:
            found.skipped.append(DataError(f"task {name} is not compared: {why}"))
            continue
        try:
            compared = compare(
                of_runs,
                file=oracle,
                force=force,
                only=asked or (() if everything else main_of(of_runs[0], known[name])),
                all_pairs=everything,
                against=against,
            )
            found.compared.append(compared)
        except HarnessError as error:
            found.failed.append(error)
    return found


def _check_metrics(wanted: Sequence[str], known: Sequence[str]) -> None:
    for name in wanted:
        if known and name not in known:
            raise UsageError(
                f"no task of these runs has a metric {name!r}",
                where="--metric",
                expected=", ".join(known),
                hint=did_you_mean(name, known),
            )
