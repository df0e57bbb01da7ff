"""The runs of a task that were not compared, and what would make them comparable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from harness.scoring.comparison_document import Compared
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.unlike_runs import unlike
from harness.tasks.repeats import task_and_repeat

ALONE = "`harness compare` tests these two without the others"


class Untested(NamedTuple):
    """A run that was not compared with another one of a task, why, and what both must be given."""

    task: str
    run: str
    other: str
    because: tuple[str, ...]
    needed: tuple[str, ...]


def untested_of(
    tasks: Sequence[FinishedTask], found: Compared, against: str | None
) -> Iterator[Untested]:
    """The runs of a task that stand apart from those that were compared, each against the best of
    those, which is `against`, and against each other."""
    known = {task.run: task for task in tasks}
    best = known[against or found.comparison.runs[0].run]
    refused = found.comparison.refused
    apart = [known[each.run] for each in refused if unlike(known[each.run], best)]
    pairs = [(known[each.run], best, each.because) for each in refused]
    pairs += [(second, first, (ALONE,)) for first, second in combinations(apart, 2)]
    for run, other, alone in pairs:
        why = unlike(run, other)
        yield Untested(
            task=task_and_repeat(found.comparison.task)[0],
            run=run.label,
            other=other.label,
            because=why.because if why else alone,
            needed=why.needed if why else (),
        )


def untested_pairs(untested: Sequence[Untested]) -> dict[str, list[tuple[str, str]]]:
    """By task the pairs of its runs that were not tested, each once."""
    found = grouped((one.task, (one.run, one.other)) for one in untested)
    return {task: list(dict.fromkeys(pairs)) for task, pairs in found.items()}


def ways_to_test(untested: Sequence[Untested]) -> Mapping[str, list[str]]:
    """What would make runs comparable, or why nothing would, with the tasks that it is about."""
    found: dict[str, dict[str, None]] = {}
    for one in untested:
        way = f"{one.run} is not compared with {one.other}: {'; '.join(one.because)}"
        if one.needed:
            way = f"To test them, give all runs {' and '.join(one.needed)}"
        found.setdefault(way, {})[one.task] = None
    return {way: list(tasks) for way, tasks in found.items()}
