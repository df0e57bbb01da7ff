"""The journal of one stage: records appended as lines, and read by an index of their places.

A record's `stage` is the key of its stage, not its name: lines with another key stay in the file
and are skipped. A journal is `1-name.jsonl` and then its parts `1-name.0001.jsonl`, and so on: each
worker on a cluster writes a part of its own, to which nothing else appends. The numbers of parts
only rise, so the first file and then the parts by number are in the order of time. The files of a
large journal are packed into its first one, `1-name.jsonl.zst`, when its run is done.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import math
import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from itertools import chain, groupby, pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, get_args

import msgspec

from harness.base.errors import DataError, StorageError
from harness.base.hashing import LINE, damage, seal, stable_int
from harness.contracts.outcomes import NO_ANSWER
from harness.contracts.records import Done, JournalLine, Record, record_type
from harness.runs.atomic_files import storage_error, sync_folder
from harness.runs.packed_file import PACKED, DamagedPackedFile, PackedFile, write_packed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DIGITS = 4
_MOST_DIGITS = 6

FILE_SPAN = 1 << 40
"""A line's place in a journal is its offset plus so much for each number up to its part's."""

_OPEN = 16
"""Files of a journal that are open at a time. Lines are mostly read part by part."""

_ROWS = 256
_BYTES = 1 << 16
"""Few enough to be still in the processor's cache when they are written, which halves the cost."""
_SECONDS = 0.1
_CHUNK = 1 << 16
_ITEM = b',"item":'
"""Follows a line's head and occurs nowhere before, as quotes within strings are escaped."""

_LARGE = 4096
"""The lines of users with more records than this are sorted before they are decoded."""

_PACK_FROM = 1 << 24
"""The bytes of the smallest journal that is packed."""

T = TypeVar("T")
ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")


def part_path(path: Path, number: int) -> Path:
    """The path of a journal's part; number 0 is the journal's first file, `path` or packed."""
    if not 0 <= number < 10**_MOST_DIGITS:
        raise ValueError(f"a journal has no part {number}")
    if number:
        return path.with_name(f"{path.stem}.{number:0{_DIGITS}}{path.suffix}")
    packed = _packed(path)
    return packed if packed.exists() else path


def _packed(path: Path) -> Path:
    return path.with_name(path.name + PACKED)


def part_numbers(path: Path) -> list[int]:
    """The numbers of a journal's existing files in the order of time; 0 is the first file."""
    try:
        names = [file.name for file in path.parent.iterdir()]
    except FileNotFoundError:
        return []
    start, end = f"{path.stem}.", path.suffix
    found = [0] if {path.name, _packed(path).name} & {*names} else []
    for name in names:
        if name.startswith(start) and name.endswith(end):
            digits = name[len(start) : len(name) - len(end)]
            if _is_number(digits):
                found.append(int(digits))
    return sorted(found)


def journal_parts(path: Path) -> list[Path]:
    """The existing files of a journal in the order of time; the last line of a key is current."""
    return [part_path(path, number) for number in part_numbers(path)]


def next_part(path: Path) -> int:
    """The number of a journal's next part: one more than the highest, and at least 1."""
    return max(part_numbers(path), default=0) + 1


def named_like_part(stage: str) -> bool:
    """Whether the journal of a stage with this name would be taken for a part of another."""
    _, dot, end = stage.rpartition(".")
    return bool(dot) and _is_number(end)


def _is_number(digits: str) -> bool:
    """Whether these are the digits of a part's number, as `part_path` writes them."""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        return False
    return int(digits) > 0 and f"{int(digits):0{_DIGITS}}" == digits


