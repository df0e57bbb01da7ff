"""The lines of a journal: how each begins, where the sound ones end, and which are damaged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.errors import DataError

_CHUNK = 1 << 16
_ITEM = b',"item":'
"""Stands behind a line's head and nowhere before, as quotes within strings are escaped."""


class Head(msgspec.Struct, frozen=True, gc=False):
    """What a reader must know of a line. `dropped` lines take back an earlier line's record."""

    key: str
    stage: str
    user: str = ""
    id: str = ""
    dropped: bool = False


class OutcomeTag(msgspec.Struct, frozen=True, gc=False):
    """The kind of an outcome, and the cause where it is a failure."""

    type: str
    cause: str = ""


class OutcomeHead(msgspec.Struct, frozen=True, gc=False):
    """The head of a line with the kind of its outcome; none where the line drops a record."""

    key: str
    stage: str
    dropped: bool = False
    outcome: OutcomeTag | None = None


HeadT = TypeVar("HeadT", Head, OutcomeHead)


def scan(path: Path, head: type[HeadT]) -> Iterator[tuple[int, int, HeadT]]:
    """Offset, length and head of every whole line of a journal; nothing where there is no file.

    A torn end is passed over: its record was never finished. A damaged line with others after it
    means that something was lost, and is an error. Of such a line only as much is looked at as the
    head needs: what `Head` leaves out is told to be damaged by whoever reads it.
    """
    decode = msgspec.json.Decoder(head).decode
    try:
        file = path.open("rb", buffering=1 << 20)
    except FileNotFoundError:
        return
    with file:
        end = _after_last_newline(file.fileno(), os.fstat(file.fileno()).st_size)
        offset = 0
        number = 0
        while offset < end:
            line = file.readline()
            number += 1
            whole = head is not Head or offset + len(line) >= end
            try:
                found = decode(line if whole else _start(line))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if offset + len(line) >= end:
                    return
                raise damaged(path, number, error) from error
            yield offset, len(line), found
            offset += len(line)


def _start(line: bytes) -> bytes:
    """A line without its item and what follows, which may be long; the whole of one without any."""
    end = line.find(_ITEM)
    return line if end < 0 else line[:end] + b"}"


def damaged(path: Path, number: int, error: Exception) -> DataError:
    """The error for a line of a journal that cannot be read."""
    return DataError(
        "damaged record",
        where=f"{path}:{number}",
        found=str(error),
        expected="one whole JSON record a line",
        hint="delete the line and give the run's command again: its item is asked anew",
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
    """Cut off the end of a journal that a crash left unfinished; the number of bytes cut.

    That is whatever follows the last newline, and a last line that is no record.
    """
    size = os.fstat(descriptor).st_size
    end = _after_last_newline(descriptor, size)
    if end > 0:
        start = _after_last_newline(descriptor, end - 1)
        try:
            msgspec.json.decode(os.pread(descriptor, end - start, start), type=Head)
        except (msgspec.DecodeError, UnicodeDecodeError):
            end = start
    if end < size:
        os.ftruncate(descriptor, end)
    return size - end


def _after_last_newline(descriptor: int, end: int) -> int:
    """The offset after the last newline before `end`; 0 where there is none."""
    while end > 0:
        start = max(0, end - _CHUNK)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
