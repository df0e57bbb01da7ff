"""The units of each task to look at first, with what each run was asked and answered about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from harness.base.errors import HarnessError
from harness.base.hashing import stable_int
from harness.comparison.document import SAME
from harness.contracts.judge import Selected
from harness.contracts.outcomes import NoVerdict
from harness.contracts.records import Done
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.run_lines import describe_call, laid_out
from harness.reporting.text import number
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.summary import main_metrics
from harness.tasks.repeats import task_and_repeat

LONGEST = 2_000
"""Of a longer text, the beginning and the end are shown."""

WIDTH = 100


class Part(NamedTuple):
    """A text of a record, and what it is: asked, answered, read or failed."""

    title: str
    text: str
    kind: str = ""


class Unit(NamedTuple):
    """A unit of a task, such as a person, with the label, score and parts of each run."""

    id: str
    runs: list[tuple[str, str, list[Part]]]


class Samples(NamedTuple):
    """Units of a task, what they are, and why none are shown."""

    title: str
    units: list[Unit]
    problem: str = ""


def samples_of(runs: Sequence[ReportedRun], most: int) -> Iterator[Samples]:
    """So many units of each task by its main metric: what differs most between runs, then what is
    missing in some; of one run what is missing, then the worst."""
    by_task = grouped((task.task.name, task) for run in runs for task in run.tasks)
    for name, tasks in by_task.items() if most else ():
        main = main_metrics(tasks[0].summary.main, tasks[0].summary.metrics)[:1]
        if main and task_and_repeat(name)[1] == 1:
            try:
                found = _of_task(name, tasks, main[0], most)
                if found.units:
                    yield found
            except (HarnessError, OSError) as error:
                yield Samples(name, [], f"The records cannot be read: {error}")


def _of_task(name: str, tasks: Sequence[FinishedTask], metric: str, most: int) -> Samples:
    column = tasks[0].benchmark.metrics[metric].of or metric
    sign = 1 if tasks[0].summary.metrics[metric].higher_is_better else -1
    users: dict[str, str] = {}
    values: dict[str, list[float]] = {}
    lost = set[str]()
    shown: list[dict[str, str]] = []
    for task in tasks:
        shown.append({})
        for score in task.scores():
            users[score.id] = score.user
            if (value := score.values.get(column)) is not None:
                values.setdefault(score.id, []).append(value)
                shown[-1][score.id] = number(value)
            elif column in score.missing:
                lost.add(score.id)
                shown[-1][score.id] = f"missing, {score.missing[column]}"

    def spread(unit: str) -> float:
        return max(values.get(unit, [0.0])) - min(values.get(unit, [0.0]))

    def place(unit: str) -> tuple[float, float, int]:
        there, last = float(unit not in lost), stable_int("report", name, unit)
        if len(tasks) > 1:
            return -spread(unit), there, last
        return there, sign * values.get(unit, [0.0])[0], last

    differ = [unit for unit in users if len(tasks) == 1 or spread(unit) > SAME or unit in lost]
    wanted = {unit: users[unit] for unit in sorted(differ, key=place)[:most]}
    parts = [_parts_of(task, wanted) for task in tasks]
    which = "that differ or are missing" if len(tasks) > 1 else "missing, then worst"
    title = f"{name}, {column}: {len(wanted):,} of {len(differ):,} {which}"
    return Samples(title, [
        Unit(unit, [
            (task.label, values_of.get(unit, "not asked"), own.get(unit, []))
            for task, values_of, own in zip(tasks, shown, parts, strict=True)
        ])
        for unit in wanted
    ])  # fmt: skip


def _parts_of(task: FinishedTask, wanted: Mapping[str, str]) -> dict[str, list[Part]]:
    """By wanted unit, of which the user is given, the parts of its records.

    A record belongs to the unit with its id, else to the only unit of its user.
    """
    many = Counter(score.user for score in task.scores())
    alone = {user: unit for unit, user in wanted.items() if many[user] == 1}
    found: dict[str, list[Part]] = {}
    for stage in task.entry.stages:
        record: Any
        for record in task.journal(
            stage, wanted=lambda head: head.id in wanted or head.user in alone
        ):
            unit = record.id if record.id in wanted else alone[record.user]
            named = stage.name if record.id == unit else f"{stage.name}, {record.id}"
            found.setdefault(unit, []).extend(_parts(record, named, task))
    return found


def _parts(record: Any, stage: str, task: FinishedTask) -> Iterator[Part]:
    for call in record.calls:
        about = f"{stage}: {describe_call(call, task.manifest, task=task.task.name)}"
        asked = "\n\n".join(f"{one.role}: {one.content}" for one in call.messages)
        yield Part(about, clipped(asked), "asked")
        if call.reasoning is not None:
            yield Part("reasoning", clipped(call.reasoning), "asked")
        if call.text is not None:
            yield Part(f"{stage}: answer", clipped(call.text), "answer")
        if call.failure is not None:
            yield Part("failed", clipped(f"{call.failure.cause}: {call.failure.detail}"), "failed")
    for judged in record.judged or ():
        subject = f" on “{judged.subject}”" if judged.subject else ""
        votes = [f"{one.member}: {_verdict(one.verdict, judged.labels)}" for one in judged.votes]
        said = "\n".join([_verdict(judged.verdict, judged.labels), *votes])
        yield Part(f"{stage}: verdict of {judged.role}{subject}", clipped(said))
    outcome = record.outcome
    if isinstance(outcome, Done):
        value = laid_out(msgspec.to_builtins(outcome.value), width=WIDTH)
        yield Part(f"{stage}: read as", clipped(value), "read")
    else:
        yield Part(f"{stage}: no value", clipped(f"{outcome.cause}: {outcome.detail}"), "failed")


def _verdict(verdict: Any, labels: Sequence[str]) -> str:
    if isinstance(verdict, NoVerdict):
        return f"no verdict: {verdict.cause}: {verdict.detail}"
    if isinstance(verdict, Selected):
        chosen = ", ".join(labels[place] for place in verdict.chosen if place < len(labels))
        return f"chosen: {chosen or 'none'}; of: {', '.join(labels)}"
    return ", ".join(label or "none" for label in verdict.labels)


def clipped(text: str) -> str:
    """The text, or its beginning and its end where it is long."""
    left = len(text) - LONGEST
    if left <= 0:
        return text
    return f"{text[: LONGEST // 2]}\n… {left:,} characters not shown …\n{text[-LONGEST // 2 :]}"
