"""Answers that were paid for: one SQLite file for all runs, safe for several processes.

Imported only by what opens a store.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from harness.base.errors import StorageError
from harness.calls.network_fs import on_network

T = TypeVar("T")

BATCH_ROWS = 256
BATCH_SECONDS = 0.1
BUSY_SECONDS = 0.25
"""How long one statement waits for another process; waiting blocks the loop, so it is short."""
PATIENCE_SECONDS = 60.0
"""How long a lock is waited for in all before it counts as a failure to write."""

APPLICATION_ID = 0x48524E53
FORMAT = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS memos (
    name TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (name, key)
);
"""
GET = "SELECT value FROM replies WHERE key = ?"
PUT = "INSERT OR REPLACE INTO replies (key, value) VALUES (?, ?)"
MEMO_GET = "SELECT value FROM memos WHERE name = ? AND key = ?"
MEMO_PUT = "INSERT OR IGNORE INTO memos (name, key, value) VALUES (?, ?, ?)"

_log = logging.getLogger(__name__)


def default_path() -> Path:
    """The store of this user: in HARNESS_CACHE, else in the user's cache folder."""
    own = os.environ.get("HARNESS_CACHE")
    if own:
        return Path(own).expanduser() / "calls.sqlite"
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "harness" / "calls.sqlite"


