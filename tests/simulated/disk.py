"""The disk of a world: its n-th write fails, or is the last one before a crash and torn.

The writes are those of the project itself: lines of journals, files that replace others, and what
SQLite's connection is given. A crash is a copy of the folder at that instant.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harness.calls import store
from harness.runs import atomic_files, journal

WRITES = ("BEGIN", "COMMIT", "INSERT", "PRAGMA journal_mode", "CREATE")
SQLITE_CODES = {errno.ENOSPC: (13, "SQLITE_FULL"), errno.EIO: (10, "SQLITE_IOERR")}


class Crash(KeyboardInterrupt):
    """The process is killed. Nothing catches it but the world."""


class Disk:
    """Counts the writes in a folder.

    `crash_at`: the write after which `copy` holds the folder as the crash left it. `fails`: which
    writes fail, with this error number.
    """

    def __init__(self, folder: Path, copy: Path, draw: Random) -> None:
        self.folder, self.copy, self.draw = folder, copy, draw
        self.crash_at: int | None = None
        self.fails: Callable[[int], int | None] = lambda write: None
        self.on_crash: Callable[[], None] = lambda: None
        self.writes = 0
        self.kinds: list[str] = []
        self.crashed = False

    def begin(self, crash_at: int | None = None) -> None:
        """Count the writes of another session."""
        self.writes, self.crash_at, self.crashed = 0, crash_at, False
        self.kinds = []

    def reached(self, kind: str) -> bool:
        """Count a write; whether it is the last one before the crash."""
        if self.crashed:
            return False
        self.writes += 1
        self.kinds.append(kind)
        return self.writes == self.crash_at

    def error(self) -> int | None:
        """The error number with which the write that was just counted fails."""
        return None if self.crashed else self.fails(self.writes)

    def crash(self) -> Crash:
        """Keep the folder as it is; whatever the dying session still writes is lost."""
        self.crashed = True
        shutil.copytree(self.folder, self.copy)
        self.on_crash()
        return Crash()

    def write(self, file: int, data: Any) -> int:
        if self.reached("line"):
            os.write(file, data[: self.draw.randint(0, len(data))])
            raise self.crash()
        if code := self.error():
            os.write(file, data[: self.draw.randint(0, len(data))])
            raise OSError(code, os.strerror(code))
        return os.write(file, data)

    def fsync(self, file: int) -> None:
        """What was not synced may be there in part."""
        if self.reached("file"):
            os.ftruncate(file, self.draw.randint(0, os.fstat(file).st_size))
            raise self.crash()
        if code := self.error():
            raise OSError(code, os.strerror(code))

    def sync_folder(self, folder: Path) -> None:
        if self.reached("name"):
            raise self.crash()
        if code := self.error():
            raise OSError(code, os.strerror(code))

    def statement(self, connection: Connection, sql: str, work: Callable[[], Any]) -> Any:
        """The result of a statement of SQLite; a commit may be torn within the log."""
        if not sql.startswith(WRITES):
            return work()
        if self.reached(sql.split(maxsplit=1)[0]):
            how = self.draw.choice(("before", "after", "torn"))
            if how != "before":
                log = Path(f"{connection.place}-wal")
                before = log.stat().st_size if log.exists() else 0
                work()
                crash = self.crash()
                if how == "torn" and log.exists() and (size := log.stat().st_size) > before:
                    torn = self.copy / log.relative_to(self.folder)
                    os.truncate(torn, self.draw.randint(before, size - 1))
                raise crash
            raise self.crash()
        if code := self.error():
            number, name = SQLITE_CODES[code]
            error = sqlite3.OperationalError(os.strerror(code))
            error.sqlite_errorcode, error.sqlite_errorname = number, name
            raise error
        return work()

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Within, the project writes to this disk."""
        disk = self

        class System:
            """The `os` of a module that writes."""

            write = staticmethod(self.write)
            fsync = staticmethod(self.fsync)

            def __getattr__(self, name: str) -> Any:
                return getattr(os, name)

        class Wrapped(Connection):
            @property
            def disk(self) -> Disk:
                return disk

        connect = sqlite3.connect

        def wrapped(place: Any, **options: Any) -> Connection:
            made = connect(place, **options, factory=Wrapped)
            made.place = place
            return made

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(journal, "os", System())
            patch.setattr(journal, "sync_folder", self.sync_folder)
            patch.setattr(atomic_files, "os", System())
            patch.setattr(atomic_files, "sync_folder", self.sync_folder)
            patch.setattr(store.sqlite3, "connect", wrapped)
            yield


class Connection(sqlite3.Connection):
    """A connection whose writing statements the disk counts."""

    place: Any
    disk: Disk

    def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
        return self.disk.statement(self, sql, lambda: sqlite3.Connection.execute(self, sql, *given))

    def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
        return self.disk.statement(
            self, sql, lambda: sqlite3.Connection.executemany(self, sql, rows)
        )

    def executescript(self, sql: str) -> sqlite3.Cursor:
        return self.disk.statement(self, sql, lambda: sqlite3.Connection.executescript(self, sql))
