"""A log of engagements in the one schema that every source is brought into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness_gistbench.records import SIGNALS, Signal

if TYPE_CHECKING:
    import numpy as np

CODES: dict[str, int] = {signal: code for code, signal in enumerate(SIGNALS)}
"""The number that stands for a signal in arrays."""

NO_SIGNAL = 255
"""The number of a row that tells nothing, such as a book that was read and not rated."""


@dataclass(frozen=True, kw_only=True)
class Engagements:
    """Consecutive rows of a log, column by column.

    `signals` holds codes of one byte. `times` can be compared, all of one log with each other;
    None where no row has a time, and where `timed` is false a row has none.
    """

    users: list[str]
    objects: list[str]
    signals: np.ndarray
    times: np.ndarray | None = None
    timed: np.ndarray | None = None

    def has_time(self) -> np.ndarray:
        """Which rows have a time."""
        import numpy as np

        if self.timed is not None:
            return self.timed
        return np.full(len(self.users), self.times is not None)


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Objects and what each is about, blank where nothing is known."""

    objects: list[str]
    texts: list[str]


@dataclass(frozen=True, kw_only=True)
class Log:
    """What a source gives: rows of people's engagements, and the texts of their objects.

    Both read from the start each time they are called. `joined` says that texts come from a table
    of their own, in which an object may be absent; else both are of the same rows. `signals` are
    those that the source can give at all, None where the rows must show it.
    """

    engagements: Callable[[], Iterator[Engagements]]
    texts: Callable[[], Iterator[Texts]]
    joined: bool
    signals: tuple[Signal, ...] | None = None
