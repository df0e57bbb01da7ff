"""The items that can be asked about, each with the users that the rules leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from harness.errors import DataError
from harness.hashing import stable_int
from harness_perrecbench.grouping.histories import (
    Histories,
    first_reviews,
    histories,
    with_titles,
)
from harness_perrecbench.grouping.reading import UNIT
from harness_perrecbench.grouping.windows import Purchases, best_window, first_largest

if TYPE_CHECKING:
    import numpy as np

    from harness_perrecbench.grouping.reading import Log
    from harness_perrecbench.grouping.settings import Settings

SECONDS_A_DAY = 86_400


@dataclass(frozen=True, kw_only=True)
class Left:
    """What a rule left."""

    rule: str
    ratings: int
    users: int
    items: int


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An item with the ratings of its users, places in the histories, in the order of a hash."""

    item: int
    rows: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The items that passed all rules, by name, and how many each rule left.

    `active` are the ratings by users with enough of a history.
    """

    histories: Histories
    candidates: list[Candidate]
    active: np.ndarray
    left: list[Left]


def find(log: Log, titles: set[str], settings: Settings) -> Pool:
    """The pool of a log; DataError where nothing is left, with what each rule left."""
    import numpy as np

    rows = np.arange(len(log.user))
    left = [_left("rated from 1 to 5, with ids and a time", log, rows)]
    rows = with_titles(log, titles)
    left.append(_left("of an item with a title", log, rows))
    rows = first_reviews(log, rows)
    left.append(_left("the user's first of the item", log, rows))
    past = histories(log, rows)
    active = np.flatnonzero(past.earlier() > settings.min_history)
    left.append(_left(f"after more than {settings.min_history} others of the user", past, active))
    active = active[np.lexsort((past.user[active], past.time[active], past.item[active]))]
    close = _close(past, active, least=settings.least_members, span=_span(log, settings))
    left.append(
        _left(
            f"of an item with {settings.least_members} such within {settings.window_days:g} days",
            past,
            close,
        )
    )
    apart = list(_apart(past, close, log, settings))
    found = np.array([row for _, rows in apart for row in rows], dtype=np.int64)
    left.append(
        _left(
            f"in the best window, by {settings.least_members} or more users who are more than "
            f"{settings.min_difference:g} apart",
            past,
            found,
        )
    )
    candidates = [
        Candidate(item=item, rows=tuple(rows[: settings.members])) for item, rows in apart
    ]
    kept = np.array([row for one in candidates for row in one.rows], dtype=np.int64)
    left.append(_left(f"by {settings.members} users an item at most", past, kept))
    if not candidates:
        raise _nothing(left)
    return Pool(histories=past, candidates=candidates, active=np.sort(active), left=left)


def _close(past: Histories, active: np.ndarray, *, least: int, span: int) -> np.ndarray:
    """The active ratings of items of which so many lie within one window."""
    import numpy as np

    item, time = past.item[active], past.time[active]
    ends = slice(least - 1, None)
    begins = slice(0, max(0, len(active) - least + 1))
    within = (item[ends] == item[begins]) & (time[ends] - time[begins] <= span)
    return active[np.isin(item, item[begins][within])]


def _apart(
    past: Histories, active: np.ndarray, log: Log, settings: Settings
) -> Iterator[tuple[int, list[int]]]:
    """Of each item with a window that holds enough users, the ratings of a largest set of them."""
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
    """Of the ratings in a window a largest set that are apart, in the order of a stable hash."""
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


def _left(rule: str, of: Log | Histories, rows: np.ndarray) -> Left:
    import numpy as np

    users, items = (int(np.count_nonzero(np.bincount(one[rows]))) for one in (of.user, of.item))
    return Left(rule=rule, ratings=len(rows), users=users, items=items)


def removals(left: Sequence[Left]) -> list[int | None]:
    """How many items each rule removed; of the first it is not known."""
    items = [one.items for one in left]
    return [None, *(before - after for before, after in pairwise(items))] if items else []


def _ruled(left: Sequence[Left]) -> str:
    """What each rule left, a line a rule, as the report of a pool shows it."""
    lines: list[tuple[str, ...]] = [("ratings", "users", "items", "items removed", "ratings …")]
    for one, removed in zip(left, removals(left), strict=True):
        numbers = (one.ratings, one.users, one.items, removed)
        shown = ("" if number is None else f"{number:,}" for number in numbers)
        lines.append((*shown, one.rule))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    told = ["what each rule leaves:"]
    for *cells, rule in lines:
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths, strict=False)]
        told.append("  ".join((*aligned, rule)))
    return "\n      ".join(told)


def _nothing(left: list[Left]) -> DataError:
    return DataError(
        "no item passes all rules, so that there is no group",
        found=_ruled(left),
        expected="at least one item that is left after the last rule",
        hint="a longer window (--window_days), shorter histories (--min_history), a smaller "
        "difference (--min_difference), smaller groups (--least_members) or a larger log",
    )
