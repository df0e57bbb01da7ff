"""The journal of one stage: records appended as lines, read back as a stream.

A record's `stage` is the key of its stage, not its name: lines with another key stay in the file
and are skipped.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness.base.checksums import LINE, seal
from harness.base.errors import StorageError
from harness.contracts.records import JournalLine
from harness.runs.journal_file import JournalFile
from harness.runs.journal_index import OutcomeHead, scan
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
    removed if it is closed without a line, unless it is `kept`.
    """

    def __init__(self, path: Path, *, new: bool = False, kept: bool = False) -> None:
        self.path = path
        self._file = JournalFile(path, new=new, kept=kept)
        self._closed = False
        self._buffer = bytearray()
        self._rows = 0
        self._encoder = msgspec.json.Encoder()
        self._timer: asyncio.TimerHandle | None = None

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
        self._file.sync()
        self._check()

    def close(self) -> None:
        """Write the remaining lines durably to disk; a second call does nothing."""
        if self._closed:
            return
        self._stop_timer()
        self._write()
        self._closed = True
        self._file.close()
        if self._file.broken is not None:
            raise self._file.broken

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
        if self._file.broken is not None:
            raise self._file.broken
        if self._closed:
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
        """Write the whole buffer; a failure is kept for the next call."""
        if self._buffer and self._file.broken is None:
            self._file.write(self._buffer)
            self._buffer.clear()
            self._rows = 0


def open_journal(path: Path) -> JournalWriter:
    """The writer of a process that alone writes a journal: to its first file, or to a new part.

    Where there are parts it is a part, as the current line of a key is the last in their order.
    """
    number = next_part(path)
    return JournalWriter(path) if number == 1 else JournalWriter(part_path(path, number), new=True)


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
