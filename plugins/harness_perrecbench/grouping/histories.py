"""Ratings in the order of users' histories, with what each user rated before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness_perrecbench.grouping.reading import UNIT, Log

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True)
class Histories:
    """Ratings by user, each history oldest first; at one time by the name of the item.

    `starts` are where histories begin, with the end of the last. `now` has of each rating the place
    of the first of the same user and time: what is before that was rated earlier. `sums` are of all
    ratings before a place.
    """

    user: np.ndarray
    item: np.ndarray
    rating: np.ndarray
    time: np.ndarray
    starts: np.ndarray
    now: np.ndarray
    sums: np.ndarray

    def earlier(self) -> np.ndarray:
        """How many ratings of the same user are earlier than each, those of its moment not."""
        earlier: np.ndarray = self.now - self.starts[self.user]
        return earlier

    def averages(self, rows: np.ndarray, *, strict: bool) -> np.ndarray:
        """The user's average at each of the rows: of the whole history, or of what is earlier.

        A strict average is only there for rows with something earlier.
        """
        first = self.starts[self.user[rows]]
        last = self.now[rows] if strict else self.starts[self.user[rows] + 1]
        averages: np.ndarray = (self.sums[last] - self.sums[first]) / (UNIT * (last - first))
        return averages


def with_titles(log: Log, titles: set[str]) -> np.ndarray:
    """Which ratings are of an item that has a title: no history could show another."""
    import numpy as np

    has = np.fromiter((name in titles for name in log.items), dtype=bool, count=len(log.items))
    return np.flatnonzero(has[log.item])


def first_reviews(log: Log, rows: np.ndarray) -> np.ndarray:
    """Of these ratings each user's first of each item; of several at one time the lowest."""
    import numpy as np

    pairs = log.user[rows].astype(np.int64) * len(log.items) + log.item[rows]
    order = np.lexsort((log.rating[rows], log.time[rows], pairs))
    first: np.ndarray = rows[order[_begins(pairs[order])]]
    return first


def histories(log: Log, rows: np.ndarray) -> Histories:
    """The histories that these ratings make."""
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
    """Where a run of equal values begins."""
    import numpy as np

    begins = np.ones(len(values), dtype=bool)
    begins[1:] = values[1:] != values[:-1]
    return begins
