"""Activities as lines of text, and the range of their times; all times are in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import gmtime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness_usersumbench.records import Activity, Options

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def lines(activities: Iterable[Activity], options: Options) -> tuple[str, ...]:
    """Each activity on one line: `watched "Name" [genre, genre] around Sat 05/15/2004 4PM`."""
    return tuple(
        f'{options.verb} "{one.name}" [{", ".join(one.categories)}] around {_moment(one.time)}'
        for one in activities
    )


def time_range(activities: Sequence[Activity]) -> str:
    """The first and the last day of activities in order of time: `05/15/2004 to 07/21/2004`."""
    first, last = _day(activities[0].time), _day(activities[-1].time)
    return first if first == last else f"{first} to {last}"


def month(time: int) -> tuple[int, int]:
    """The year and month of a time."""
    return gmtime(time)[:2]


def _moment(time: int) -> str:
    when = gmtime(time)
    half = "AM" if when.tm_hour < 12 else "PM"
    return f"{WEEKDAYS[when.tm_wday]} {_day(time)} {when.tm_hour % 12 or 12}{half}"


def _day(time: int) -> str:
    when = gmtime(time)
    return f"{when.tm_mon:02}/{when.tm_mday:02}/{when.tm_year:04}"
