"""Signals from stars."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness_gistbench.log import CODES, NO_SIGNAL, Engagements
from harness_gistbench.records import Signal
from harness_gistbench.sources.ids import ids
from harness_gistbench.sources.times import Clock

if TYPE_CHECKING:
    from harness.data import Table

SIGNALS_OF_RATINGS: tuple[Signal, ...] = (
    "explicit_positive",
    "implicit_positive",
    "explicit_negative",
)
MOST = 5.0
_LEAST_POSITIVE = 3.0


def signal_code(rating: float) -> int | None:
    """The code of the signal that a rating is; None for what is no rating of at most five stars.

    Five stars are explicit and three to four and a half implicit praise, less is explicit blame; 0
    stands for no rating.
    """
    if rating == 0:
        return NO_SIGNAL
    if not 0 < rating <= MOST:
        return None
    if rating == MOST:
        return CODES["explicit_positive"]
    return CODES["implicit_positive" if rating >= _LEAST_POSITIVE else "explicit_negative"]


def rated(
    table: Table, *, user: str, thing: str, rating: str, time: str | None
) -> Iterator[Engagements]:
    """The engagements of a table of ratings with these columns."""
    import numpy as np

    clock = None if time is None else Clock(table=table, column=time)
    names = (user, thing, rating, *([] if time is None else [time]))
    codes: dict[float, int | None] = {}
    for batch in table.batches(*names):
        for stars in set(batch.columns[rating]):
            codes[stars] = signal_code(stars)
        signals = [codes[stars] for stars in batch.columns[rating]]
        if None in signals:
            place = signals.index(None)
            value = batch.columns[rating][place]
            raise table.bad(batch.first + place, rating, value, "1 to 5 stars, or 0 for no rating")
        times, timed = (
            (None, None)
            if clock is None or time is None
            else clock.read(batch.columns[time], first=batch.first)
        )
        yield Engagements(
            users=ids(table, batch, user),
            objects=ids(table, batch, thing),
            signals=np.array(signals, dtype=np.uint8),
            times=times,
            timed=timed,
        )
