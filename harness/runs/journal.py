"""The journal of one stage: records appended as lines, read back as a stream.

A record's `stage` is the key of its stage, not its name: lines with another key stay in the file
and are skipped.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import msgspec

from harness.base.checksums import LINE, seal
from harness.base.errors import StorageError
from harness.contracts.records import JournalLine
from harness.runs.atomic_files import storage_error, sync_folder
from harness.runs.journal_index import OutcomeHead, cut_torn_tail, scan
from harness.runs.journal_parts import next_part, part_path

_ROWS = 256
_BYTES = 1 << 16
"""Few enough to be still in the processor's cache when they are written, which halves the cost."""
_SECONDS = 0.1


class JournalWriter:
    """Appends records to a journal; lines reach the file in batches, at the latest after 0.1 s.

    Opening cuts off the line that a crash left unfinished. Once a write has failed, every later
    call raises that StorageError, even if the write failed between two calls.

    A `new` file, such as a part, must not exist: then nothing else ever appends to it. It is
    removed if it is closed without a line.
    """

    def __init__(self, path: Path, *, new: bool = False) -> None:
        self.path = path
        self._new = new
        self._buffer = bytearray()
        self._rows = 0
        self._encoder = msgspec.json.Encoder()
        self._timer: asyncio.TimerHandle | None = None
        self._broken: StorageError | None = None
        self._descriptor: int | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | (os.O_EXCL if new else 0)
            self._descriptor = os.open(path, flags, 0o666)
            self.cut = cut_torn_tail(self._descriptor)
            self._end = os.fstat(self._descriptor).st_size
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
        self._buffer += b"\n"
        seal(self._buffer, LINE, start=start)
        self._appended()

    def drop(self, stage_key: str, keys: Iterable[bytes]) -> None:
        """Drop the records of keys that no item of the stage has any more.

        A stage that resumes after its upstreams changed may have lines of items that are gone.
        These lines have the stage's key, so readers need a further line that drops each of them.
        """
        for key in keys:
            self._check()
            line = {"key": key.hex(), "stage": stage_key, "dropped": True}
            start = len(self._buffer)
            self._encoder.encode_into(line, self._buffer, -1)
            self._buffer += b"\n"
            seal(self._buffer, LINE, start=start)
            self._appended()

    def flush(self) -> None:
        """Hand every line to the operating system, so that a killed process loses none."""
        self._stop_timer()
        self._check()
        self._write()
        self._check()

    def close(self) -> None:
        """Write the remaining lines durably to disk; a second call does nothing."""
        if self._descriptor is None:
            return
        self._stop_timer()
        try:
            if self._broken is None:
                self._write()
            if self._broken is None:
                os.fsync(self._descriptor)
                if self._new and self._end == 0:
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _appended(self) -> None:
        self._rows += 1
        if self._rows >= _ROWS or len(self._buffer) >= _BYTES:
            self.flush()
        elif self._timer is None:
            self._start_timer()

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken
        if self._descriptor is None:
            raise StorageError(
                "the journal is closed",
                where=str(self.path),
                expected="records before `close`, or a new JournalWriter",
            )

    def _start_timer(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer = loop.call_later(_SECONDS, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._write()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _write(self) -> None:
        """Write the whole buffer; keep a failure for the next call, and cut the half line."""
        if not self._buffer or self._descriptor is None or self._broken is not None:
            return
        try:
            with memoryview(self._buffer) as view:
                written = 0
                while written < len(view):
                    written += os.write(self._descriptor, view[written:])
            self._end += written
        except OSError as error:
            self._broken = storage_error(self.path, error)
            # Best effort: the next process that opens the journal cuts a half line too.
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._end)
        self._buffer.clear()
        self._rows = 0

    def _release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def open_journal(path: Path) -> JournalWriter:
    """The writer of a process that alone writes a journal: to its first file, or to a new part.

    Where there are parts it is a part, as the current line of a key is the last in their order.
    """
    number = next_part(path)
    return JournalWriter(path) if number == 1 else JournalWriter(part_path(path, number), new=True)


class FailedRecord(NamedTuple):
    """The failure of a record: its kind, its cause, and the checksum of its line."""

    type: str
    cause: str
    checksum: str


def recorded(path: Path, stage_key: str) -> dict[bytes, FailedRecord | None]:
    """The keys with a current record in a stage's journal, each with its failure or None."""
    found: dict[bytes, FailedRecord | None] = {}
    for _, _, head in scan(path, OutcomeHead):
        if head.stage != stage_key:
            continue
        key = bytes.fromhex(head.key)
        if head.dropped:
            found.pop(key, None)
        elif head.outcome is None or head.outcome.type == "done":
            found[key] = None
        else:
            found[key] = FailedRecord(head.outcome.type, head.outcome.cause, head.crc32)
    return found


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
