"""The store of answered calls: one SQLite file for all runs, safe for several processes.

Imported only by modules that open a store.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn, TypeVar
from zlib import crc32

from harness.base import clock
from harness.base.errors import StorageError
from harness.base.home import expanded, user_cache

T = TypeVar("T")

BATCH_ROWS = 256
BATCH_SECONDS = 0.1
BUSY_SECONDS = 0.25
"""How long one statement waits for another process; short, as the wait blocks the event loop."""
PATIENCE_SECONDS = 60.0
"""The total wait for a lock before it counts as a failure to write."""

APPLICATION_ID = 0x48524E53
FORMAT = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, value BLOB NOT NULL, crc32 INTEGER);
CREATE TABLE IF NOT EXISTS memos (
    name TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, crc32 INTEGER,
    PRIMARY KEY (name, key)
);
"""
HAS_SUMS = "SELECT count(*) FROM pragma_table_info('replies') WHERE name = 'crc32'"
ADD_SUMS = (
    "ALTER TABLE replies ADD COLUMN crc32 INTEGER",
    "ALTER TABLE memos ADD COLUMN crc32 INTEGER",
)
"""For stores that were made without checksums: their rows are read without one."""
GET = "SELECT value, crc32 FROM replies WHERE key = ?"
PUT = "INSERT OR REPLACE INTO replies (key, value, crc32) VALUES (?, ?, ?)"
MEMO_GET = "SELECT value, crc32 FROM memos WHERE name = ? AND key = ?"
MEMO_ALL = "SELECT name, key, value, crc32 FROM memos WHERE name >= ? AND name < ?"
ALL = "SELECT key, value, crc32 FROM replies"
MEMO_PUT = "INSERT OR REPLACE INTO memos (name, key, value, crc32) VALUES (?, ?, ?, ?)"

_log = logging.getLogger(__name__)


def default_path() -> Path:
    """The user's store: in HARNESS_CACHE, or else in the user's cache folder.

    UsageError where that is in a home folder that cannot be found.
    """
    own = os.environ.get("HARNESS_CACHE")
    if own:
        return expanded(own, where="HARNESS_CACHE") / "calls.sqlite"
    return user_cache(where="the store of answered calls") / "calls.sqlite"