class JournalFiles:
    """Reads lines of a journal by their places; a file is opened when a line of it is read.

    `mapped` files are read from memory that holds their pages.
    """

    def __init__(self, path: Path, *, mapped: bool = False) -> None:
        self._path = path
        self._mapped = mapped
        self._files: dict[int, Any] = {}
        self._start = -FILE_SPAN
        self._file: Any = None

    def read(self, place: int, length: int) -> bytes:
        """The line at a place."""
        offset = place - self._start
        if not 0 <= offset < FILE_SPAN:
            number, offset = divmod(place, FILE_SPAN)
            self._turn_to(number)
        if isinstance(self._file, PackedFile):
            return self._file.read(offset, length)
        if self._mapped:
            line: bytes = self._file[offset : offset + length]
            return line
        return os.pread(self._file, length, offset)

    def close(self) -> None:
        """Close all files; reading opens them again."""
        self._start = -FILE_SPAN
        for number in [*self._files]:
            self._close(number)

    def __enter__(self) -> JournalFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _turn_to(self, number: int) -> None:
        if number not in self._files:
            if len(self._files) >= _OPEN:
                self._close(next(iter(self._files)))
            path = part_path(self._path, number)
            if path.suffix == PACKED:
                self._files[number] = PackedFile(path)
            elif self._mapped:
                with path.open("rb") as file:
                    self._files[number] = mmap(file.fileno(), 0, access=ACCESS_READ)
            else:
                self._files[number] = os.open(path, os.O_RDONLY)
        self._file, self._start = self._files[number], number * FILE_SPAN

    def _close(self, number: int) -> None:
        file = self._files.pop(number)
        if isinstance(file, int):
            os.close(file)
        else:
            file.close()


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
        for line, found in lines_of(file, read, finished=finished and not number):
            yield place, len(line), found
            place += len(line)


def lines_of(
    path: Path, read: Callable[[bytes], T], *, finished: bool = False
) -> Iterator[tuple[bytes, T]]:
    """Each whole line of one file of a journal, with what `read` makes of it; see `scan`.

    A missing file has no lines.
    """
    number = 0
    try:
        for line, may_be_torn in _lines(path, finished=finished):
            number += 1
            # The frames of a packed file have checksums of their own.
            if path.suffix != PACKED and (wrong := damage(line, LINE)):
                if may_be_torn:
                    return
                raise damaged(path, number, wrong)
            yield line, read(line)
    except (msgspec.DecodeError, UnicodeDecodeError, DamagedPackedFile) as error:
        raise damaged(path, number, str(error)) from error


def _lines(path: Path, *, finished: bool) -> Iterator[tuple[bytes, bool]]:
    """Each line of a file, and whether a crash may have torn it."""
    if path.suffix == PACKED:
        with closing(PackedFile(path)) as packed:
            yield from ((line, False) for line in packed.lines())
        return
    try:
        file = path.open("rb", buffering=1 << 20)
    except FileNotFoundError:
        return
    with file:
        size = os.fstat(file.fileno()).st_size
        left = size if finished else _after_last_newline(file.fileno(), size)
        while left > 0:
            line = file.readline()
            left -= len(line)
            yield line, left <= 0 and not finished


def _start(line: bytes) -> bytes:
    """A line without its item and the rest, which may be long; unchanged without an item."""
    end = line.find(_ITEM)
    return line if end < 0 else line[:end] + b"}"


