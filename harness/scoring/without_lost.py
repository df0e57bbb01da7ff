"""Established differences once more, on the units that neither of the two runs lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.scoring.comparison_document import CommonUnits, Compared, ComparisonDocument
from harness.scoring.mean_differences import difference_of_mean
from harness.scoring.paired_differences import (
    Difference,
    differences_of,
    holm_adjusted,
    is_established,
)


class WithoutLost(NamedTuple):
    """A difference on the units that neither run lost; None if that leaves a task without units.

    `lost` is by run how many units of the difference it lost. The difference `holds` if it has the
    same sign and is established in the place of the one on all units.
    """

    lost: dict[str, int]
    left: Difference | None
    holds: bool


def without_lost(
    each: Difference, name: str, compared: Sequence[Compared], document: ComparisonDocument
) -> WithoutLost | None:
    """A difference of a task, or of the mean `name`, without the lost units that count in it.

    None if no lost unit counts. A unit is lost if the metric has no value of it.
    """
    runs = (each.first, each.second)
    found = [one for one in document.means.get(each.first, ()) if one.name == name]
    mean = next((one for one in found if one.metric == each.metric), None)
    names = mean.tasks if mean else (name,)
    sides: list[dict[str, CommonUnits]] = [{}, {}]
    lost = dict.fromkeys(runs, 0)
    for one in compared:
        known = {task.run: task for task in one.tasks if each.metric in task.common}
        if one.comparison.task not in names or not known.keys() >= {*runs}:
            continue
        gone = {run: _lost(known[run], each.metric) for run in runs}
        either = set().union(*gone.values())
        for side, run in zip(sides, runs, strict=True):
            units = known[run].units(each.metric)
            kept = {unit: units[unit] for unit in units if unit not in either}
            side[one.comparison.task] = replace(known[run], common={each.metric: kept})
            lost[run] += len(gone[run])
    if not any(lost.values()):
        return None
    left = None
    if all(task.units(each.metric) for task in sides[0].values()):
        if mean:
            left = difference_of_mean(mean, runs, *sides).difference
        else:
            ours, theirs = (side[name] for side in sides)
            metric = ours.benchmark.metrics[each.metric]
            values = {task.run: task.units(each.metric) for task in (ours, theirs)}
            (left,) = differences_of(theirs, each.metric, metric, values, theirs.run)
    if left is None or left.value is None or each.value is None:
        return WithoutLost(lost, left, holds=False)
    others = [one for one in tested_differences(document) if one is not each]
    again = holm_adjusted([left, *others])[0]
    same = (left.value > 0) == (each.value > 0)
    return WithoutLost(lost, again, holds=same and is_established(again))


def _lost(task: CommonUnits, metric: str) -> set[str]:
    """The units that count in a metric although the task has no value of them."""
    column = task.benchmark.metrics[metric].of or metric
    counted = task.units(metric)
    return {one.id for one in task.scores() if column in one.missing and one.id in counted}


def tested_differences(document: ComparisonDocument) -> Iterator[Difference]:
    """All differences for whose tests p values are adjusted together."""
    every = [one.difference for one in document.mean_differences or ()]
    for one in document.comparisons:
        every += one.differences
        every += [each for part in one.slices or () for each in part.differences]
    return (each for each in every if each.p_holm is not None)
