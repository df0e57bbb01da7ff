"""SQLite's own files in a world: each write and sync of its pages and log counts, through apsw.

`Disk` counts the statements that the project gives to SQLite; here SQLite itself writes to the disk
of the world, so that a crash may fall between the pages of one commit.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import apsw
import pytest
from simulated.disk import SQLITE_CODES, Crash, Disk

from harness.calls import store

NAME = "world"
ERRORS = {
    apsw.FullError: sqlite3.SQLITE_FULL, apsw.IOError: sqlite3.SQLITE_IOERR,
    apsw.BusyError: sqlite3.SQLITE_BUSY, apsw.CorruptError: sqlite3.SQLITE_CORRUPT,
    apsw.NotADBError: sqlite3.SQLITE_NOTADB,
}  # fmt: skip
FAILURES = {sqlite3.SQLITE_FULL: apsw.FullError, sqlite3.SQLITE_IOERR: apsw.IOError}


class PagedDisk(Disk):
    """A disk to which SQLite itself writes."""

    @contextmanager
    def mounted(self) -> Iterator[None]:
        files = Files(self)
        try:
            with super().mounted(), pytest.MonkeyPatch.context() as patch:
                patch.setattr(store.sqlite3, "connect", partial(Connection, self))
                patch.setattr(sys, "excepthook", self._unheard)
                patch.setattr(sys, "unraisablehook", self._unheard)
                yield
        finally:
            files.unregister()

    def _unheard(self, *_: Any) -> None:
        """SQLite goes on after some errors, as when it empties its log, and says nothing."""


class Files(apsw.VFS):
    """SQLite's way to the disk of a world."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(NAME, base="")
        self.disk = disk

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return File(self.disk, name, flags)


class File(apsw.VFSFile):
    """A file of SQLite: a crash leaves a part of its last write, a failing one writes a part."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self.disk = disk

    def xWrite(self, data: bytes, offset: int) -> None:
        def part() -> None:
            super(File, self).xWrite(data[: self.disk.draw.randint(0, len(data))], offset)

        self._counted("page", part)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._counted("sync", lambda: None)
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        self._counted("cut", lambda: None)
        super().xTruncate(size)

    def _counted(self, kind: str, part: Callable[[], None]) -> None:
        if self.disk.reached(kind):
            part()
            raise self.disk.crash()
        if code := self.disk.error():
            part()
            raise FAILURES[SQLITE_CODES[code][0]](os.strerror(code))


class Connection:
    """What the project uses of `sqlite3.Connection`, by apsw."""

    def __init__(self, disk: Disk, place: Any, *, timeout: float, **_: Any) -> None:
        self.disk = disk
        with self.told():
            self._made = apsw.Connection(str(place), vfs=NAME)
            self._made.set_busy_timeout(round(timeout * 1000))

    def execute(self, sql: str, given: Iterable[Any] = ()) -> Any:
        with self.told():
            rows = self._made.execute(sql, tuple(given)).fetchall()
            return SimpleNamespace(fetchone=lambda: next(iter(rows), None))

    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        with self.told():
            self._made.executemany(sql, rows)

    executescript = execute

    def close(self) -> None:
        # SQLite says nothing of a log that it cannot empty as it closes.
        with self.told(), suppress(apsw.Error):
            self._made.close()

    @contextmanager
    def told(self) -> Iterator[None]:
        """An error of apsw as the one that `sqlite3` would raise; after a crash nothing returns."""
        try:
            yield
        except apsw.Error as error:
            code = next((one for kind, one in ERRORS.items() if isinstance(error, kind)), 1)
            raised = sqlite3.OperationalError(str(error))
            raised.sqlite_errorcode, raised.sqlite_errorname = code, type(error).__name__
            raise raised from error
        finally:
            if self.disk.crashed:
                raise Crash
