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

import msgspec

from harness.base.errors import DataError
from harness.data.bulk import TYPES, bulk_query, distinct, quoted

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa  # type: ignore[import-untyped]

    from harness.data.source import Source
    from harness.data.table import Table

MEMORY = "1GB"
"""What DuckDB may hold in memory; the rest is on disk."""

MOST_THREADS = 8
"""Each thread holds buffers of its own."""

PREFIX = "harness-tables-"

ADDED = ("row", "rowid", "unfit")
"""The columns that a database or the reading of a file adds to those of a table."""

STABLE_RANK = "CREATE TEMP MACRO stable_rank(text, seed) AS md5(seed || ' ' || text)"
"""In SQL, as a function in Python takes microseconds a row."""

_LARGEST = 2**63


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
                "memory_limit": memory,
                "temp_directory": str(self._folder / "spill"),
                "threads": min(os.cpu_count() or 1, MOST_THREADS),
                "autoinstall_known_extensions": False,
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
                rows = self._read_in_bulk(part, table, source)
                if rows is None:
                    rows = self._read_by_rows(part, table, source)
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

    def _read_in_bulk(self, part: str, table: Table, source: Source) -> int | None:
        """The number of rows that DuckDB read from a source into a new table.

        A Parquet file is a view, as DuckDB reads it about as fast. None, and no table, if it cannot
        read the source or a value does not fit: reading by rows then gives the values or the error.
        """
        import duckdb

        query = bulk_query(source, table, connection=self._connection, folder=self._folder)
        if query is None:
            return None
        kind = "VIEW" if source.label.lower().endswith(".parquet") else "TABLE"
        try:
            self._connection.execute(f"CREATE {kind} {part} AS {query}")
        except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.IOException):
            return None
        rows, unfit = self._connection.execute(
            f"SELECT count(*), count(*) FILTER (unfit) FROM {part}"
        ).fetchall()[0]
        if unfit:
            self._connection.execute(f"DROP {kind} {part}")
            return None
        return int(rows)

    def _read_by_rows(self, part: str, table: Table, source: Source) -> int:
        import pyarrow as pa

        columns = {name: TYPES[column.type] for name, column in table.columns.items()}
        listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
        self._connection.execute(f"CREATE TABLE {part} ({listed})")
        rows = 0
        for values in table.columns_of(source):
            batch = pa.table(
                {
                    name: _array(values[name], kind, row=rows, table=table, column=name)
                    for name, kind in columns.items()
                }
            )
            self._connection.register("batch", batch)
            self._connection.execute(f"INSERT INTO {part} BY NAME SELECT * FROM batch")
            self._connection.unregister("batch")
            rows += batch.num_rows
        return rows


def _array(values: Sequence[Any], kind: str, *, row: int, table: Table, column: str) -> pa.Array:
    """The values of a column for DuckDB; DataError for an integer that needs over 64 bits."""
    import pyarrow as pa

    if kind == "JSON":
        texts = [None if one is None else msgspec.json.encode(one).decode() for one in values]
        return pa.array(texts, pa.string())
    if kind == "BIGINT":
        for place, one in enumerate(values, 1):
            if one is not None and not -_LARGEST <= one < _LARGEST:
                raise table.bad(row + place, column, one, "a whole number of at most 64 bits")
    arrow = {"VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}
    return pa.array(values, arrow.get(kind, pa.bool_()))


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
