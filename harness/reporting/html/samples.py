"""The samples of a report: units of tasks with their records, in the order in which they are kept.

Failures come first, then the worst, then the others by a stable hash; the answers of all runs to
one unit stay next to each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from harness.base.hashing import stable_int
from harness.contracts.records import JournalLine
from harness.runs.journal_index import JournalIndex, JournalRecords
from harness.scoring.finished_task import FinishedTask
from harness.scoring.summary import main_metrics

WORST = 0.1
"""The share of the units with a score that count as the worst."""

RULE = (
    "units with a failure in any run first, then the tenth with the worst scores, then the others "
    "by a stable hash of their id"
)


class Sample(msgspec.Struct, gc=False):
    """One unit of one task of one run; `places` are journals and positions of its records."""

    task: int
    id: str
    user: str
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    slices: dict[str, str] = {}
    failures: list[str] = []
    places: list[tuple[int, int]] = []


class _Outcome(msgspec.Struct, frozen=True, gc=False):
    type: str
    cause: str = ""


class _Bare(msgspec.Struct, frozen=True, gc=False):
    """The parts of a record by which it finds its unit."""

    user: str
    id: str
    outcome: _Outcome


class Journal:
    """The journal of one stage of one task of a report."""

    def __init__(self, task: FinishedTask, number: int, stage: Any) -> None:
        self.task, self.number, self.stage = task, number, stage.name
        path = task.path / task.entry.folder / stage.file
        self.index = JournalIndex(path, stage.key, items=stage.items)

    def bare(self) -> Iterator[tuple[int, _Bare]]:
        """The position and the head of each record."""
        records: Any = JournalRecords(self.index.path, "", _Bare, index=self.index)
        yield from enumerate(records.at(range(len(self.index))))

    def lines(self, positions: Sequence[int]) -> Iterator[JournalLine[Any, Any]]:
        """The whole records at these positions."""
        lines: Any = JournalRecords(self.index.path, "", JournalLine[Any, Any], index=self.index)
        yield from lines.at(positions)


def journals_of(tasks: Sequence[FinishedTask]) -> list[Journal]:
    """The journals of all stages of these tasks."""
    return [
        Journal(task, number, stage)
        for number, task in enumerate(tasks)
        for stage in task.entry.stages
    ]


def samples_of(tasks: Sequence[FinishedTask], journals: Sequence[Journal]) -> list[list[Sample]]:
    """The samples of these tasks: for each unit those of all runs, in the order of the rule."""
    found: dict[tuple[str, str], list[Sample]] = {}
    for number, task in enumerate(tasks):
        of_task = [(place, one) for place, one in enumerate(journals) if one.number == number]
        for sample in _samples(number, task, of_task):
            found.setdefault((task.task.name, sample.id), []).append(sample)
    worst = {name: _worst(name, tasks, found) for name in {task.task.name for task in tasks}}

    def place(key: tuple[str, str]) -> tuple[int, float, int]:
        name, unit = key
        if any(sample.failures for sample in found[key]):
            return 0, 0.0, stable_int("report", name, unit)
        rank = worst[name].get(unit)
        return (2, 0.0, stable_int("report", name, unit)) if rank is None else (1, rank, 0)

    return [found[key] for key in sorted(found, key=place)]


def main_columns(task: FinishedTask) -> list[str]:
    """The columns of a task's scores that its main metrics are made of, the main one first."""
    metrics = task.benchmark.metrics
    named = main_metrics(task.summary.main, task.summary.metrics)
    return [(metrics[name].of or name) if name in metrics else name for name in named]


def _samples(
    number: int, task: FinishedTask, journals: Sequence[tuple[int, Journal]]
) -> Iterator[Sample]:
    """The units of a task, each with its records, and records that belong to no unit."""
    units: dict[str, Sample] = {}
    users: dict[str, list[Sample]] = {}
    main = main_columns(task)
    for score in task.scores():
        lost = {f"missing: {score.missing[name]}" for name in main if name in score.missing}
        sample = Sample(
            number, score.id, score.user, score.values, score.missing, score.slices or {},
            sorted(lost), [],
        )  # fmt: skip
        units[score.id] = sample
        users.setdefault(score.user, []).append(sample)
    for place, journal in journals:
        for position, record in journal.bare():
            owners = users.get(record.user, ())
            owner = units.get(record.id) or (owners[0] if len(owners) == 1 else None)
            if owner is None:
                owner = units.setdefault(
                    record.id, Sample(number, record.id, record.user, failures=[], places=[])
                )
            owner.places.append((place, position))
            if record.outcome.type != "done":
                cause = f"{journal.stage}: {record.outcome.cause}"
                if cause not in owner.failures:
                    owner.failures.append(cause)
    yield from units.values()


def _worst(
    name: str, tasks: Sequence[FinishedTask], found: dict[tuple[str, str], list[Sample]]
) -> dict[str, float]:
    """The rank of each unit of a task that is among the worst in any run."""
    first = next(task for task in tasks if task.task.name == name)
    metric = next(iter(main_columns(first)), "")
    named = main_metrics(first.summary.main, first.summary.metrics)[:1]
    higher = all(first.summary.metrics[each].higher_is_better for each in named)
    scores: dict[str, float] = {}
    for (task, unit), samples in found.items():
        values = [each.values[metric] for each in samples if metric in each.values]
        if task == name and values:
            scores[unit] = min(values) if higher else -max(values)
    ordered = sorted(scores, key=lambda unit: (scores[unit], stable_int("report", name, unit)))
    return {unit: float(rank) for rank, unit in enumerate(ordered[: int(WORST * len(ordered))])}
