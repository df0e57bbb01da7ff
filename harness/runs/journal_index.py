"""The records of one stage in its journal: an index of places, and lines read on demand."""

from __future__ import annotations

import copy
import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

import msgspec

from harness.base.checksums import LINE, damage
from harness.base.errors import DataError
from harness.base.hashing import stable_int
from harness.contracts.outcomes import NO_ANSWER
from harness.contracts.records import Done, Record, record_type
from harness.runs.journal_parts import (
    FILE_SPAN,
    JournalFiles,
    MappedJournalFiles,
    file_at,
    journal_parts,
    part_numbers,
    part_path,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHUNK = 1 << 16
_ITEM = b',"item":'
"""Follows a line's head and occurs nowhere before, as quotes within strings are escaped."""


class Head(msgspec.Struct, frozen=True, gc=False):
    """The head of a line. A `dropped` line takes back the record of an earlier line."""

    key: str
    stage: str
    user: str = ""
    id: str = ""
    dropped: bool = False


class OutcomeTag(msgspec.Struct, frozen=True, gc=False):
    """The kind of an outcome, and the cause if it is a failure."""

    type: str
    cause: str = ""


class CallTag(msgspec.Struct, frozen=True, gc=False):
    """The failure of a call, if it has one."""

    failure: OutcomeTag | None = None


class OutcomeHead(msgspec.Struct, frozen=True, gc=False):
    """The head of a line with the kind of its outcome; None if the line drops a record."""

    key: str
    stage: str
    dropped: bool = False
    outcome: OutcomeTag | None = None
    calls: tuple[CallTag, ...] = ()
    crc32: str = ""

    @property
    def unanswered(self) -> bool:
        """Whether a question ended without an answer, even if the item has a value."""
        ends = (self.outcome, *(call.failure for call in self.calls))
        kinds = ("call_failed", "no_verdict")
        return any(one and one.type in kinds and one.cause in NO_ANSWER for one in ends)


T = TypeVar("T")
HeadT = TypeVar("HeadT", Head, OutcomeHead)


def scan(
    path: Path, head: type[HeadT], *, finished: bool = False
) -> Iterator[tuple[int, int, HeadT]]:
    """Place, length and head of every whole line of a journal, file by file in the order of time.

    The torn end of a file is skipped: its record was never finished. Any other damage means that a
    record was lost, and is a DataError, as is a torn end in the first file of a `finished` stage:
    whoever writes on cuts it off, so what was damaged may have replaced an earlier record. Every
    line is checked as a whole, but with `Head` only its head is decoded.
    """
    decode = msgspec.json.Decoder(head).decode
    read = decode if head is not Head else lambda line: decode(_start(line))
    for number in part_numbers(path):
        file, place = part_path(path, number), number * FILE_SPAN
        for line, found in whole_lines(file, read, finished=finished and not number):
            yield place, len(line), found
            place += len(line)


def whole_lines(
    path: Path, read: Callable[[bytes], T], *, finished: bool = False
) -> Iterator[tuple[bytes, T]]:
    """Each whole line of one file of a journal, with what `read` makes of it; see `scan`.

    A missing file has no lines.
    """
    try:
        file = path.open("rb", buffering=1 << 20)
    except FileNotFoundError:
        return
    with file:
        size = os.fstat(file.fileno()).st_size
        left = size if finished else _after_last_newline(file.fileno(), size)
        number = 0
        while left > 0:
            line = file.readline()
            number += 1
            left -= len(line)
            if wrong := damage(line, LINE):
                if left <= 0 and not finished:
                    return
                raise damaged(path, number, wrong)
            try:
                found = read(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise damaged(path, number, str(error)) from error
            yield line, found


def _start(line: bytes) -> bytes:
    """A line without its item and the rest, which may be long; unchanged without an item."""
    end = line.find(_ITEM)
    return line if end < 0 else line[:end] + b"}"


def damaged(path: Path, number: int, found: str) -> DataError:
    """The error for a line of a journal that cannot be read."""
    return DataError(
        "damaged record",
        where=f"{path}:{number}",
        found=found,
        expected="one whole JSON record a line, with its checksum",
        hint="delete the line, then repeat the run's command with --resume and the run's folder: "
        "it asks again for the item",
    )


def check_number(path: Path, found: int, items: int) -> None:
    """Raise DataError if the journal of a finished stage lacks records, as its end was damaged."""
    if found != items:
        files = journal_parts(path) or [path]
        raise DataError(
            "the journal lacks records",
            where=str(files[0]) + (f" to {files[-1].name}" if len(files) > 1 else ""),
            found=f"{found:,} records",
            expected=f"{items:,}, as the manifest says",
            hint="repeat the run's command with --resume and the run's folder: it asks again for "
            "the items without a record",
        )


def line_number(path: Path, offset: int) -> int:
    """The number, from 1, of the line that begins at `offset`."""
    number = 1
    with path.open("rb") as file:
        while offset > 0:
            chunk = file.read(min(_CHUNK, offset))
            if not chunk:
                break
            number += chunk.count(b"\n")
            offset -= len(chunk)
    return number


def cut_torn_tail(descriptor: int) -> int:
    """Cut off the end of a journal that a crash left unfinished; return the number of bytes cut.

    That is everything after the last newline, and a last line that is damaged.
    """
    size = os.fstat(descriptor).st_size
    end = _after_last_newline(descriptor, size)
    if end > 0:
        start = _after_last_newline(descriptor, end - 1)
        if damage(os.pread(descriptor, end - start, start), LINE):
            end = start
    if end < size:
        os.ftruncate(descriptor, end)
    return size - end


def _after_last_newline(descriptor: int, end: int) -> int:
    """The offset after the last newline before `end`; 0 if there is none."""
    while end > 0:
        start = max(0, end - _CHUNK)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")

_LARGE = 4096
"""The lines of users with more records than this are sorted before they are decoded."""


class JournalIndex:
    """The place of the current record of each key, by user in the order of the users' hashes.

    `wanted` keeps only the lines whose head it accepts. With `items`, which the manifest has of a
    finished stage, a DataError says if records are missing; see `scan` for `finished`. The index is
    small: 12 bytes a record and 8 a user, and about 40 bytes a record while it is made.
    """

    def __init__(
        self,
        path: Path,
        stage_key: str,
        *,
        wanted: Callable[[Head], bool] | None = None,
        items: int | None = None,
        finished: bool = False,
    ) -> None:
        import numpy as np

        self.path = path
        keys, users, places, sizes = array("q"), array("Q"), array("q"), array("I")
        user, user_hash = None, 0
        for place, size, head in scan(path, Head, finished=finished):
            if head.stage != stage_key or not (head.dropped or wanted is None or wanted(head)):
                continue
            if head.user != user:
                user, user_hash = head.user, stable_int(head.user)
            # The hash is only for this process; if two are equal, the keys are compared.
            keys.append(hash(head.key))
            users.append(user_hash)
            # A dropping line is in the index only until the line that it takes back is removed.
            places.append(~place if head.dropped else place)
            sizes.append(size)
        found = np.frombuffer(places, dtype=np.int64)
        lengths = np.frombuffer(sizes, dtype=np.uint32)
        owners = np.frombuffer(users, dtype=np.uint64)
        current = self._current(np.frombuffer(keys, dtype=np.int64), found, lengths)
        del keys
        if current is not None:
            found, lengths, owners = found[current], lengths[current], owners[current]
        if items is not None:
            check_number(path, len(found), items)
        order = np.argsort(owners, kind="stable")
        self.places: NDArray[np.int64] = found[order]
        self.lengths: NDArray[np.uint32] = lengths[order]
        owners = owners[order]
        self.starts: NDArray[np.int64] = np.flatnonzero(
            np.concatenate(([True], owners[1:] != owners[:-1])) if len(owners) else owners
        )

    def __len__(self) -> int:
        return len(self.places)

    def users(self) -> Iterator[tuple[int, int]]:
        """The first position of each user's records and the position after the last."""
        for position, start in enumerate(self.starts):
            last = position + 1 == len(self.starts)
            yield int(start), len(self) if last else int(self.starts[position + 1])

    def part(self, start: int, stop: int) -> JournalIndex:
        """The index of the records from one position to before another, of whole users."""
        part = copy.copy(self)
        part.places, part.lengths = self.places[start:stop], self.lengths[start:stop]
        part.starts = self.starts[(start <= self.starts) & (self.starts < stop)] - start
        return part

    def hash_at(self, position: int) -> int:
        """The hash of the user of a record, by which users are in order."""
        with JournalFiles(self.path) as files:
            line = files.read(int(self.places[position]), int(self.lengths[position]))
        return stable_int(msgspec.json.decode(_start(line), type=Head).user)

    def from_hash(self, user_hash: int) -> int:
        """The position of the first record of users with this hash or a higher one."""
        place = bisect_left(self.starts, user_hash, key=lambda start: self.hash_at(int(start)))
        return int(self.starts[place]) if place < len(self.starts) else len(self)

    def _current(
        self, keys: NDArray[np.int64], places: NDArray[np.int64], lengths: NDArray[np.uint32]
    ) -> NDArray[np.bool_] | None:
        """The lines that are current: the last of each key unless it drops; None means all."""
        import numpy as np

        in_order = np.sort(keys)
        repeated = in_order[1:][in_order[1:] == in_order[:-1]]
        del in_order
        if not len(repeated) and not (places < 0).any():
            return None
        kept = places >= 0
        candidates = np.flatnonzero(np.isin(keys, repeated))
        last: dict[str, int] = {}
        decode = msgspec.json.Decoder(Head).decode
        with JournalFiles(self.path) as files:
            for candidate in candidates.tolist():
                place = int(places[candidate])
                line = files.read(place if place >= 0 else ~place, int(lengths[candidate]))
                last[decode(line).key] = candidate
        kept[candidates] = False
        for candidate in last.values():
            kept[candidate] = places[candidate] >= 0
        return kept


def in_shares(indexes: Mapping[str, JournalIndex], number: int) -> list[dict[str, JournalIndex]]:
    """The records of stages in at most so many shares, each of the same whole users in all stages.

    One after the other they have the users in their order; each has about as many of the records of
    the longest stage.
    """
    longest = max(indexes.values(), key=len)
    places = (len(longest) * share // number for share in range(1, min(number, len(longest))))
    hashes = sorted({longest.hash_at(place) for place in places})
    cuts = {
        stage: [0, *map(index.from_hash, hashes), len(index)] for stage, index in indexes.items()
    }
    return [
        {stage: index.part(*cuts[stage][share : share + 2]) for stage, index in indexes.items()}
        for share in range(len(hashes) + 1)
    ]


class JournalRecords(Generic[ItemT, ValueT]):
    """The current records of one stage, streamed from its journal; see `Records` for their order.

    Lines that were appended after this was made are not read.
    """

    def __init__(
        self,
        path: Path,
        stage_key: str,
        kind: Any = Record[Any, Any],
        *,
        index: JournalIndex | None = None,
    ) -> None:
        self._index = JournalIndex(path, stage_key) if index is None else index
        self._decoder = msgspec.json.Decoder(kind)

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(JournalRecords, kind=self._decoder.type, index=self._index)
        return made, (self._index.path, "")

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[Record[ItemT, ValueT]]:
        index = self._index
        if not len(index):
            return
        decode = msgspec.json.Decoder(Head).decode
        with JournalFiles(index.path) as files:
            for start, stop in index.users():
                positions = range(start, stop)
                if stop - start > _LARGE:
                    order = sorted(positions, key=lambda at: _order(decode(self._line(files, at))))
                    yield from (self._read(files, position) for position in order)
                else:
                    records = (self._read(files, position) for position in positions)
                    yield from sorted(records, key=_order)

    def at(self, positions: Iterable[int]) -> Iterator[Record[ItemT, ValueT]]:
        """The records at these positions of the index, in the order in which they are given."""
        with MappedJournalFiles(self._index.path) as files:
            for position in positions:
                yield self._read(files, position)

    def values(self) -> Iterator[tuple[ItemT, ValueT]]:
        """Item and value of every record that has one."""
        for record in self:
            if isinstance(record.outcome, Done):
                yield record.item, record.outcome.value

    def with_items(self, kind: type[Any]) -> JournalRecords[Any, ValueT]:
        """The same records with their items read as a type that has only some of the fields."""
        _, value = get_args(self._decoder.type)
        return JournalRecords(self._index.path, "", record_type(kind, value), index=self._index)

    def by_user(self) -> Iterator[tuple[str, list[Record[ItemT, ValueT]]]]:
        """Each user with the records of that user."""
        for user, records in groupby(self, key=lambda record: record.user):
            yield user, list(records)

    def _line(self, files: JournalFiles | MappedJournalFiles, position: int) -> bytes:
        index = self._index
        return files.read(int(index.places[position]), int(index.lengths[position]))

    def _read(
        self, files: JournalFiles | MappedJournalFiles, position: int
    ) -> Record[ItemT, ValueT]:
        line = self._line(files, position)
        try:
            record: Record[ItemT, ValueT] = self._decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            index = self._index
            file, offset = file_at(index.path, int(index.places[position]))
            number = line_number(file, offset)
            if not isinstance(error, msgspec.ValidationError):
                raise damaged(file, number, str(error)) from error
            raise DataError(
                "a record does not fit the types of its stage",
                where=f"{file}:{number}",
                found=str(error),
                hint="the benchmark's code changed since the run: raise the stage's `version`, so "
                "that its records are made again from the stored answers, or repeat the command "
                "with --fresh, or use the release of the plugin that the manifest names",
            ) from error
        return record


def _order(record: Record[Any, Any] | Head) -> tuple[str, str]:
    return record.user, record.id
