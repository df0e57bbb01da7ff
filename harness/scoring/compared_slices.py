"""Comparisons of runs by the parts of the data that their units belong to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from harness.contracts.records import Score
from harness.scoring.paired_differences import Difference
from harness.scoring.summary import MetricResult

FoundT = TypeVar("FoundT", MetricResult, Difference)

LEAST_USERS = 20
FEW = f"fewer than {LEAST_USERS} users"
"""The reason why a small part has no interval."""


class ComparedSlice(msgspec.Struct, frozen=True, kw_only=True):
    """The runs over the units with one `value` of a `slice`.

    `common` are by run and metric the results over the units that all runs share. With fewer than
    20 users there is no interval.
    """

    slice: str
    value: str
    common: dict[str, dict[str, MetricResult]]
    differences: tuple[Difference, ...]


def units_of_slices(
    scores: Mapping[str, Sequence[Score[Any]]], name: str
) -> dict[str, frozenset[str]]:
    """By value of a slice the units that every run with the unit puts there, in natural order."""
    values: dict[str, set[str | None]] = {}
    for score in (score for of_run in scores.values() for score in of_run):
        values.setdefault(score.id, set()).add((score.slices or {}).get(name))
    units: dict[str, set[str]] = {}
    for unit, found in values.items():
        (value, *others) = found
        if value is not None and not others:
            units.setdefault(value, set()).add(unit)
    return {value: frozenset(units[value]) for value in sorted(units, key=natural)}


def natural(value: str) -> list[str | int]:
    """A key that sorts 6-20 before 21-100, and texts by the alphabet."""
    parts = re.split(r"([0-9]+)", value)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


def sliced(
    name: str,
    value: str,
    common: Mapping[str, Mapping[str, MetricResult]],
    differences: Iterable[Difference],
) -> ComparedSlice:
    """The part of a value with a reason in place of each interval over too few users."""
    return ComparedSlice(
        slice=name,
        value=value,
        common={
            run: {metric: _bare(one) for metric, one in results.items()}
            for run, results in common.items()
        },
        differences=tuple(map(_bare, differences)),
    )


def _bare(result: FoundT) -> FoundT:
    if result.users >= LEAST_USERS:
        return result
    return msgspec.structs.replace(result, interval=None, no_interval=FEW)
