"""The candidate items, each with the users that the rules leave.

Ratings are in the order of users' histories. An item's window is the one with the most users whose
relative ratings differ. Values must differ by more than the gap plus `NOISE`: averages are
quotients, and a difference of exactly the gap varies a little in floating point.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from harness.analysis.tool_report import Step, ToolReport
from harness.base.errors import DataError
from harness.base.hashing import stable_int
from harness_perrecbench.grouping.reading import UNIT, Log

if TYPE_CHECKING:
    import numpy as np

    from harness_perrecbench.grouping.reading import Settings

SECONDS_A_DAY = 86_400
NOISE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Histories:
    """Ratings by user, each history oldest first; ratings at one time by the name of the item.

    `starts`: the places where histories begin, and the end of the last.
    `now`: for each rating, the first place with the same user and time; ratings before it are
    earlier.
    `sums`: for each place, the sum of all ratings before it.
    """

    user: np.ndarray
    item: np.ndarray
    rating: np.ndarray
    time: np.ndarray
    starts: np.ndarray
    now: np.ndarray
    sums: np.ndarray

    def earlier(self) -> np.ndarray:
        """For each rating, the number of strictly earlier ratings of the same user."""
        earlier: np.ndarray = self.now - self.starts[self.user]
        return earlier

    def averages(self, rows: np.ndarray, *, strict: bool) -> np.ndarray:
        """The user's average at each of the rows: of the whole history, or of earlier ratings.

        A strict average needs rows with earlier ratings.
        """
        first = self.starts[self.user[rows]]
        last = self.now[rows] if strict else self.starts[self.user[rows] + 1]
        averages: np.ndarray = (self.sums[last] - self.sums[first]) / (UNIT * (last - first))
        return averages


def with_titles(log: Log, titles: set[str]) -> np.ndarray:
    """The ratings of items with a title: histories cannot show others."""
    import numpy as np

    has = np.fromiter((name in titles for name in log.items), dtype=bool, count=len(log.items))
    return np.flatnonzero(has[log.item])


def first_reviews(log: Log, rows: np.ndarray) -> np.ndarray:
    """Each user's first rating of each item; of several at one time the lowest."""
    import numpy as np

    pairs = log.user[rows].astype(np.int64) * len(log.items) + log.item[rows]
    order = np.lexsort((log.rating[rows], log.time[rows], pairs))
    first: np.ndarray = rows[order[_begins(pairs[order])]]
    return first


def histories(log: Log, rows: np.ndarray) -> Histories:
    """The histories of these ratings."""
    import numpy as np

    rows = rows[np.lexsort((log.item[rows], log.time[rows], log.user[rows]))]
    user, time, rating = log.user[rows], log.time[rows], log.rating[rows]
    moments = _begins(user) | _begins(time)
    places = np.arange(len(rows), dtype=np.int64)
    return Histories(
        user=user,
        item=log.item[rows],
        rating=rating,
        time=time,
        starts=np.searchsorted(user, np.arange(len(log.users) + 1)),
        now=np.maximum.accumulate(np.where(moments, places, 0)),
        sums=np.concatenate(([0], np.cumsum(rating, dtype=np.int64))),
    )


def _begins(values: np.ndarray) -> np.ndarray:
    """True at the beginning of each run of equal values."""
    import numpy as np

    begins = np.ones(len(values), dtype=bool)
    begins[1:] = values[1:] != values[:-1]
    return begins


@dataclass(frozen=True, kw_only=True)
class Purchases:
    """The ratings of one item, oldest first.

    `starts` are the times of all ratings; `times` and `relative` cover the ratings by users with a
    long enough history.
    """

    starts: Sequence[int]
    times: Sequence[int]
    relative: Sequence[float]


def best_window(
    purchases: Purchases, *, span: int, gap: float, least: int
) -> tuple[int, int] | None:
    """The first and the last place (exclusive) of the best window; None if all are too small.

    The best window has the most values that are pairwise more than `gap` apart; of several it is
    the earliest. A window starts at a purchase and ends `span` later.
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
    """The size of the largest set of ascending values that are pairwise more than `gap` apart."""
    return _between(values, None, None, gap=gap)


def first_largest(values: Sequence[float], order: Sequence[int], *, gap: float) -> list[int]:
    """The places of a largest set of ascending values that are pairwise more than `gap` apart.

    Of several sets, it is the one with the earliest places of `order`: a place is taken if a
    largest set contains it together with the places taken before. The result keeps this order.
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
    """The range of ratings in the window at each purchase, earliest first."""
    times = purchases.times
    low = high = 0
    for start in purchases.starts:
        while low < len(times) and times[low] < start:
            low += 1
        while high < len(times) and times[high] <= start + span:
            high += 1
        yield low, high


