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
from harness.data.read import (
    CONFIG,
    MEMORY,
    NUMBER,
    FileSource,
    literal,
    location,
    parquet,
    parquet_types,
    quoted,
    unusable,
)
from harness.data.records import check_unchanged
from harness.data.wording import first_line, place

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa  # type: ignore[import-untyped]

    from harness.data.read import Field, Source, Table

PREFIX = "harness-tables-"

ADDED = ("row", "rowid", "unfit")
"""The columns that a database or the view of a file adds to those of a table."""

ROWS_AT_ONCE = 1 << 17
"""A statement for few rows costs more than the rows."""

TYPES: Mapping[str, str] = {
    "string": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "list": "JSON",
    "object": "JSON",
    "any": "JSON",
}
"""The types of columns by the declared ones."""

LONGEST_LINE = 1 << 21
"""The bytes of a line for which DuckDB keeps room."""

_KINDS = {
    "VARCHAR": "text",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "whole"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), "whole"),
    "FLOAT": "fraction",
    "DOUBLE": "fraction",
    "BOOLEAN": "truth",
}
_FROM_TEXT = {
    "string": "{0}",
    "any": "{0}",
    "integer": "CASE WHEN regexp_full_match({0}, '[+-]?[0-9]+(\\.0*)?') "
    "THEN TRY_CAST(split_part({0}, '.', 1) AS BIGINT) END",
    "number": f"CASE WHEN regexp_full_match({{0}}, '{NUMBER}') "
    "AND isfinite(TRY_CAST({0} AS DOUBLE)) THEN TRY_CAST({0} AS DOUBLE) END",
    "boolean": "CASE lower({0}) WHEN 'true' THEN true WHEN '1' THEN true "
    "WHEN 'false' THEN false WHEN '0' THEN false END",
}
_FROM_STORED = {
    ("string", "text"): "{0}",
    ("string", "whole"): "{0}::VARCHAR",
    ("integer", "whole"): "TRY_CAST({0} AS BIGINT)",
    ("number", "whole"): "{0}::DOUBLE",
    ("number", "fraction"): "CASE WHEN isfinite({0}) THEN {0}::DOUBLE END",
    ("boolean", "truth"): "{0}",
    ("any", "text"): "{0}",
    ("any", "whole"): "{0}",
}
"""The value of a cell by the declared type and what is stored, where SQL can vouch for it."""

SPACES = (
    r"[\s\x0b\x1c-\x1f\x{85}\x{a0}\x{1680}"
    r"\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
)
"""A pattern in SQL for a character that Python takes for a space."""

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
    of queries that were not fetched. Parquet files are read in their place by each query.
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
        """Load a table unless it is; DataError if a file that is read in its place changed."""
        import duckdb

        table = self._tables[name]
        if name in self._loaded:
            for source in table.sources:
                if isinstance(source, FileSource) and source.format == "parquet":
                    check_unchanged(source.path, source.stamp)
            return
        names = [*table.columns, *ADDED]
        if len({one.lower() for one in names}) < len(names):
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
                rows = _by_sql(table, source, self._connection, part)
                if rows is None:
                    rows = _insert(table, source, self._connection, part)
            except duckdb.Error as error:
                raise DataError(
                    f"table '{name}' cannot be held in the temporary folder",
                    where=str(self._folder),
                    found=first_line(error),
                    hint="if its disk is full, name a folder with more room in the variable TMPDIR",
                ) from error
            parts.append(f"SELECT {columns}, rowid + {before + 1} AS row FROM {part}")
            before += rows
        if not before:
            next(table.rows())  # raises the error of an empty table
        self._connection.execute(f"CREATE VIEW {quoted(name)} AS {' UNION ALL '.join(parts)}")
        self._loaded.add(name)


