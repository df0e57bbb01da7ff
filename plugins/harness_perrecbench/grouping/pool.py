"""The candidate items, each with the users that the rules leave.

An item's window is the one with the most users whose relative ratings differ. Values must differ by
more than the gap plus `NOISE`: averages are quotients, and a difference of exactly the gap varies a
little in floating point.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from harness.analysis.tool_report import Step, ToolReport
from harness.base.errors import DataError
from harness.base.hashing import stable_int
from harness_perrecbench.data.layout import GroupUser
from harness_perrecbench.grouping.reading import UNIT

if TYPE_CHECKING:
    from harness_perrecbench.grouping.reading import Log, Settings

SECONDS_A_DAY = 86_400
NOISE = 1e-9
PART = 200_000


def best_window(
    starts: Sequence[int],
    times: Sequence[int],
    relative: Sequence[float],
    *,
    span: int,
    gap: float,
    least: int,
) -> tuple[int, int] | None:
    """The first and the last place (exclusive) of an item's best window; None if all are too small.

    `starts` are the times of all ratings of the item; `times` and `relative` cover those by users
    with a long enough history. All are oldest first. The best window has the most values that are
    pairwise more than `gap` apart; of several it is the earliest. A window starts at a purchase and
    ends `span` later.
    """
    most = largest(sorted(relative), gap=gap)
    found, size = None, least - 1
    low = high = 0
    for start in starts:
        before = low, high
        low = bisect_left(times, start, low)
        high = bisect_right(times, start + span, high)
        if size < min(most, high - low) and before != (low, high):
            count = largest(sorted(relative[low:high]), gap=gap)
            if count > size:
                found, size = (low, high), count
    return found


def largest(values: Sequence[float], *, gap: float, holding: Collection[int] = ()) -> int:
    """The size of the largest set of ascending values that are pairwise more than `gap` apart.

    The set holds the values at the places in `holding`; 0 if these are too close.
    """
    count = free = 0
    for held in (*sorted(holding), None):
        end = math.inf if held is None else values[held]
        while free < len(values) and values[free] + (gap + NOISE) < end:
            count += 1
            free = bisect_right(values, values[free] + (gap + NOISE), free)
        if held is not None:
            if held < free:
                return 0
            count += 1
            free = bisect_right(values, values[held] + (gap + NOISE), held)
    return count


def first_largest(values: Sequence[float], order: Iterable[int], *, gap: float) -> list[int]:
    """The places of a largest set of ascending values that are pairwise more than `gap` apart.

    Of several sets, it is the one with the earliest places of `order`: a place is taken if a
    largest set contains it together with the places taken before. The result keeps this order.
    """
    needed = largest(values, gap=gap)
    taken: list[int] = []
    for place in order:
        if len(taken) < needed == largest(values, gap=gap, holding=(*taken, place)):
            taken.append(place)
    return taken


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An item with the place of its domain and its users, in the order of a hash."""

    item: str
    domain: int
    users: tuple[GroupUser, ...]


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The items that passed all rules, and the number of ratings after long enough histories."""

    candidates: list[Candidate]
    active: int
    left: ToolReport


def find(log: Log, settings: Settings) -> Pool:
    """The pool of a log; DataError if no item is left, with the numbers that each rule left.

    Adds to the tables of the log: `past`, the ratings in histories, each with the number of
    strictly `earlier` ratings of the user and the user's `average` rating; and `active`, those
    after long enough histories, with the rating `relative` to the average.
    """
    least, most = settings.least_members, settings.members
    span = round(settings.window_days * SECONDS_A_DAY * log.ticks)
    average = f"sum(rating) OVER own / ({UNIT} * count(*) OVER own)"
    if settings.strict:
        average = f"sum(rating) OVER before / ({UNIT} * earlier)"
    queries = {
        "titled": "SELECT ratings.* FROM ratings JOIN items USING (item_at) WHERE titled",
        "first": """
            SELECT * FROM titled
            QUALIFY row_number() OVER (PARTITION BY user_at, item_at ORDER BY time, rating) = 1
            """,
        "past": f"""
            SELECT *, rank() OVER (own ORDER BY time) - 1 AS earlier, {average} AS average
            FROM first
            WINDOW own AS (PARTITION BY user_at), before AS (
                own ORDER BY time RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
            """,
        "active": f"""
            SELECT *, rating / {UNIT} - average AS relative
            FROM past WHERE earlier > {settings.min_history}
            """,
        "close": f"""
            WITH spans AS (
                SELECT item_at,
                    lead(time, {least - 1}) OVER (PARTITION BY item_at ORDER BY time) - time AS span
                FROM active
            )
            SELECT * FROM active WHERE item_at IN (SELECT item_at FROM spans WHERE span <= {span})
            """,
    }
    for name, query in queries.items():
        found = log.database.sql(query)
        if name in ("past", "close"):
            found.create(name)
        else:
            found.create_view(name)
    left = [
        Step(rule, _counts(log, table))
        for rule, table in {
            "rated from 1 to 5, with ids and a time": "ratings",
            "of an item with a title": "titled",
            "the user's first of the item": "past",
            f"after more than {settings.min_history} others of the user": "active",
            f"of an item with {least} such within {settings.window_days:g} days": "close",
        }.items()
    ]
    active, close = (step.left["ratings"] for step in left[-2:])
    parts = 1 + close // PART
    found = [one for part in range(parts) for one in _in_windows(log, settings, part, parts, span)]
    apart = sorted(found, key=lambda one: one.item)
    candidates = [replace(one, users=one.users[:most]) for one in apart]
    for rule, of in {
        f"in the best window, by {least} or more users who are more than "
        f"{settings.min_difference:g} apart": apart,
        f"by {most} users an item at most": candidates,
    }.items():
        users = [user.user_id for one in of for user in one.users]
        counts = {"ratings": len(users), "users": len(set(users)), "items": len(of)}
        left.append(Step(rule, counts))
    report = ToolReport(rules="ratings …", dropped="items", steps=left)
    if not candidates:
        raise DataError(
            "no item passes all rules, so there are no groups",
            found="\n      ".join(("left by each rule:", *report.lines())),
            expected="at least one item after the last rule",
            hint="try a longer window (--window_days), shorter histories (--min_history), a "
            "smaller difference (--min_difference), smaller groups (--least_members) or a larger "
            "log",
        )
    return Pool(candidates=candidates, active=active, left=report)


def _counts(log: Log, table: str) -> dict[str, int]:
    found = log.database.sql(
        f"""
        SELECT count(*) AS ratings, count(DISTINCT user_at) AS users,
            count(DISTINCT item_at) AS items
        FROM {table}
        """
    )
    return dict(zip(found.columns, *found.fetchall(), strict=True))


def _in_windows(
    log: Log, settings: Settings, part: int, parts: int, span: int
) -> Iterator[Candidate]:
    """Each item with a window of enough users, and a largest set of them; of one part of all."""
    own = f"(SELECT * FROM close WHERE item_at % {parts} = {part})"
    listed = log.database.sql(
        f"""
        SELECT item_at, items.name, domain, list_sort(list(time))
        FROM past JOIN items USING (item_at)
        WHERE item_at IN (SELECT item_at FROM {own}) GROUP BY ALL
        """
    )
    items = {item_at: about for item_at, *about in listed.fetchall()}
    purchases = log.database.sql(
        f"""
        SELECT item_at, time, users.name, earlier, relative, average
        FROM {own} JOIN users USING (user_at) ORDER BY item_at, time, user_at
        """
    )
    for item_at, rows in groupby(purchases.fetchall(), key=itemgetter(0)):
        _, times, *columns = zip(*rows, strict=True)
        item, domain, starts = items[item_at]
        window = best_window(
            starts,
            times,
            columns[2],
            span=span,
            gap=settings.min_difference,
            least=settings.least_members,
        )
        if window is not None:
            held = zip(*(column[slice(*window)] for column in columns), strict=True)
            users = _members(item, [GroupUser(*one) for one in held], settings)
            yield Candidate(item=item, domain=domain, users=users)


def _members(item: str, held: Sequence[GroupUser], settings: Settings) -> tuple[GroupUser, ...]:
    """A largest set of a window's users who differ enough, in the order of a stable hash."""
    hashes = {
        user.user_id: stable_int("members", settings.seed, item, user.user_id) for user in held
    }
    ascending = sorted(held, key=lambda user: (user.relative_rating, hashes[user.user_id]))
    order = sorted(range(len(held)), key=lambda place: hashes[ascending[place].user_id])
    values = [user.relative_rating for user in ascending]
    places = first_largest(values, order, gap=settings.min_difference)
    return tuple(ascending[place] for place in places)