def _between(values: Sequence[float], before: int | None, after: int | None, *, gap: float) -> int:
    """The number of values between two places, more than `gap` from them and from one another."""
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


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An item with its users' ratings, as places in the histories, in the order of a hash."""

    item: int
    rows: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The items that passed all rules, by name, and the numbers that each rule left.

    `active` are the ratings by users with a long enough history.
    """

    histories: Histories
    candidates: list[Candidate]
    active: np.ndarray
    left: ToolReport


def find(log: Log, titles: set[str], settings: Settings) -> Pool:
    """The pool of a log; DataError if no item is left, with the numbers that each rule left."""
    import numpy as np

    left: list[Step] = []

    def counted(rule: str, of: Log | Histories, rows: np.ndarray) -> np.ndarray:
        """The ratings that a rule leaves, after they are counted for the report."""
        users, items = (int(np.count_nonzero(np.bincount(one[rows]))) for one in (of.user, of.item))
        left.append(Step(rule, {"ratings": len(rows), "users": users, "items": items}))
        return rows

    least, most = settings.least_members, settings.members
    rows = counted("rated from 1 to 5, with ids and a time", log, np.arange(len(log.user)))
    rows = counted("of an item with a title", log, with_titles(log, titles))
    rows = counted("the user's first of the item", log, first_reviews(log, rows))
    past = histories(log, rows)
    active = np.flatnonzero(past.earlier() > settings.min_history)
    counted(f"after more than {settings.min_history} others of the user", past, active)
    by_item = active[np.lexsort((past.user[active], past.time[active], past.item[active]))]
    close = counted(
        f"of an item with {least} such within {settings.window_days:g} days",
        past,
        _close(past, by_item, least=least, span=_span(log, settings)),
    )
    apart = list(_in_windows(past, close, log, settings))
    counted(
        f"in the best window, by {least} or more users who are more than "
        f"{settings.min_difference:g} apart",
        past,
        _all_rows(rows for _, rows in apart),
    )
    candidates = [Candidate(item=item, rows=tuple(rows[:most])) for item, rows in apart]
    counted(f"by {most} users an item at most", past, _all_rows(one.rows for one in candidates))
    report = ToolReport(rules="ratings …", dropped="items", steps=left)
    if not candidates:
        raise _nothing(report)
    return Pool(histories=past, candidates=candidates, active=active, left=report)


def _close(past: Histories, active: np.ndarray, *, least: int, span: int) -> np.ndarray:
    """The active ratings of items with at least `least` of them within one window."""
    import numpy as np

    item, time = past.item[active], past.time[active]
    ends = slice(least - 1, None)
    begins = slice(0, max(0, len(active) - least + 1))
    within = (item[ends] == item[begins]) & (time[ends] - time[begins] <= span)
    return active[np.isin(item, item[begins][within])]


def _in_windows(
    past: Histories, active: np.ndarray, log: Log, settings: Settings
) -> Iterator[tuple[int, list[int]]]:
    """Each item with a window of enough users, and the ratings of a largest set of them."""
    import numpy as np

    relative = past.rating[active] / UNIT - past.averages(active, strict=settings.strict)
    starts = np.flatnonzero(np.isin(past.item, past.item[active]))
    starts = starts[np.lexsort((past.time[starts], past.item[starts]))]
    items = np.unique(past.item[active])
    of_active = [*np.searchsorted(past.item[active], items).tolist(), len(active)]
    of_starts = [*np.searchsorted(past.item[starts], items).tolist(), len(starts)]
    span = _span(log, settings)
    for place, item in enumerate(items.tolist()):
        own = slice(of_active[place], of_active[place + 1])
        every = slice(of_starts[place], of_starts[place + 1])
        purchases = Purchases(
            starts=past.time[starts[every]].tolist(),
            times=past.time[active[own]].tolist(),
            relative=relative[own].tolist(),
        )
        window = best_window(
            purchases, span=span, gap=settings.min_difference, least=settings.least_members
        )
        if window is not None:
            held = active[own][slice(*window)].tolist()
            values = purchases.relative[slice(*window)]
            yield item, _members(past, log, settings, held=held, values=values)


def _members(
    past: Histories, log: Log, settings: Settings, *, held: list[int], values: Sequence[float]
) -> list[int]:
    """A largest set of a window's ratings that differ enough, in the order of a stable hash."""
    hashes = [
        stable_int("members", settings.seed, log.items[past.item[row]], log.users[past.user[row]])
        for row in held
    ]
    ascending = sorted(range(len(held)), key=lambda one: (values[one], hashes[one]))
    order = sorted(range(len(held)), key=lambda place: hashes[ascending[place]])
    places = first_largest([values[one] for one in ascending], order, gap=settings.min_difference)
    return [held[ascending[place]] for place in places]


def _span(log: Log, settings: Settings) -> int:
    return round(settings.window_days * SECONDS_A_DAY * log.ticks)


def _all_rows(parts: Iterable[Sequence[int]]) -> np.ndarray:
    import numpy as np

    return np.fromiter(chain.from_iterable(parts), dtype=np.int64)


def _nothing(left: ToolReport) -> DataError:
    return DataError(
        "no item passes all rules, so there are no groups",
        found="\n      ".join(("left by each rule:", *left.lines())),
        expected="at least one item after the last rule",
        hint="try a longer window (--window_days), shorter histories (--min_history), a smaller "
        "difference (--min_difference), smaller groups (--least_members) or a larger log",
    )
