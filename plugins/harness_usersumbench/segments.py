"""Segments of a user's past: calendar months that are merged, or parts of equal count."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from harness_usersumbench.rendering import month

if TYPE_CHECKING:
    from harness_usersumbench.records import Activity, Options


class Segmented(NamedTuple):
    """The segments of a past in order of time, and whether months or counts divide it."""

    segments: tuple[tuple[Activity, ...], ...]
    by: Literal["months", "count"]


def segmented(past: Sequence[Activity], options: Options) -> Segmented:
    """The segments of a past, oldest first; each activity is in one of them.

    A past that months do not divide is divided by count.
    """
    least = options.min_segment_activities
    if options.segmenting == "months":
        merged = by_months(past, least=least)
        if len(merged) > 1:
            return Segmented(merged, "months")
    return Segmented(by_count(past, most=options.segments, least=least), "count")


def by_months(past: Sequence[Activity], *, least: int) -> tuple[tuple[Activity, ...], ...]:
    """Calendar months, each merged with the next ones until it has enough activities.

    A last segment that is too small joins the one before it.
    """
    merged: list[list[Activity]] = []
    for _, together in groupby(past, key=lambda one: month(one.time)):
        if merged and len(merged[-1]) < least:
            merged[-1] += together
        else:
            merged.append(list(together))
    if len(merged) > 1 and len(merged[-1]) < least:
        tail = merged.pop()
        merged[-1] += tail
    return tuple(map(tuple, merged))


def by_count(
    past: Sequence[Activity], *, most: int, least: int
) -> tuple[tuple[Activity, ...], ...]:
    """As many equal parts as there may be and as have enough activities each, one at least.

    Sizes differ by one at most.
    """
    parts = max(1, min(most, len(past) // least))
    ends = [len(past) * number // parts for number in range(parts + 1)]
    return tuple(tuple(past[start:end]) for start, end in pairwise(ends))