def _by_sql(
    table: Table, source: Source, connection: duckdb.DuckDBPyConnection, part: str
) -> int | None:
    """Have DuckDB read a file itself; the number of its rows, which are those of `part` then.

    Parquet, which it reads about as fast as its own tables, becomes a view. None if it is neither
    Parquet nor plain text, or if SQL cannot vouch for all of the values.
    """
    import duckdb

    if not isinstance(source, FileSource) or source.objects() is not None:
        return None
    if source.format == "parquet":
        made, number = "VIEW", ", file_row_number AS rowid"
        rows = parquet(source.path, numbered=True)
        stored = parquet_types(source, connection)
        if "file_row_number" in stored:
            return None
        cells = {name: quoted(name) for name in stored}
    else:
        header, delimiter = table.layout(source)
        if not source.is_plain(len(header), delimiter):
            return None
        made, number = "TABLE", ""
        rows = _lines(source, len(header), delimiter)
        stored = dict.fromkeys(header, "")
        cells = {name: f"c{at}" for at, name in enumerate(header)}
    fields = table.fields_of([*cells], table.columns, text=made == "TABLE", where=source.label)
    values, doubts = [], []
    for one in fields:
        way = _in_sql(one, cells[one.key], stored[one.key]) if one.key else ("NULL", "false")
        if way is None:
            return None
        values.append(f"{way[0]}::{TYPES[one.column.type]} AS {quoted(one.name)}")
        doubts.append(way[1])
    try:
        connection.execute(
            f"CREATE {made} {part} AS SELECT {', '.join(values)}{number}, "
            f"coalesce({' OR '.join(doubts)}, false) AS unfit FROM {rows}"
        )
        counted = f"SELECT count(*), count(*) FILTER (unfit) FROM {part}"
        [(total, unfit)] = connection.execute(counted).fetchall()
    except duckdb.Error:  # reading the rows gives the error
        unfit = 1
    if not unfit:
        return int(total)
    connection.execute(f"DROP {made} IF EXISTS {part}")
    return None


def _lines(source: FileSource, count: int, delimiter: str) -> str:
    """The lines of a plain text file in SQL: nothing but the delimiter has a meaning in them."""
    columns = ", ".join(f"'c{at}': 'VARCHAR'" for at in range(count))
    return (
        f"read_csv({location(source.path)}, hive_partitioning=false, auto_detect=false, "
        f"columns={{{columns}}}, header={not source.delimited.header}, "
        f"delim={literal(delimiter)}, quote='', escape='', nullstr='\r', strict_mode=true, "
        f"encoding='utf-8', max_line_size={LONGEST_LINE})"
    )


def _in_sql(field: Field, cell: str, stored: str) -> tuple[str, str] | None:
    """The value of a cell in SQL, and the condition that it cannot vouch for a row.

    None if it cannot vouch for any. `stored` is DuckDB's type of what the file holds, "" for text.
    """
    column, kind = field.column, _KINDS.get(stored, "other")
    way = _FROM_TEXT.get(column.type) if field.text else _FROM_STORED.get((column.type, kind))
    if (
        way is None
        or (field.meanings and not field.text and kind != "text")
        or (column.one_of and column.type != "string")
    ):
        return None
    found = f"nullif({cell}, '')" if field.text else cell
    if column.values:
        meant = " ".join(
            f"WHEN {literal(like)} THEN {literal(other)}" for like, other in column.values.items()
        )
        found = f"(CASE {cell} {meant} ELSE {found} END)"
    value = way.format(found)
    doubt = f"{value} IS NULL"
    if not column.required:
        doubt = f"({found} IS NOT NULL AND {value} IS NULL)"
    if column.one_of:
        doubt += f" OR {value} NOT IN ({', '.join(map(literal, column.one_of))})"
    return f"to_json({value})" if TYPES[column.type] == "JSON" else value, doubt


def _insert(table: Table, source: Source, connection: duckdb.DuckDBPyConnection, part: str) -> int:
    """Make the rows of a source a table, which keeps their order; their number."""
    import pyarrow as pa

    kinds = {name: TYPES[column.type] for name, column in table.columns.items()}
    listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in kinds.items())
    connection.execute(f"CREATE TABLE {part} ({listed})")
    rows, waiting = 0, 0
    batches: list[pa.RecordBatch] = []

    def insert() -> None:
        connection.register("batch", pa.Table.from_batches(batches))
        connection.execute(f"INSERT INTO {part} BY NAME SELECT * FROM batch")
        connection.unregister("batch")

    for values in table.columns_of(source):
        arrays = [
            _array(values[name], kind, label=source.label, column=name, first=rows + 1)
            for name, kind in kinds.items()
        ]
        batches.append(pa.RecordBatch.from_arrays(arrays, list(kinds)))
        rows += batches[-1].num_rows
        waiting += batches[-1].num_rows
        if waiting >= ROWS_AT_ONCE:
            insert()
            waiting = 0
            batches.clear()
    if batches:
        insert()
    return rows


def _array(values: list[Any], kind: str, *, label: str, column: str, first: int) -> pa.Array:
    """The values of a column for DuckDB; DataError for an integer that needs over 64 bits."""
    import pyarrow as pa

    if kind == "JSON":
        texts = [None if one is None else msgspec.json.encode(one).decode() for one in values]
        return pa.array(texts, pa.string())
    arrow = {"VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}
    try:
        return pa.array(values, arrow.get(kind, pa.bool_()))
    except OverflowError:
        known = enumerate(one or 0 for one in values)
        row = next(at for at, one in known if not -(2**63) <= one < 2**63)
        where = place(label, row=first + row, column=column)
        raise unusable(values[row], where, "a whole number of at most 64 bits") from None


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