class Store:
    """Replies by key, and small memo tables. Used by one thread at a time.

    Writes are collected and made on the running event loop, after 256 rows or 0.1 s; without a
    running loop they are made at once. The error of a failed write is raised by the next use. A
    damaged file is set aside, reported through `warn`, and replaced by a new one; a damaged row is
    reported and counts as none.
    """

    def __init__(self, path: Path, warn: Callable[[str], None], option: str) -> None:
        self.path = path
        self._option = option
        self._warn = warn
        self._pending: dict[bytes, bytes] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_loop: asyncio.AbstractEventLoop | None = None
        self._busy_since: float | None = None
        self._failure: StorageError | None = None
        self._closed = False
        self._inode = 0
        self._connection = self._connect_or_replace()

    @classmethod
    def open(
        cls, path: Path, *, warn: Callable[[str], None] = _log.warning, option: str = "--store"
    ) -> Store:
        """Open the store in a file, which is created if it is missing.

        `option` is the option that chose the place, for errors.
        """
        return cls(Path(path), warn, option)

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, already written or pending."""
        if self._failure is not None:
            raise self._failure
        value = self._pending.get(key)
        if value is not None:
            return value
        return self._read(GET, key)

    def put(self, key: bytes, value: bytes) -> None:
        """Store a value; it replaces an earlier one of the same key."""
        if self._failure is not None:
            raise self._failure
        self._pending[key] = value
        if len(self._pending) >= BATCH_ROWS and self._busy_since is None:
            self._write_unless_busy()
        if self._pending:
            self._schedule()

    def values(self) -> Iterator[bytes]:
        """Every whole value, one after the other."""
        self.flush()
        try:
            for key, value, kept in self._connection.execute(ALL):
                if isinstance(value, bytes) and kept in (None, _sum(value, key)):
                    yield value
        except sqlite3.DatabaseError as error:
            self._fail(error)

    def flush(self) -> None:
        """Write everything now; waits for other processes, up to a minute."""
        if self._failure is not None:
            raise self._failure
        if self._pending:
            self._patiently(lambda: self._with_replacement(self._write_rows))

    def close(self) -> None:
        """Write everything and close; may be called again."""
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
        """The values of a memo table under the given keys."""
        found = {key: self._read(MEMO_GET, name, key) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def memo_all(self, prefix: str) -> dict[str, dict[str, bytes]]:
        """The memo tables whose names begin so, each with all its values."""

        def read() -> list[tuple[str, str, bytes, int | None]]:
            return self._connection.execute(MEMO_ALL, (prefix, prefix + chr(0x10FFFF))).fetchall()

        tables: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
        for name, key, value, kept in self._patiently(lambda: self._with_replacement(read)):
            if isinstance(value, bytes) and kept in (None, _sum(value, name, key)):
                tables[name][key] = value
        return tables

    def memo_keep(self, name: str, values: Mapping[str, bytes]) -> dict[str, bytes]:
        """Write values whose keys are new to a memo table; the stored values of all the keys."""

        def write() -> dict[str, bytes]:
            kept = dict(values)
            with _transaction(self._connection):
                for key, value in values.items():
                    held = self._fetch(MEMO_GET, name, key)
                    if held is not None:
                        kept[key] = held
                        continue
                    self._connection.execute(MEMO_PUT, (name, key, value, _sum(value, name, key)))
            return kept

        return self._patiently(lambda: self._with_replacement(write)) if values else {}

    def _schedule(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
            return
        # The timer of a closed loop never fires.
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
            self._with_replacement(self._write_rows)
        except sqlite3.DatabaseError as error:
            if not _is(error, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                self._fail(error)
            now = clock.seconds()
            self._busy_since = self._busy_since or now
            if now - self._busy_since > PATIENCE_SECONDS:
                self._fail(error)

    def _with_replacement(self, work: Callable[[], T]) -> T:
        """The result of the work; if the file is damaged, that on a new file."""
        try:
            return work()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            self._replace(error)
            return work()

    def _write_rows(self) -> None:
        with _transaction(self._connection):
            rows = [(key, value, _sum(value, key)) for key, value in self._pending.items()]
            self._connection.executemany(PUT, rows)
        self._pending.clear()
        self._busy_since = None

    def _read(self, statement: str, *names: bytes | str) -> bytes | None:
        try:
            return self._fetch(statement, *names)
        except sqlite3.DatabaseError as error:
            if _is_damage(error):
                self._replace(error)
                return None
            return self._patiently(lambda: self._fetch(statement, *names))

    def _fetch(self, statement: str, *names: bytes | str) -> bytes | None:
        row: tuple[bytes, int | None] | None = self._connection.execute(statement, names).fetchone()
        if row is None:
            return None
        value, kept = row
        if not isinstance(value, bytes) or kept not in (None, _sum(value, *names)):
            self._warn(f"a row of the store {self.path} is damaged, and counts as no answer")
            return None
        return value

    def _patiently(self, work: Callable[[], T]) -> T:
        deadline = clock.seconds() + PATIENCE_SECONDS
        while True:
            try:
                return work()
            except sqlite3.DatabaseError as error:
                busy = _is(error, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not busy or clock.seconds() > deadline:
                    self._fail(error)
                clock.block(0.01)

    def _fail(self, error: sqlite3.DatabaseError) -> NoReturn:
        raise StorageError(
            "the store of answered calls cannot be used",
            where=str(self.path),
            found=f"{error} ({getattr(error, 'sqlite_errorname', 'no code')})",
            hint=f"free disk space or name another place with {self._option}, then run the same"
            " command again: it continues where this run stopped",
        ) from error

    def _connect_or_replace(self) -> sqlite3.Connection:
        step = "entered"
        try:
            is_folder = self.path.is_dir()
            step = "created"
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"the folder of the store cannot be {step}",
                where=str(self.path),
                found=str(error),
                hint="name a file in another folder with --store",
            ) from error
        if is_folder:
            raise StorageError(
                "the store must be a file",
                where=str(self.path),
                found="a folder",
                expected="--store FILE",
            )
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

    def _replace(self, error: sqlite3.DatabaseError) -> None:
        self._connection.close()
        self._set_aside(error)
        self._connection = self._patiently(self._connect)

    def _set_aside(self, error: BaseException | None) -> None:
        with Path(f"{self.path}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._inode and _inode(self.path) != self._inode:
                return  # another process has already set the damaged file aside
            stamp = time.strftime("%Y%m%d-%H%M%S")
            base = f"{self.path.name}.damaged-{stamp}"
            names = (self.path.with_name(f"{base}{n or ''}") for n in range(1000))
            target = next(name for name in names if not name.exists())
            for suffix in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    Path(f"{self.path}{suffix}").rename(f"{target}{suffix}")
        self._warn(
            f"the store of answered calls is damaged ({error}): {self.path} was renamed to"
            f" {target.name} and a new store created; calls that are needed are asked again"
        )


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # Counted before the mark is read: another process may be creating both in one transaction.
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
    network = network_type(path) is not None
    connection.execute(f"PRAGMA journal_mode = {'DELETE' if network else 'WAL'}")
    connection.execute(f"PRAGMA synchronous = {'FULL' if network else 'NORMAL'}")
    if not tables:
        connection.executescript(
            f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id = {APPLICATION_ID};"
            f" PRAGMA user_version = {FORMAT}; COMMIT;"
        )
    elif not connection.execute(HAS_SUMS).fetchone()[0]:
        with _transaction(connection):
            # Looked up again: another process may have added them just now.
            if not connection.execute(HAS_SUMS).fetchone()[0]:
                for statement in ADD_SUMS:
                    connection.execute(statement)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has already rolled back after some errors, a full disk among them.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _sum(value: bytes, *names: bytes | str) -> int:
    """The checksum of a row's value and of the names under which it is found."""
    total = crc32(value)
    for name in names:
        total = crc32(name.encode() if isinstance(name, str) else name, total)
    return total


