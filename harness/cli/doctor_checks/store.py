"""Check of the store of answered calls, which does not change it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from harness.calls.network_fs import network_type
from harness.calls.store import APPLICATION_ID, FORMAT
from harness.contracts.finding import Finding, bad, doubtful, good

ABOUT = "store"
ELSEWHERE = "--store FILE names another store, --no_store runs without one"
LOOK_SECONDS = 5.0
"""How long the file is checked for damage: a large file takes minutes to read."""
BUSY_SECONDS = 2.0
STEPS = 10_000
"""SQLite's virtual machine steps between two looks at the clock."""
MIB = 1024**2


def store(path: Path) -> Iterator[Finding]:
    """Whether the file is a usable and undamaged store, and how much it holds."""
    if not path.exists():
        yield good(ABOUT, f"{path}; does not exist yet, the first run creates it")
        return
    if path.is_dir():
        yield bad(ABOUT, f"{path} is a folder; expected a file", ELSEWHERE)
        return
    kind = network_type(path)
    if kind is not None:
        yield doubtful(
            ABOUT,
            f"{path} is on {kind}, over the network: it is written without a log (WAL), so that "
            "several machines can share it, and more slowly",
            "use --store FILE on a local disk, or HARNESS_CACHE=DIR",
        )
    try:
        yield _opened(path)
    except sqlite3.DatabaseError as error:
        yield bad(ABOUT, f"{path} cannot be read: {error}", _advice(error))


def _opened(path: Path) -> Finding:
    with closing(
        sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
    ) as connection:
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        size = path.stat().st_size / MIB
        if not tables:
            return good(ABOUT, f"{path}; empty")
        if mark != APPLICATION_ID or version > FORMAT:
            return bad(
                ABOUT,
                f"{path} is not a store that this version can use; found an SQLite file with mark "
                f"{mark:#x} and format {version}, expected mark {APPLICATION_ID:#x} and format "
                f"{FORMAT}",
                ELSEWHERE,
            )
        journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
        description = f"{path}; format {version}, {journal}, {size:,.1f} MiB"
        return _read_through(connection, description)


def _read_through(connection: sqlite3.Connection, description: str) -> Finding:
    """The finding after reading the whole file, or as much as the time allows."""
    until = time.monotonic() + LOOK_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > until, STEPS)
    try:
        rows = connection.execute("SELECT count(*) FROM replies").fetchone()[0]
        description += f", {rows:,} answers"
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return good(ABOUT, f"{description}; no damage in the part read in {LOOK_SECONDS:g} s")
    if verdict != "ok":
        return bad(ABOUT, f"{description}; damaged: {verdict}", _DAMAGED)
    return good(ABOUT, f"{description}; undamaged")


_DAMAGED = (
    "the next run sets the damaged file aside, creates a new one and repeats the calls it needs"
)


def _advice(error: sqlite3.DatabaseError) -> str:
    code = error.sqlite_errorcode & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return _DAMAGED
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "another process holds it: wait, or find the process with `fuser FILE`"
    return ELSEWHERE
