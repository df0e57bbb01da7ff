"""The samples of a report: units of tasks with their records, in the order in which they are kept.

Failures come first, then the worst, then the others by a stable hash; the answers of all runs to
one unit stay next to each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from harness.base.errors import HarnessError
from harness.base.hashing import stable_int
from harness.contracts.records import CallRecord, Judged
from harness.runs.journal_index import JournalIndex, JournalRecords
from harness.runs.manifest import StageEntry
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


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line of a journal, its item and value as the JSON that they are written in."""

    class Outcome(msgspec.Struct, frozen=True, gc=False):
        """The value, or the failure."""

        type: str
        value: msgspec.Raw = msgspec.Raw()
        cause: str = ""
        detail: str = ""

    id: str
    item: msgspec.Raw
    outcome: Outcome
    calls: tuple[CallRecord, ...] = ()
    judged: tuple[Judged, ...] = ()


class _Outcome(msgspec.Struct, frozen=True, gc=False):
    type: str
    cause: str = ""


class _Verdict(msgspec.Struct, frozen=True, gc=False):
    role: str
    verdict: _Outcome
    votes: tuple[msgspec.Raw, ...] = ()


class _Bare(msgspec.Struct, frozen=True, gc=False):
    """The parts of a record by which it finds its unit, and by which verdicts are counted."""

    user: str
    id: str
    outcome: _Outcome
    judged: tuple[_Verdict, ...] = ()


class Journal:
    """The journal of one stage of one task of a report.

    `verdicts` counts what each role was asked, without a verdict and the votes, once it was read.
    """

    def __init__(self, task: FinishedTask, number: int, stage: StageEntry) -> None:
        self.task, self.number, self.stage = task, number, stage.name
        path = task.path / task.entry.folder / stage.file
        self.index = JournalIndex(path, stage.key, items=stage.items)
        self.verdicts: dict[str, Counter[str]] = {}

    def bare(self) -> Iterator[tuple[int, _Bare]]:
        """The position and the head of each record."""
        records: Any = JournalRecords(self.index.path, "", _Bare, index=self.index)
        self.verdicts = {}
        for position, record in enumerate(records.at(range(len(self.index)))):
            for one in record.judged:
                counts = self.verdicts.setdefault(one.role, Counter())
                counts["asked"] += 1
                counts["none"] += one.verdict.type == "no_verdict"
                counts["votes"] += len(one.votes)
            yield position, record

    def lines(self, positions: Sequence[int]) -> Iterator[Line]:
        """The whole records at these positions."""
        lines: Any = JournalRecords(self.index.path, "", Line, index=self.index)
        yield from lines.at(positions)


class Samples(NamedTuple):
    """The samples of some tasks, unit by unit in the order of the rule, and why some are missing.

    `tasks` are those whose samples there are; a sample has the number of its task in them.
    """

    tasks: list[FinishedTask]
    journals: list[Journal]
    units: list[list[Sample]]
    problems: list[str]

    def verdicts(self, task: FinishedTask, role: str) -> Counter[str]:
        """What a judge of a task was asked, how often it gave no verdict, and the votes."""
        found = (one.verdicts.get(role) for one in self.journals if one.task is task)
        return sum(filter(None, found), Counter[str]())


def read_samples(tasks: Sequence[FinishedTask]) -> Samples:
    """The samples of these tasks; a task that cannot be read costs its own samples alone."""
    read: list[FinishedTask] = []
    journals: list[Journal] = []
    problems = []
    found: dict[tuple[str, str], list[Sample]] = {}
    for task in tasks:
        number = len(read)
        try:
            own = [Journal(task, number, stage) for stage in task.entry.stages]
            samples = list(_samples(number, task, own, len(journals)))
        except (HarnessError, OSError) as error:
            problems.append(f"The samples of {task.label} on {task.task.name} are missing: {error}")
            continue
        read.append(task)
        journals += own
        for sample in samples:
            found.setdefault((task.task.name, sample.id), []).append(sample)
    return Samples(read, journals, _in_order(read, found), problems)


def _in_order(
    tasks: Sequence[FinishedTask], found: dict[tuple[str, str], list[Sample]]
) -> list[list[Sample]]:
    """The samples of each unit, units with a failure first, then the worst, then by their hash."""
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
    number: int, task: FinishedTask, journals: Sequence[Journal], first: int
) -> Iterator[Sample]:
    """The units of a task, each with its records, and records that belong to no unit.

    `first` is the number of its first journal among those of all tasks.
    """
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
    for place, journal in enumerate(journals, first):
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
