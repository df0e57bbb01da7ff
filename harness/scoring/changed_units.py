"""The units whose values differ between two runs, and the commands that show them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from harness.base.errors import HarnessError
from harness.runs.journal_index import Head, scan
from harness.scoring.finished_task import FinishedTask
from harness.scoring.paired_differences import Difference

if TYPE_CHECKING:
    from harness.contracts.benchmark import Metric

MOST_KEPT = 10
"""The largest changes of two runs that a comparison holds."""

SAME = 1e-12
"""Smaller changes are rounding errors of sums."""


class ChangedUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit with its value in the first and the second run, and the command that shows each."""

    unit: str
    user: str
    first: float
    second: float
    commands: tuple[str, str]


class ChangedUnits(msgspec.Struct, frozen=True, kw_only=True):
    """How many units are better, worse and the same in the first of two runs in one metric.

    `largest` are those that changed most.
    """

    metric: str
    first: str
    second: str
    better: int
    worse: int
    same: int
    largest: tuple[ChangedUnit, ...]


def changed_units(
    differences: Iterable[Difference],
    tasks: Iterable[FinishedTask],
    units: Mapping[str, Mapping[str, Mapping[str, tuple[str, float]]]],
    metrics: Mapping[str, Metric],
) -> Iterator[ChangedUnits]:
    """The changes behind each difference, of the units that both of its runs have.

    `units` are by run, metric and id of all units that count: user and value.
    """
    known = {task.run: task for task in tasks}

    @cache
    def ids(run: str) -> set[str]:
        return set(_ids(known[run]))

    def command(run: str, unit: str, user: str) -> str:
        """The command that shows a unit: its item if it is one, else everything of its user."""
        words = ["harness", "show", str(known[run].path), "--task", known[run].task.name]
        named = [name for name in (unit, user) if name in ids(run)][:1]
        return shlex.join([*words, *(word for name in named for word in ("--sample", name))])

    for each in differences:
        ours, theirs = (units[run][each.metric] for run in (each.first, each.second))
        pairs = [
            (unit, user, value, theirs[unit][1])
            for unit, (user, value) in ours.items()
            if unit in theirs
        ]
        changed = [one for one in pairs if abs(one[2] - one[3]) > SAME]
        changed.sort(key=lambda one: (-abs(one[2] - one[3]), one[0]))
        higher = sum(value > before for _, _, value, before in changed)
        better = higher if metrics[each.metric].higher_is_better else len(changed) - higher
        yield ChangedUnits(
            metric=each.metric,
            first=each.first,
            second=each.second,
            better=better,
            worse=len(changed) - better,
            same=len(pairs) - len(changed),
            largest=tuple(
                ChangedUnit(
                    unit=unit,
                    user=user,
                    first=value,
                    second=before,
                    commands=(command(each.first, unit, user), command(each.second, unit, user)),
                )
                for unit, user, value, before in changed[:MOST_KEPT]
            ),
        )


def _ids(task: FinishedTask) -> Iterator[str]:
    """The ids of items and users with records; none where a journal cannot be read."""
    for stage in task.entry.stages:
        with suppress(HarnessError):
            for _, _, head in scan(task.path / task.entry.folder / stage.file, Head):
                yield from (head.id, head.user)