def damaged(path: Path, number: int, found: str) -> DataError:
    """The error for a line of a journal that cannot be read."""
    again = "repeat the run's command with --resume and the run's folder: it asks again for"
    if path.suffix == PACKED:
        return DataError(
            "damaged records",
            where=str(path),
            found=found,
            expected="a whole file of zstd frames with their table",
            hint=f"put a copy in its place; or delete it, then {again} all that the store lacks",
        )
    return DataError(
        "damaged record",
        where=f"{path}:{number}",
        found=found,
        expected="one whole JSON record a line, with its checksum",
        hint=f"delete the line, then {again} the item",
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
    for line, _ in _lines(path, finished=True):
        offset -= len(line)
        if offset < 0:
            break
        number += 1
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


class JournalWriter:
    """Appends records to a journal; lines reach the file in batches, at the latest after 0.1 s.

    Opening cuts off the line that a crash left unfinished. Once a write has failed, every later
    call raises that StorageError, even if the write failed between two calls.

    A `new` file, such as a part, must not exist: then nothing else ever appends to it. It is
    removed if it is closed without a line, unless it is `kept`.
    """

    def __init__(self, path: Path, *, new: bool = False, kept: bool = False) -> None:
        self.path = path
        self._broken: StorageError | None = None
        self._removed = new and not kept
        self._descriptor: int | None = None
        self._buffer = bytearray()
        self._rows = 0
        self._encoder = msgspec.json.Encoder()
        self._timer: asyncio.TimerHandle | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | (os.O_EXCL if new else 0)
            self._descriptor = os.open(path, flags, 0o666)
            cut_torn_tail(self._descriptor)
            self._size = os.fstat(self._descriptor).st_size
        except OSError as error:
            self._release()
            if new and path.exists():
                raise StorageError(
                    "another process wrote this part of a journal",
                    where=str(path),
                    expected="a new file",
                    hint="repeat the same command: it continues where it stopped",
                ) from error
            raise storage_error(path, error) from error

    def append(self, record: JournalLine[Any, Any]) -> None:
        """Append one record; ValueError if JSON cannot hold it, and nothing is written.

        JSON has no NaN and no infinity, and the codec writes null for them. So every number is
        checked only if the outcome has a null, and most have none. Items were read from JSON; in a
        call only the logprobs are numbers from outside.
        """
        self._check()
        start = len(self._buffer)
        try:
            self._encoder.encode_into(record, self._buffer, -1)
            made = record.outcome, [call.logprobs for call in record.calls if call.logprobs]
            if b"null" in self._encoder.encode(made) and holds_non_finite(made):
                raise ValueError("a number in it is NaN or infinite")
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            del self._buffer[start:]
            raise ValueError(f"record {record.id!r} cannot be written: {error}") from error
        self._seal(start)

    def note(self, value: msgspec.Struct | dict[str, Any]) -> None:
        """Append a line that is no record, such as an answer."""
        self._check()
        start = len(self._buffer)
        self._encoder.encode_into(value, self._buffer, -1)
        self._seal(start)

    def copy(self, line: bytes) -> None:
        """Append a line of another journal as it is, with its newline and its checksum."""
        self._check()
        self._buffer += line
        self._appended()

    def drop(self, stage_key: str, keys: Iterable[bytes]) -> None:
        """Drop the records of keys that no item of the stage has any more.

        A stage that resumes after its upstreams changed may have lines of items that are gone.
        These lines have the stage's key, so readers need a further line that drops each of them.
        """
        for key in keys:
            self.note({"key": key.hex(), "stage": stage_key, "dropped": True})

    def flush(self) -> None:
        """Hand every line to the operating system, so that a killed process loses none."""
        self._stop_timer()
        self._check()
        self._write()
        self._check()

    def sync(self) -> None:
        """Write every line durably to disk."""
        self.flush()
        try:
            if self._descriptor is not None:
                os.fsync(self._descriptor)
        except OSError as error:
            self._broken = storage_error(self.path, error)
        self._check()

    def close(self) -> None:
        """Write the remaining lines durably to disk; a second call does nothing."""
        if self._descriptor is None:
            return
        self._stop_timer()
        self._write()
        try:
            if self._broken is None:
                os.fsync(self._descriptor)
                if self._removed and self._size == 0:
                    self.path.unlink(missing_ok=True)
                sync_folder(self.path.parent)
        except OSError as error:
            self._broken = storage_error(self.path, error)
        finally:
            self._release()
        if self._broken is not None:
            raise self._broken

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _seal(self, start: int) -> None:
        """End the line that begins at `start` of the buffer."""
        self._buffer += b"\n"
        seal(self._buffer, LINE, start=start)
        self._appended()

    def _appended(self) -> None:
        self._rows += 1
        if self._rows >= _ROWS or len(self._buffer) >= _BYTES:
            self.flush()
        elif self._timer is None:
            with suppress(RuntimeError):  # without a loop, the next batch or `close` writes
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(_SECONDS, self._on_timer)

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken
        if self._descriptor is None:
            raise StorageError(
                "the journal is closed",
                where=str(self.path),
                expected="records before `close`, or a new JournalWriter",
            )

    def _on_timer(self) -> None:
        self._timer = None
        self._write()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _write(self) -> None:
        """Write the whole buffer; a failure is kept for the next call, its half line is cut off."""
        if not self._buffer or self._broken is not None:
            return
        assert self._descriptor is not None, "the file is closed"
        try:
            with memoryview(self._buffer) as view:
                written = 0
                while written < len(view):
                    written += os.write(self._descriptor, view[written:])
            self._size += written
        except OSError as error:
            self._broken = storage_error(self.path, error)
            # Best effort: the next process that opens the journal cuts a half line too.
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
        self._buffer.clear()
        self._rows = 0

    def _release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def open_journal(path: Path) -> JournalWriter:
    """The writer of a process that alone writes a journal: to its first file, or to a new part.

    Where it is packed or has parts it is a part, as the current line of a key is the last in their
    order.
    """
    number = next_part(path)
    if number == 1 and not _packed(path).exists():
        return JournalWriter(path)
    return JournalWriter(part_path(path, number), new=True)


class LackingRecord(NamedTuple):
    """A record that lacks its value or a model's answer: its outcome, and its line's checksum."""

    type: str
    cause: str
    checksum: str
    unanswered: bool

    @property
    def failed(self) -> bool:
        """Whether it has no value."""
        return self.type != "done"


def recorded(path: Path, stage_key: str) -> dict[bytes, LackingRecord | None]:
    """The keys with a current record in a stage's journal, each with what it lacks or None."""
    found: dict[bytes, LackingRecord | None] = {}
    for _, _, head in scan(path, OutcomeHead):
        if head.stage != stage_key:
            continue
        key = bytes.fromhex(head.key)
        if head.dropped:
            found.pop(key, None)
        elif head.outcome is None or (head.outcome.type == "done" and not head.unanswered):
            found[key] = None
        else:
            outcome = head.outcome
            found[key] = LackingRecord(outcome.type, outcome.cause, head.crc32, head.unanswered)
    return found


def has_value(path: Path, stage_key: str) -> bool:
    """Whether a current record in a stage's journal has a value."""
    return any(one is None or not one.failed for one in recorded(path, stage_key).values())


def holds_non_finite(value: Any) -> bool:
    """Whether a value contains a NaN or an infinity at any depth."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if value is None or isinstance(value, (str, bytes, int)):
        return False
    if isinstance(value, msgspec.Struct):
        return any(holds_non_finite(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, Mapping):
        return any(holds_non_finite(key) or holds_non_finite(held) for key, held in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(holds_non_finite(member) for member in value)
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return any(holds_non_finite(getattr(value, each.name)) for each in fields)
    return False


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
        return pairwise(chain(map(int, self.starts), (len(self),)))

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


def pack_journal(path: Path, stage_key: str) -> None:
    """Pack a large journal that nobody writes: its current records as they are read, by user.

    Lines with another key stay, before them. A crash leaves the files or, with the packed one, the
    newest of them, which have the same records.
    """
    files = [file for file in journal_parts(path) if file.suffix != PACKED]
    if sum(file.stat().st_size for file in files) < _PACK_FROM:
        return
    index = JournalIndex(path, stage_key)
    current = zip(index.places.tolist(), index.lengths.tolist(), strict=True)
    others = ((at, size) for at, size, head in scan(path, Head) if head.stage != stage_key)
    with JournalFiles(path) as opened:
        write_packed(_packed(path), (opened.read(*one) for one in chain(others, current)))
    for file in files:
        file.unlink()


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
                    order = sorted(positions, key=lambda at: _order(self._read(files, at, decode)))
                    yield from (self._read(files, position) for position in order)
                else:
                    records = (self._read(files, position) for position in positions)
                    yield from sorted(records, key=_order)

    def at(self, positions: Iterable[int]) -> Iterator[Record[ItemT, ValueT]]:
        """The records at these positions of the index, in the order in which they are given."""
        with JournalFiles(self._index.path, mapped=True) as files:
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

    def _read(
        self, files: JournalFiles, position: int, decode: Callable[[bytes], Any] | None = None
    ) -> Any:
        """The record at a position, as this reads it; DataError where it cannot be read."""
        index = self._index
        place, length = int(index.places[position]), int(index.lengths[position])
        try:
            return (decode or self._decoder.decode)(files.read(place, length))
        except (msgspec.DecodeError, UnicodeDecodeError, DamagedPackedFile) as error:
            part, offset = divmod(place, FILE_SPAN)
            file = part_path(index.path, part)
            number = 0 if isinstance(error, DamagedPackedFile) else line_number(file, offset)
            if not isinstance(error, msgspec.ValidationError):
                raise damaged(file, number, str(error)) from error
            raise DataError(
                "a record does not fit the types of its stage",
                where=f"{file}:{number}",
                found=str(error),
                hint="the benchmark's code changed since the run: use the release of the plugin "
                "that the manifest names, or repeat the command with --reuse none; in a benchmark "
                "of your own, raise the `version` of the stage: the stored answers are read again",
            ) from error


def _order(record: Record[Any, Any] | Head) -> tuple[str, str]:
    return record.user, record.id
