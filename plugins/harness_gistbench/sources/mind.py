"""MIND: which news people were shown, and which of it they opened."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from harness_gistbench.log import CODES, Engagements, Log, Texts
from harness_gistbench.sources.times import Clock
from harness_gistbench.sources.wording import described

if TYPE_CHECKING:
    from harness.data import Batch, Dataset, Table
    from harness_gistbench.records import Options

_CLICKED = CODES["explicit_positive"]
_OUTCOMES = {"1": _CLICKED, "0": CODES["implicit_negative"]}
_TIME = "%m/%d/%Y %I:%M:%S %p"


def open_log(dataset: Dataset, options: Options) -> Log:
    """The log of impressions and, where the option says so, of the clicks before them."""
    behaviors, news = dataset.table("behaviors"), dataset.table("news")
    return Log(
        engagements=lambda: _engagements(behaviors, untimed_history=options.untimed_history),
        texts=lambda: _texts(news),
        joined=True,
        signals=("explicit_positive", "implicit_negative"),
    )


def _engagements(table: Table, *, untimed_history: bool) -> Iterator[Engagements]:
    clock = Clock(table=table, column="time")
    with_history: set[str] = set()
    names = ("user_id", "time", "impressions", *(("history",) if untimed_history else ()))
    for batch in table.batches(*names):
        yield _impressions(table, batch, clock)
        if untimed_history:
            yield _clicks_before(batch, with_history)


def _impressions(table: Table, batch: Batch, clock: Clock) -> Engagements:
    """What was shown, in the order in which it was; all of one impression has its time."""
    import numpy as np

    columns = batch.columns
    moments = [
        _moment(table, batch.first + place, value) for place, value in enumerate(columns["time"])
    ]
    times, _ = clock.read(moments, first=batch.first)
    users, objects, signals, repeats = [], [], [], []
    for place, shown in enumerate(columns["impressions"]):
        articles = shown.split()
        for article in articles:
            thing, _, outcome = article.rpartition("-")
            if not thing or outcome not in _OUTCOMES:
                expected = "articles such as N1-1 (opened) and N2-0 (not), with spaces between"
                raise table.bad(batch.first + place, "impressions", article, expected)
            objects.append(thing)
            signals.append(_OUTCOMES[outcome])
        users += [columns["user_id"][place]] * len(articles)
        repeats.append(len(articles))
    return Engagements(
        users=users,
        objects=objects,
        signals=np.array(signals, dtype=np.uint8),
        times=np.repeat(times, repeats),
    )


def _clicks_before(batch: Batch, done: set[str]) -> Engagements:
    """The news opened before, the latest first; it is the same in every row of a person."""
    import numpy as np

    users: list[str] = []
    objects: list[str] = []
    for user, history in zip(batch.columns["user_id"], batch.columns["history"], strict=True):
        if user not in done:
            done.add(user)
            clicked = (history or "").split()[::-1]
            users += [user] * len(clicked)
            objects += clicked
    signals = np.full(len(users), _CLICKED, dtype=np.uint8)
    return Engagements(users=users, objects=objects, signals=signals)


def _moment(table: Table, row: int, value: str) -> datetime:
    try:
        return datetime.strptime(value, _TIME)
    except ValueError:
        expected = "a time such as 11/12/2019 2:14:46 PM"
        raise table.bad(row, "time", value, expected) from None


def _texts(table: Table) -> Iterator[Texts]:
    for batch in table.batches("news_id", "title", "abstract"):
        parts = zip(batch.columns["title"], batch.columns["abstract"], strict=True)
        yield Texts(objects=batch.columns["news_id"], texts=[described(one) for one in parts])
