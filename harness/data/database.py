"""Tables of millions of rows in a DuckDB database, for queries in SQL."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harness.base.errors import DataError
from harness.data.read import CONFIG, MEMORY, distinct, quoted

if TYPE_CHECKING:
    import duckdb

    from harness.data.read import Table

PREFIX = "harness-tables-"

ADDED = ("row", "rowid", "unfit")
"""The columns that a database or the reading of a file adds to those of a table."""

STABLE_RANK = "CREATE TEMP MACRO stable_rank(text, seed) AS md5(seed || ' ' || text)"
"""In SQL, as a function in Python takes microseconds a row."""


class Database:
    """Tables that SQL can query, each loaded when it is first needed.

        database = Database({"ratings": dataset.table("ratings")})
        means = database.sql("SELECT user, avg(rating) FROM ratings GROUP BY user ORDER BY user")

    A table has its declared columns, with the types VARCHAR, BIGINT, DOUBLE, BOOLEAN, and JSON for
    all others, and `row`, the number of the row as `Table.rows` counts. A value that does not fit
    is the error that `Table.rows` raises. `stable_rank(text, seed)` is a text of 32
    hexadecimal digits that depends on both alone, to draw rows by. Rows come in any order unless a
    query orders them.

    State: the loaded tables, in a temporary folder that goes with this object, as do all results
    of queries that were not fetched.
    """

    def __init__(self, tables: Mapping[str, Table], *, memory: str = MEMORY) -> None:
        import duckdb

        self._tables = dict(tables)
        self._loaded: set[str] = set()
        self._folder, lock = _new_folder()
        self._numbers = count()
        self._connection = duckdb.connect(
            str(self._folder / "tables.duckdb"),
            config={
                **CONFIG,
                "memory_limit": memory,
                "temp_directory": str(self._folder / "spill"),
            },
        )
        self._connection.execute(STABLE_RANK)
        weakref.finalize(self, _remove, self._connection, self._folder, lock)

    def relation(self, name: str) -> duckdb.DuckDBPyRelation:
        """The rows of a table."""
        self._load(name)
        return self._connection.table(name)

    def holds(self, name: str) -> bool:
        """Whether a table is loaded."""
        return name in self._loaded

    def sql(
        self, query: str, params: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> duckdb.DuckDBPyRelation:
        """The result of a query, in which tables stand by their names.

        `params` are the values of `?` or `$name` in it.
        """
        words = set(re.findall(r"\w+", query))
        for name in self._tables.keys() & words:
            self._load(name)
        return self._connection.sql(query, params=params)

    def _load(self, name: str) -> None:
        import duckdb

        if name in self._loaded:
            return
        table = self._tables[name]
        if not distinct([*table.columns, *ADDED]):
            raise DataError(
                f"the columns of table '{name}' cannot be those of a database",
                found=", ".join(table.columns),
                expected=f"names that differ in more than case, and none of {', '.join(ADDED)}",
            )
        columns = ", ".join(map(quoted, table.columns))
        parts, before = [], 0
        for source in table.sources:
            part = f"part_{next(self._numbers)}"
            try:
                rows = table.load(source, self._connection, part)
            except duckdb.Error as error:
                raise DataError(
                    f"table '{name}' cannot be held in the temporary folder",
                    where=str(self._folder),
                    found=str(error).splitlines()[0],
                    hint="if its disk is full, name a folder with more room in the variable TMPDIR",
                ) from error
            parts.append(f"SELECT {columns}, rowid + {before + 1} AS row FROM {part}")
            before += rows
        if not before:
            next(table.rows())  # raises the error of an empty table
        self._connection.execute(f"CREATE VIEW {quoted(name)} AS {' UNION ALL '.join(parts)}")
        self._loaded.add(name)


def _new_folder() -> tuple[Path, IO[str]]:
    """A temporary folder, and its lock, which is open as long as the folder is in use.

    Folders of processes that were killed are removed.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/lock"):
        with suppress(OSError), open(left, opener=_own_file) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left.parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = (folder / "locked").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "locked").rename(folder / "lock")  # found by others only when it is locked
    return folder, lock


def _own_file(path: str, flags: int) -> int:
    """Open a plain file of this user; others may have put anything there, such as a pipe."""
    opened = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        os.close(opened)
        raise PermissionError(path)
    return opened


def _remove(connection: duckdb.DuckDBPyConnection, folder: Path, lock: IO[str]) -> None:
    connection.close()
    shutil.rmtree(folder, ignore_errors=True)
    lock.close()
