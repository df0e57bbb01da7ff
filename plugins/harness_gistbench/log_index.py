"""A log of engagements in the one schema of all sources, and an index of who did what how often."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from harness.data.sampling import ranks
from harness_gistbench.records import SIGNALS, Signal

if TYPE_CHECKING:
    import numpy as np

CODES: dict[str, int] = {signal: code for code, signal in enumerate(SIGNALS)}
"""The number that stands for a signal in arrays."""

POSITIVE = [code for code, signal in enumerate(SIGNALS) if signal.endswith("_positive")]

NO_SIGNAL = 255
"""The number of a row without a signal, such as a book that was read and not rated."""


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


class Rows(NamedTuple):
    """Engagements as arrays: numbers of users, hashes of objects, codes of signals, times."""

    users: np.ndarray
    objects: np.ndarray
    signals: np.ndarray
    times: np.ndarray
    timed: np.ndarray


@dataclass(frozen=True, kw_only=True)
class LogIndex:
    """What a log holds as a whole.

    `users` are in the order of the log and `counts` their engagements. `pool` are the smallest
    hashes of objects. `positive` rows are approval. `unrated` rows lack a signal, the objects of
    `unknown` rows have no text, and neither is counted elsewhere; `untimed` rows have no time.
    """

    users: tuple[str, ...]
    counts: np.ndarray
    signals: tuple[Signal, ...]
    pool: np.ndarray
    rows: RowsFile
    positive: int
    unrated: int
    unknown: int
    untimed: int


class RowsFile:
    """Rows in temporary files without a name, to be read again without reading the log again."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed below)
        self._objects: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as its owner lives)
        self._parts: list[tuple[int, Any]] = []

    @property
    def kind_of_times(self) -> Any:
        """The type that holds the times of all parts: whole numbers where all are whole."""
        import numpy as np

        return np.result_type(np.int64, *(kind for _, kind in self._parts))

    def add(self, rows: Rows) -> None:
        """Keeps some rows."""
        for array in (rows.users, rows.signals, rows.timed, rows.times):
            self._file.write(array.tobytes())
        self._objects.write(rows.objects.tobytes())
        self._parts.append((len(rows.users), rows.times.dtype))

    def read(self) -> Iterator[Rows]:
        """The rows in parts, as they were added; they can be read once."""
        import numpy as np

        self._file.seek(0)

        def array(count: int, kind: Any) -> np.ndarray:
            size = count * np.dtype(kind).itemsize
            return np.frombuffer(self._file.read(size), dtype=kind)

        first = 0
        with self._file:
            for count, kind in self._parts:
                yield Rows(
                    users=array(count, np.int32),
                    objects=self.objects(first, count),
                    signals=array(count, np.uint8),
                    timed=array(count, np.bool_),
                    times=array(count, kind),
                )
                first += count

    def objects(self, first: int, count: int) -> np.ndarray:
        """The objects' hashes of so many rows, from one on; unlike rows they are read at will."""
        import numpy as np

        self._objects.flush()
        size = np.dtype(np.uint64).itemsize
        data = os.pread(self._objects.fileno(), count * size, first * size)
        return np.frombuffer(data, dtype=np.uint64)


def index_log(log: Log, *, seed: int, pool: int) -> LogIndex:
    """What the log holds; rows without a signal are left out, and those whose object has no text
    where texts are joined to the log."""
    import numpy as np

    known = _known(log, seed) if log.joined else None
    numbers: dict[str, int] = {}
    counts = np.zeros(0, dtype=np.int64)
    smallest = np.zeros(0, dtype=np.uint64)
    seen = np.zeros(len(SIGNALS), dtype=np.int64)
    kept = RowsFile()
    unrated = unknown = untimed = 0
    for part in log.engagements():
        rows = _as_arrays(part, numbers, seed)
        rated = rows.signals != NO_SIGNAL
        has_text = rated if known is None else rated & np.isin(rows.objects, known)
        unrated += int((~rated).sum())
        unknown += int((rated & ~has_text).sum())
        rows = rows if has_text.all() else Rows(*(column[has_text] for column in rows))
        kept.add(rows)
        untimed += int((~rows.timed).sum())
        seen += np.bincount(rows.signals, minlength=len(SIGNALS))
        more = np.bincount(rows.users, minlength=len(numbers))
        more[: len(counts)] += counts
        counts = more
        smallest = _smallest(smallest, rows.objects, pool)
    signals = tuple(signal for signal, n in zip(SIGNALS, seen, strict=True) if n)
    return LogIndex(
        users=tuple(numbers),
        counts=counts,
        signals=log.signals or signals,
        pool=smallest,
        rows=kept,
        positive=int(seen[POSITIVE].sum()),
        unrated=unrated,
        unknown=unknown,
        untimed=untimed,
    )


def signal_counts(users: np.ndarray, signals: np.ndarray, *, many: int) -> np.ndarray:
    """The engagements of each signal of so many users: a row a user, a column a signal."""
    import numpy as np

    cells = users.astype(np.int64) * len(SIGNALS) + signals
    return np.bincount(cells, minlength=many * len(SIGNALS)).reshape(-1, len(SIGNALS))


def _smallest(known: np.ndarray, more: np.ndarray, most: int) -> np.ndarray:
    """The smallest of the known hashes and of more, each once, in order."""
    import numpy as np

    if len(known) == most:
        more = more[more < known[-1]]
    return np.unique(np.concatenate((known, more)))[:most]


def _known(log: Log, seed: int) -> np.ndarray:
    """The hashes of the objects with a text, sorted."""
    import numpy as np

    parts = [
        ranks(
            (thing for thing, text in zip(part.objects, part.texts, strict=True) if text), seed=seed
        )
        for part in log.texts()
    ]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.uint64)


def _as_arrays(part: Engagements, numbers: dict[str, int], seed: int) -> Rows:
    """A part of the log as arrays; new users are given the next numbers."""
    import numpy as np

    for user in dict.fromkeys(part.users):
        numbers.setdefault(user, len(numbers))
    users = np.array([numbers[user] for user in part.users], dtype=np.int32)
    times = np.zeros(len(users), dtype=np.int64) if part.times is None else part.times
    return Rows(
        users=users,
        objects=ranks(part.objects, seed=seed),
        signals=part.signals,
        times=times,
        timed=part.has_time(),
    )