class Store:
    """Key to reply, and small memo tables. Used by one thread at a time.

    Writes are gathered and made on the running event loop, at most 256 rows or 0.1 s later; without
    a running loop they are made at once. A write that failed is raised by the next use. A file
    that turns out to be damaged is set aside, said through `say`, and a new one is begun.
    """

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self.path = path
        self._say = say
        self._pending: dict[bytes, bytes] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_loop: asyncio.AbstractEventLoop | None = None
        self._busy_since: float | None = None
        self._failure: StorageError | None = None
        self._closed = False
        self._inode = 0
        self._connection = self._connect_or_begin_anew()

    @classmethod
    def open(cls, path: Path, *, say: Callable[[str], None] = _log.warning) -> Store:
        """The store in that file, which is made when absent."""
        return cls(Path(path), say)

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, written or still to be written."""
        if self._failure is not None:
            raise self._failure
        value = self._pending.get(key)
        if value is not None:
            return value
        row = self._read(GET, (key,))
        return row[0] if row else None

    def put(self, key: bytes, value: bytes) -> None:
        """Keep a value; the last one written for a key stays."""
        if self._failure is not None:
            raise self._failure
        self._pending[key] = value
        if len(self._pending) >= BATCH_ROWS and self._busy_since is None:
            self._write_unless_busy()
        if self._pending:
            self._schedule()

    def flush(self) -> None:
        """Write everything now, waiting for other processes as long as it takes in reason."""
        if self._failure is not None:
            raise self._failure
        if self._pending:
            self._patiently(self._write)

    def close(self) -> None:
        """Write everything and close; harmless when repeated."""
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        try:
            self.flush()
        finally:
            self._connection.close()

    def memo_known(self, name: str, keys: Iterable[str]) -> dict[str, bytes]:
        """What the memo table of that name holds under these keys."""
        rows = {key: self._read(MEMO_GET, (name, key)) for key in keys}
        return {key: row[0] for key, row in rows.items() if row}

    def memo_keep(self, name: str, values: Mapping[str, bytes]) -> dict[str, bytes]:
        """Offer values by their keys and get those that stand: the first ever written."""

        def write() -> dict[str, bytes]:
            with self._transaction():
                offered = [(name, key, value) for key, value in values.items()]
                self._connection.executemany(MEMO_PUT, offered)
                rows = {key: self._fetch(MEMO_GET, (name, key)) for key in values}
            return {key: row[0] for key, row in rows.items() if row}

        return self._patiently(lambda: self._mended(write)) if values else {}

    def _schedule(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
            return
        # A timer of a loop that was closed meanwhile never fires.
        if self._timer is None or self._timer_loop is not loop:
            self._timer = loop.call_later(BATCH_SECONDS, self._tick)
            self._timer_loop = loop

    def _tick(self) -> None:
        self._timer = None
        if self._closed or not self._pending:
            return
        try:
            self._write_unless_busy()
        except StorageError as error:
            self._failure = error
            return
        if self._pending:
            self._schedule()

    def _write_unless_busy(self) -> None:
        try:
            self._write()
            self._busy_since = None
        except sqlite3.DatabaseError as error:
            if not _is(error, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                self._fail(error)
            now = time.monotonic()
            self._busy_since = self._busy_since or now
            if now - self._busy_since > PATIENCE_SECONDS:
                self._fail(error)

    def _write(self) -> None:
        self._mended(self._write_rows)

    def _mended(self, work: Callable[[], T]) -> T:
        """What the work gives; where the file turns out to be damaged, on a new one."""
        try:
            return work()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            self._begin_anew(error)
            return work()

    def _write_rows(self) -> None:
        with self._transaction():
            self._connection.executemany(PUT, self._pending.items())
        self._pending.clear()

    def _read(self, statement: str, values: tuple[Any, ...]) -> tuple[bytes] | None:
        try:
            return self._fetch(statement, values)
        except sqlite3.DatabaseError as error:
            if _is_damage(error):
                self._begin_anew(error)
                return None
            return self._patiently(lambda: self._fetch(statement, values))

    def _fetch(self, statement: str, values: tuple[Any, ...]) -> tuple[bytes] | None:
        row: tuple[bytes] | None = self._connection.execute(statement, values).fetchone()
        return row

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # SQLite has already rolled back after some errors, a full disk among them.
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    def _patiently(self, work: Callable[[], T]) -> T:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return work()
            except sqlite3.DatabaseError as error:
                busy = _is(error, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not busy or time.monotonic() > deadline:
                    self._fail(error)
                time.sleep(0.01)

    def _fail(self, error: sqlite3.DatabaseError) -> NoReturn:
        raise StorageError(
            "the store of finished calls cannot be used",
            where=str(self.path),
            found=f"{error} ({getattr(error, 'sqlite_errorname', 'no code')})",
            hint="free some space or name another file with --store, then run the same command"
            " again: it goes on where this one stopped",
        ) from error

    def _connect_or_begin_anew(self) -> sqlite3.Connection:
        if self.path.is_dir():
            raise StorageError(
                "the store is one file",
                where=str(self.path),
                found="a folder",
                expected="--store FILE",
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                "the folder of the store cannot be made",
                where=str(self.path),
                found=str(error),
                hint="name a file in another folder with --store",
            ) from error
        try:
            return self._patiently(self._connect)
        except StorageError as failure:
            if not _is_damage(failure.__cause__):
                raise
            self._set_aside(failure.__cause__)
            return self._patiently(self._connect)

    def _connect(self) -> sqlite3.Connection:
        self._inode = _inode(self.path)
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, self.path)
            self._inode = _inode(self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin_anew(self, error: sqlite3.DatabaseError) -> None:
        self._connection.close()
        self._set_aside(error)
        self._connection = self._patiently(self._connect)

    def _set_aside(self, error: BaseException | None) -> None:
        with _locked(self.path):
            if self._inode and _inode(self.path) != self._inode:
                return  # another process has set the damaged file aside already
            target = _unused(self.path)
            for suffix in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    Path(f"{self.path}{suffix}").rename(f"{target}{suffix}")
        self._say(
            f"the store of finished calls is damaged ({error}): {self.path} was set aside as"
            f" {target.name} and a new one begun; what a run needs of it is asked again"
        )


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # Counted before the mark is read: another process may be making both in one transaction.
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if (tables and mark != APPLICATION_ID) or version > FORMAT:
        raise StorageError(
            "the file is not a store that this version can use",
            where=str(path),
            found=f"an SQLite file with mark {mark:#x} and format {version}",
            expected=f"mark {APPLICATION_ID:#x} and format {FORMAT}",
            hint="name another file with --store",
        )
    # WAL keeps its index in memory that machines cannot share.
    network = on_network(path)
    connection.execute(f"PRAGMA journal_mode = {'DELETE' if network else 'WAL'}")
    connection.execute(f"PRAGMA synchronous = {'FULL' if network else 'NORMAL'}")
    if not tables:
        connection.executescript(
            f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id = {APPLICATION_ID};"
            f" PRAGMA user_version = {FORMAT}; COMMIT;"
        )


def _is(error: BaseException | None, *codes: int) -> bool:
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in codes


def _is_damage(error: BaseException | None) -> bool:
    return _is(error, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _unused(path: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    names = (path.with_name(f"{path.name}.damaged-{stamp}{n or ''}") for n in range(1000))
    return next(name for name in names if not name.exists())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with Path(f"{path}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
