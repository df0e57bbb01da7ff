"""The window of an item with the most users who rated it differently, and who they are.

Values are more than a gap apart when they are so beyond `NOISE`: averages are quotients, and two
that differ by the gap exactly differ by a little more or less as floating numbers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

NOISE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Purchases:
    """The ratings of one item, oldest first.

    `starts` are the times of all, the others of those by users with enough of a history.
    """

    starts: Sequence[int]
    times: Sequence[int]
    relative: Sequence[float]


def best_window(
    purchases: Purchases, *, span: int, gap: float, least: int
) -> tuple[int, int] | None:
    """From which to which of the ratings the best window holds; None where none holds enough.

    The best has the most values that are pairwise more than `gap` apart, of several it is the
    earliest. A window starts at any of the purchases and holds what is at most `span` later.
    """
    relative = purchases.relative
    most = largest(sorted(relative), gap=gap)
    found, size = None, least - 1
    first = last = 0
    inside: list[float] = []
    for low, high in _windows(purchases, span):
        if size >= most:
            break
        if high - low <= size or (low, high) == (first, last):
            continue
        if low >= last:
            inside = sorted(relative[low:high])
        else:
            for value in relative[first:low]:
                del inside[bisect_left(inside, value)]
            for value in relative[last:high]:
                insort(inside, value)
        first, last = low, high
        count = largest(inside, gap=gap)
        if count > size:
            found, size = (low, high), count
    return found


def largest(values: Sequence[float], *, gap: float) -> int:
    """How many of the ascending values there can be that are pairwise more than `gap` apart."""
    return _between(values, None, None, gap=gap)


def first_largest(values: Sequence[float], order: Sequence[int], *, gap: float) -> list[int]:
    """The places of a largest set of ascending values that are pairwise more than `gap` apart.

    Of several sets it is the one that holds the earliest places of `order`: each in turn is taken
    unless no largest set holds it beside those taken before. They come in that order.
    """
    needed = largest(values, gap=gap)
    taken: list[int] = []
    places: list[int] = []
    for place in order:
        if len(taken) == needed:
            break
        at = bisect_left(taken, place)
        before = taken[at - 1] if at else None
        after = taken[at] if at < len(taken) else None
        if before is not None and not _apart(values, before, place, gap):
            continue
        if after is not None and not _apart(values, place, after, gap):
            continue
        around = _between(values, before, place, gap=gap) + _between(values, place, after, gap=gap)
        if around + 1 == _between(values, before, after, gap=gap):
            taken.insert(at, place)
            places.append(place)
    return places


def _windows(purchases: Purchases, span: int) -> Iterator[tuple[int, int]]:
    """Of the window at each purchase, earliest first, which of the ratings it holds."""
    times = purchases.times
    low = high = 0
    for start in purchases.starts:
        while low < len(times) and times[low] < start:
            low += 1
        while high < len(times) and times[high] <= start + span:
            high += 1
        yield low, high


def _between(values: Sequence[float], before: int | None, after: int | None, *, gap: float) -> int:
    """How many values fit between two places, more than `gap` from them and from one another."""
    count = 0
    place = 0 if before is None else _next(values, before, gap)
    while place < len(values) and (after is None or _apart(values, place, after, gap)):
        count += 1
        place = _next(values, place, gap)
    return count


def _next(values: Sequence[float], place: int, gap: float) -> int:
    return bisect_right(values, values[place] + (gap + NOISE), place)


def _apart(values: Sequence[float], low: int, high: int, gap: float) -> bool:
    return values[low] + (gap + NOISE) < values[high]
