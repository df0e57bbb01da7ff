"""MIND: which news people were shown, and which of it they opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from harness.data.sampling import ranks
from harness_gistbench.log_index import CODES, Engagements, Log
from harness_gistbench.sources.cells import filled, texts_of
from harness_gistbench.sources.times import Clock

if TYPE_CHECKING:
    import numpy as np

    from harness.contracts.dataset import Batch, Dataset, Table
    from harness_gistbench.records import Options

_CLICKED = CODES["explicit_positive"]
_OUTCOMES = {"1": _CLICKED, "0": CODES["implicit_negative"]}
_TIME = "%m/%d/%Y %I:%M:%S %p"
_TOGETHER = 1 << 13


def open_log(dataset: Dataset, options: Options) -> Log:
    """The log of impressions and, where the option says so, of the clicks before them."""
    behaviors, news = dataset.table("behaviors"), dataset.table("news")
    return Log(
        engagements=lambda: _engagements(behaviors, untimed_history=options.untimed_history),
        texts=lambda: texts_of(news, "news_id", "title", "abstract"),
        joined=True,
        signals=("explicit_positive", "implicit_negative"),
    )


def _engagements(table: Table, *, untimed_history: bool) -> Iterator[Engagements]:
    clock = Clock(table=table, column="time")
    before = _ClicksBefore()
    names = ("user_id", "time", "impressions", *(("history",) if untimed_history else ()))
    for batch in table.batches(*names):
        moments = [
            _moment(table, batch.first + place, value)
            for place, value in enumerate(batch.columns["time"])
        ]
        times, _ = clock.read(moments, first=batch.first)
        shown = _impressions(table, batch, times)
        yield shown
        if untimed_history:
            before.add(batch, times, shown)
    if untimed_history:
        yield from before.engagements()


def _impressions(table: Table, batch: Batch, times: np.ndarray) -> Engagements:
    """What was shown, in the order in which it was; all of one impression has its time."""
    import numpy as np

    people = filled(table, batch, "user_id")
    users, objects, signals, repeats = [], [], [], []
    for place, shown in enumerate(batch.columns["impressions"]):
        articles = shown.split()
        for article in articles:
            thing, _, outcome = article.rpartition("-")
            if not thing or outcome not in _OUTCOMES:
                expected = "articles such as N1-1 (opened) and N2-0 (not), with spaces between"
                raise table.bad(batch.first + place, "impressions", article, expected)
            objects.append(thing)
            signals.append(_OUTCOMES[outcome])
        users += [people[place]] * len(articles)
        repeats.append(len(articles))
    return Engagements(
        users=users,
        objects=objects,
        signals=np.array(signals, dtype=np.uint8),
        times=np.repeat(times, repeats),
    )


class _ClicksBefore:
    """The news that people opened before all impressions, and not in one of these as well.

    State: each person's earliest time with the history of that impression, and the hashes of who
    opened what. A later file repeats in its histories what an earlier one has as impressions.
    """

    def __init__(self) -> None:
        self._earliest: dict[str, tuple[int, str]] = {}
        self._opened: list[np.ndarray] = []

    def add(self, batch: Batch, times: np.ndarray, shown: Engagements) -> None:
        """Takes in the histories of a batch, and what was opened of what it shows."""
        import numpy as np

        columns = batch.columns
        rows = zip(columns["user_id"], times.tolist(), columns["history"], strict=True)
        for user, time, history in rows:
            known = self._earliest.get(user)
            if known is None or time < known[0]:
                self._earliest[user] = time, history or ""
        places = np.flatnonzero(shown.signals == _CLICKED).tolist()
        self._opened.append(_pairs((shown.users[place], shown.objects[place]) for place in places))

    def engagements(self) -> Iterator[Engagements]:
        """These clicks, of each person the latest first."""
        import numpy as np

        opened = np.sort(np.concatenate(self._opened))
        people = iter(self._earliest.items())
        while part := list(islice(people, _TOGETHER)):
            clicks = [
                (user, thing) for user, (_, history) in part for thing in history.split()[::-1]
            ]
            hashes = _pairs(clicks)
            again = np.searchsorted(opened, hashes, "right") > np.searchsorted(opened, hashes)
            kept = [clicks[place] for place in np.flatnonzero(~again).tolist()]
            yield Engagements(
                users=[user for user, _ in kept],
                objects=[thing for _, thing in kept],
                signals=np.full(len(kept), _CLICKED, dtype=np.uint8),
            )


def _pairs(clicks: Iterable[tuple[str, str]]) -> np.ndarray:
    """A hash of each person with what was opened, whose name has no space in it."""
    return ranks((f"{user} {thing}" for user, thing in clicks), seed=0)


def _moment(table: Table, row: int, value: str) -> datetime:
    try:
        return datetime.strptime(value, _TIME)
    except ValueError:
        expected = "a time such as 11/12/2019 2:14:46 PM"
        raise table.bad(row, "time", value, expected) from None
