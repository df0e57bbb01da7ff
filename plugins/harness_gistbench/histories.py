"""The histories of the people chosen, most recent first, and the pool of objects.

There are millions of engagements and objects: numbers are held in arrays, texts in a file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from harness import DataError
from harness.data.sampling import ranks
from harness_gistbench.log_index import POSITIVE, LogIndex, Rows, RowsFile, index_log
from harness_gistbench.records import SIGNALS, PoolObject, Signal

if TYPE_CHECKING:
    import numpy as np

    from harness.contracts.dataset import Dataset
    from harness_gistbench.log_index import Log
    from harness_gistbench.records import Options

GAP = 1 << 15
"""Texts this near each other in the file are read together."""

_TOGETHER = 1 << 18

_encode_lines = msgspec.json.Encoder().encode_lines
_decode_lines = msgspec.json.Decoder(tuple[str, str]).decode_lines
_encoded = partial(str.encode, errors="surrogatepass")


class Engagement(msgspec.Struct, frozen=True, gc=False):
    """One thing that a person did."""

    object: str
    text: str
    signal: Signal


@dataclass(frozen=True, kw_only=True)
class Histories:
    """What people did, of the people chosen, and the objects that may be distractors.

    `signals` and `pool` are those of the whole data, whomever the run chose. The pool is in the
    order of the hashes by which it was chosen, the same by which users are.
    """

    users: Sequence[str]
    signals: tuple[Signal, ...]
    pool: tuple[PoolObject, ...]
    seed: int
    _bounds: Mapping[str, tuple[int, int]] = field(repr=False)
    _objects: np.ndarray = field(repr=False)
    _codes: np.ndarray = field(repr=False)
    _texts: TextIndex = field(repr=False)
    _pooled: Mapping[int, str] = field(repr=False)
    _is_pooled: np.ndarray = field(repr=False)

    def history(self, user: str) -> list[Engagement]:
        """All engagements of a person, most recent first.

        Those of the same time stand in the order of the data, and so do those without a time, which
        come last.
        """
        first, last = self._bounds[user]
        things = self._texts.read(self._objects[first:last])
        codes = self._codes[first:last].tolist()
        return [
            Engagement(thing, text, SIGNALS[code])
            for (thing, text), code in zip(things, codes, strict=True)
        ]

    def own_of_pool(self, user: str) -> frozenset[str]:
        """The objects of the pool that a person engaged with."""
        first, last = self._bounds[user]
        own = self._objects[first:last]
        return frozenset(self._pooled[number] for number in own[self._is_pooled[own]].tolist())

    def count(self, user: str) -> int:
        """How many engagements a person has."""
        first, last = self._bounds[user]
        return last - first


def gather(log: Log, dataset: Dataset, options: Options) -> Histories:
    """The histories in a log, of the users that the run keeps.

    People with fewer engagements than the task asks for are left out before the choice. Texts are
    kept on disk and the rest in arrays, so that millions of engagements can be held.
    """
    import numpy as np

    index = index_log(log, seed=dataset.seed, pool=options.pool)
    counts = dict(zip(index.users, index.counts.tolist(), strict=True))
    enough = [user for user, count in counts.items() if count >= options.min_engagements]
    _note(dataset, index, few=len(counts) - len(enough), least=options.min_engagements)
    users = dataset.choose(enough)
    if not index.positive:
        raise DataError(
            f"no interest can be verified with the data of task '{dataset.task}'",
            where=", ".join(one.label for of in dataset.tables.values() for one in of.sources),
            found=f"{index.counts.sum():,} engagements, and none of them positive",
            expected="engagements of the type explicit_positive or implicit_positive",
            hint="`harness data describe` shows the types of engagement that the data has",
        )
    rows = _rows_of(users, index)
    order = _order(rows)
    objects, codes = rows.objects, rows.signals
    del rows
    objects, codes = objects[order], codes[order]
    del order
    bounds = {}
    last = 0
    for user in users:
        first, last = last, last + counts[user]
        bounds[user] = first, last
    without = sum(not np.isin(codes[a:b], POSITIVE).any() for a, b in bounds.values())
    dataset.note("users without a positive engagement, who score 0 whoever is asked", without)
    texts = TextIndex(objects, index.pool)
    numbers = texts.numbers(objects)
    del objects
    # Hashing millions of objects again is a good part of reading them.
    same_rows = not log.joined and not index.unrated
    torn = texts.fill(log, seed=dataset.seed, hashed=index.rows if same_rows else None)
    dataset.note("objects with several texts, of which the first is taken", torn)
    pooled = texts.numbers(index.pool)
    pool = tuple(PoolObject(thing, text) for thing, text in texts.read(pooled))
    is_pooled = np.zeros(len(texts), dtype=np.bool_)
    is_pooled[pooled] = True
    return Histories(
        users=tuple(users),
        signals=index.signals,
        pool=pool,
        seed=dataset.seed,
        _bounds=bounds,
        _objects=numbers,
        _codes=codes,
        _texts=texts,
        _pooled=dict(zip(pooled.tolist(), (one.object for one in pool), strict=True)),
        _is_pooled=is_pooled,
    )


def _rows_of(users: Sequence[str], index: LogIndex) -> Rows:
    """The rows of these users, numbered from 0 in their order."""
    import numpy as np

    place = {user: number for number, user in enumerate(users)}
    new = np.array([place.get(user, -1) for user in index.users], dtype=np.int32)
    total = int(index.counts[new >= 0].sum())
    kinds = (np.int32, np.uint64, np.uint8, index.rows.kind_of_times, np.bool_)
    rows = Rows(*(np.empty(total, dtype=kind) for kind in kinds))
    end = 0
    for part in index.rows.read():
        numbers = new[part.users]
        mine = numbers >= 0
        start, end = end, end + int(mine.sum())
        for column, own in zip(rows, part._replace(users=numbers), strict=True):
            column[start:end] = own[mine]
    return rows


def _order(rows: Rows) -> np.ndarray:
    """The order by user, a user's most recent first; equal times keep the order of the rows.

    Turns the times round where they stand: copies of millions would be the most that is held.
    """
    import numpy as np

    np.negative(rows.times, out=rows.times)
    np.logical_not(rows.timed, out=rows.timed)
    return np.lexsort((rows.times, rows.timed, rows.users))


def _note(dataset: Dataset, index: LogIndex, *, few: int, least: int) -> None:
    """Notes what a reader of the scores should know of the data."""
    ordered = "engagements in the order of the data, as none has a time"
    oldest = "engagements without a time, taken as the oldest"
    facts = {
        "engagements left out for want of a rating": index.unrated,
        "engagements left out as their object has no text": index.unknown,
        ordered if index.untimed == index.counts.sum() else oldest: index.untimed,
        f"users left out with fewer than {least} engagements": few,
    }
    for fact, number in facts.items():
        dataset.note(fact, number)


class TextIndex:
    """Objects of these hashes with their texts; where a log has several of one, its first."""

    def __init__(self, *hashes: np.ndarray) -> None:
        import numpy as np

        every = np.concatenate(hashes)
        every.sort()
        self._hashes = every[np.concatenate(([True], every[1:] != every[:-1]))]
        del every
        self._starts = np.full(len(self._hashes), -1, dtype=np.int64)
        self._sizes = np.zeros(len(self._hashes), dtype=np.uint32)
        self._file = TextFile()

    def __len__(self) -> int:
        return len(self._hashes)

    def numbers(self, hashes: np.ndarray) -> np.ndarray:
        """What the objects of these hashes are called here."""
        import numpy as np

        found = np.empty(len(hashes), dtype=np.int32)
        for start in range(0, len(hashes), _TOGETHER):
            part = hashes[start : start + _TOGETHER]
            # Looked up in their own order, hashes would each be far from the one before.
            order = np.argsort(part)
            found[start + order] = np.searchsorted(self._hashes, part[order])
        return found

    def fill(self, log: Log, *, seed: int, hashed: RowsFile | None = None) -> int:
        """Takes the texts from a log, once, and returns how many objects have a second one.

        Of the same rows `hashed` knows the objects already.
        """
        import numpy as np

        # Short, as there are millions of objects.
        digests = np.zeros(len(self._hashes), dtype=np.uint32)
        torn = np.zeros(len(self._hashes), dtype=np.bool_)
        first = end = 0
        for part in log.texts():
            hashes = (
                ranks(part.objects, seed=seed)
                if hashed is None
                else hashed.objects(first, len(part.objects))
            )
            first += len(part.objects)
            numbers = np.minimum(self.numbers(hashes), len(self._hashes) - 1)
            wanted = self._hashes[numbers] == hashes
            if "" in part.texts:
                wanted &= np.array([text != "" for text in part.texts])
            mine = np.flatnonzero(wanted)
            rows = np.flatnonzero(wanted & (self._starts[numbers] < 0))
            rows = rows[np.sort(np.unique(numbers[rows], return_index=True)[1])]
            chosen = rows.tolist()
            sizes = self._file.add(
                [part.objects[row] for row in chosen], [part.texts[row] for row in chosen]
            )
            ends = end + np.cumsum(sizes)
            self._starts[numbers[rows]] = ends - sizes
            self._sizes[numbers[rows]] = sizes
            end = int(ends[-1]) if len(ends) else end
            texts = map(_encoded, map(part.texts.__getitem__, mine.tolist()))
            hashes = np.fromiter(map(crc32, texts), dtype=np.uint32, count=len(mine))
            digests[numbers[rows]] = hashes[np.searchsorted(mine, rows)]
            torn[numbers[mine[digests[numbers[mine]] != hashes]]] = True
        return int(torn.sum())

    def read(self, numbers: np.ndarray) -> list[tuple[str, str]]:
        """Object and text of each number."""
        return self._file.read(self._starts[numbers], self._sizes[numbers])


class TextFile:
    """Objects with their texts, each found again by where it begins and how long it is there.

    The file has no name, so that it is gone with the process, however that ends.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as its owner lives)

    def add(self, objects: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        """Keeps objects with their texts one after the other; how long each is in the file."""
        import numpy as np

        lines = _encode_lines(zip(objects, texts, strict=True))
        self._file.write(lines)
        # JSON has line ends between values alone.
        ends = np.flatnonzero(np.frombuffer(lines, dtype=np.uint8) == ord("\n")) + 1
        return np.diff(ends, prepend=0)

    def read(self, starts: np.ndarray, sizes: np.ndarray) -> list[tuple[str, str]]:
        """Object and text at each of the places, in the order asked."""
        import numpy as np

        if not len(starts):
            return []
        self._file.flush()
        order = np.argsort(starts)
        begins, ends = starts[order], (starts + sizes)[order]
        wide = np.flatnonzero(begins[1:] - ends[:-1] > GAP) + 1
        found: list[tuple[str, str]] = []
        for first, end in pairwise((0, *wide.tolist(), len(order))):
            begin = int(begins[first])
            data = os.pread(self._file.fileno(), int(ends[end - 1]) - begin, begin)
            places = zip(
                (begins[first:end] - begin).tolist(),
                (ends[first:end] - begin).tolist(),
                strict=True,
            )
            found += _decode_lines(b"".join([data[start:stop] for start, stop in places]))
        return [found[place] for place in np.argsort(order).tolist()]