def _is(error: BaseException | None, *codes: int) -> bool:
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in codes


def _is_damage(error: BaseException | None) -> bool:
    return _is(error, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


MOUNT_TABLE = Path("/proc/self/mountinfo")
# fmt: off
NETWORK_TYPES = frozenset((
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs",
    "wekafs",
))
# fmt: on
LOCAL_FUSE = frozenset(("fuse.ntfs-3g", "fuse.exfat", "fuse.fuse-overlayfs", "fuseblk"))


def network_type(path: Path) -> str | None:
    """The type of the path's network file system, which several machines may share.

    None for a local one, and without a mount table (on systems other than Linux).
    """
    try:
        table = MOUNT_TABLE.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = file_system_type(path.resolve(), table)
    return kind if is_network_type(kind) else None


def is_network_type(kind: str | None) -> bool:
    """Whether shared memory between machines does not work on such a file system.

    FUSE file systems count as network file systems unless they are known to be local.
    """
    if kind is None:
        return False
    return kind in NETWORK_TYPES or (kind.startswith("fuse") and kind not in LOCAL_FUSE)


def file_system_type(path: Path, table: str) -> str | None:
    """The type of the innermost mount that contains the path; the later one on the same point."""
    best: tuple[int, str] | None = None
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[0]
        if len(fields) < 5 or not kind:
            continue
        text = fields[4]
        for code, char in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
            text = text.replace(code, char)
        point = Path(text)
        depth = len(point.parts)
        if (point == path or point in path.parents) and (best is None or depth >= best[0]):
            best = (depth, kind)
    return best[1] if best else None
