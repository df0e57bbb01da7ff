"""Parts of journals whose lines are sent to the process that writes them, where the driver is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from harness.base.errors import StorageError
from harness.runs.journal_file import JournalFile

Send = Callable[[int, bytes], Awaitable[StorageError | None]]
"""Sends lines that begin at a place of the file; returns once they are written, or failed to be."""


class SentFile:
    """The sink of a worker that does not see the run folder.

    One message is on its way at a time; lines that are written meanwhile are in the next. Needs a
    running event loop. `close` sends the end of the file.
    """

    def __init__(self, *, send: Send, close: Callable[[], Awaitable[StorageError | None]]) -> None:
        self.broken: StorageError | None = None
        self._send = send
        self._close = close
        self._waiting = bytearray()
        self._given = 0
        self._written = 0
        self._open = True
        self._ended = False
        self._moved = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None

    def write(self, lines: bytes | bytearray) -> None:
        """Send whole lines; a failure is in `broken` later."""
        self._waiting += lines
        self._given += len(lines)
        self._start()

    def close(self) -> None:
        """Have everything written durably to disk; a failure is in `broken` later."""
        self._open = False
        self._start()

    async def acknowledged(self) -> None:
        """Wait until all that was given is written; raises the StorageError if it failed to be."""
        given, closed = self._given, not self._open
        while self.broken is None and (self._written < given or (closed and not self._ended)):
            await self._moved.wait()
        if self.broken is not None:
            raise self.broken

    def _start(self) -> None:
        if self._sender is None:
            self._sender = asyncio.get_running_loop().create_task(self._send_all())

    async def _send_all(self) -> None:
        while self.broken is None and not self._ended:
            if self._waiting:
                lines = bytes(self._waiting)
                self._waiting.clear()
                self.broken = await self._send(self._written, lines)
                self._written += len(lines)
            elif not self._open:
                self.broken = await self._close()
                self._ended = True
            else:
                break
            self._moved.set()
            self._moved = asyncio.Event()
        self._sender = None


class ReceivedFiles:
    """Writes the files that others send, each of which has one sender and must be new."""

    def __init__(self) -> None:
        self._files: dict[Path, JournalFile] = {}

    def write(self, path: Path, place: int, lines: bytes) -> StorageError | None:
        """Append lines that begin at a place, unless the same message came before."""
        try:
            file = self._files.get(path)
            if file is None:
                file = self._files[path] = JournalFile(path, new=True)
        except StorageError as error:
            return error
        if file.broken is None and file.size != place + len(lines):
            if file.size != place:
                return StorageError(
                    "records were lost on their way",
                    where=str(path),
                    found=f"lines that begin at byte {place:,}",
                    expected=f"those at byte {file.size:,}",
                    hint="repeat the same command: it continues where it stopped",
                )
            file.write(lines)
        return file.broken

    def close(self, path: Path) -> StorageError | None:
        """Write a file durably to disk; a second call does nothing."""
        file = self._files.pop(path, None)
        if file is None:
            return None
        file.close()
        return file.broken
