"""The runs of a task that were not compared, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from harness.scoring.comparable import named_differences, settings_of
from harness.scoring.comparison import Compared
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.tasks.repeats import task_and_repeat

ALONE = "`harness compare` tests these two without the others"


class Untested(NamedTuple):
    """A run that was not compared with another one of a task, and why."""

    task: str
    run: str
    other: str
    because: tuple[str, ...]


def untested_of(
    tasks: Sequence[FinishedTask], found: Compared, against: str | None
) -> Iterator[Untested]:
    """The runs of a task that stand apart from those that were compared, each against the best of
    those, which is `against`, and against each other."""
    known = {task.run: task for task in tasks}
    best = known[against or found.comparison.runs[0].run]
    refused = found.comparison.refused
    pairs = [(known[each.run], best, each.because) for each in refused]
    agree_in = {run: settings_of(known[run]) for run in (best.run, *(one.run for one in refused))}
    apart = [known[each.run] for each in refused if agree_in[each.run] != agree_in[best.run]]
    for first, second in combinations(apart, 2):
        why = named_differences(agree_in[second.run], agree_in[first.run])
        pairs.append((second, first, why or (ALONE,)))
    for run, other, because in pairs:
        task = task_and_repeat(found.comparison.task)[0]
        yield Untested(task=task, run=run.label, other=other.label, because=because)


def untested_pairs(untested: Sequence[Untested]) -> dict[str, list[tuple[str, str]]]:
    """By task the pairs of its runs that were not tested, each once."""
    found = grouped((one.task, (one.run, one.other)) for one in untested)
    return {task: list(dict.fromkeys(pairs)) for task, pairs in found.items()}


def reasons_untested(untested: Sequence[Untested]) -> Mapping[str, list[str]]:
    """Why runs were not compared, with the tasks that each reason is about."""
    found = grouped(
        (f"{one.run} is not compared with {one.other}: {'; '.join(one.because)}", one.task)
        for one in untested
    )
    return {why: list(dict.fromkeys(tasks)) for why, tasks in found.items()}
