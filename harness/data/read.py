"""Tables as rows, as columns or in a database, read from every format with the declared types.

DuckDB reads delimited text and what is stored as columns: Parquet and splits of the hub. It decides
no type: patterns vouch for most values, and from the first row that they do not vouch for, cells
are converted one by one here, which gives the value or the error. JSON is read without it.

Types are strict: a conversion that would lose something is an error. Whole numbers written as 7.0
are integers, string columns take integers as ids (7 becomes "7"), and number columns always give
floats. An empty cell of delimited text counts as absent, because it cannot distinguish the two.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import os
import re
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, KeysView, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from harness.base.errors import DataError
from harness.contracts.task import Column, DelimitedSpec
from harness.data.fingerprint import Stamp, check_unchanged
from harness.data.records import CHUNK, empty_file, json_lines, json_rows, look_at, records
from harness.data.wording import columns_option, join_names, nearest, place, preview

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa  # type: ignore[import-untyped]

Format = Literal["csv", "tsv", "json", "jsonl", "parquet"]

FORMATS: Mapping[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
PACKINGS = (".gz", ".zst")
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_OTHER_DELIMITERS = (",", ";", "\t", "|")

BATCH_ROWS = 1 << 11
"""As many rows as DuckDB makes at once."""

MEMORY = "1GB"
"""What DuckDB may hold in memory."""

MOST_THREADS = 8
"""Each thread holds buffers of its own."""

CONFIG: Mapping[str, Any] = {
    "memory_limit": MEMORY,
    "threads": min(os.cpu_count() or 1, MOST_THREADS),
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}

LARGEST_EXACT = 2**53
"""Floats are exact for whole numbers up to here."""

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A pattern for a number as text, for Python and for SQL."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,400}(?:\.0*)?", re.ASCII)
_NUMBER = re.compile(NUMBER, re.ASCII)
_TRUTH = {"true": True, "false": False, "1": True, "0": False}

SPACES = (
    r"[\s\x0b\x1c-\x1f\x{85}\x{a0}\x{1680}"
    r"\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
)
"""A pattern in SQL for a character that Python takes for a space."""

TYPES: Mapping[str, str] = {
    "string": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "list": "JSON",
    "object": "JSON",
    "any": "JSON",
}
"""The types of columns in a database."""

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

_KINDS = {
    "VARCHAR": "text",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "whole"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), "whole"),
    "FLOAT": "fraction",
    "DOUBLE": "fraction",
    "BOOLEAN": "truth",
}

_AS_NAMED = "hive_partitioning=false"
"""Else, for DuckDB, a folder `user=bob` is a column `user`."""

_UNIT, _ESCAPE = "\x1f", "\x1b"
_ESCAPED = {"\n": f"{_ESCAPE}n", "\r": f"{_ESCAPE}r", _UNIT: f"{_ESCAPE}u", _ESCAPE: f"{_ESCAPE}e"}
"""How a cell of a copy holds what separates cells and lines there; in the order of undoing it."""

Convert = Callable[[Any], Any]


@dataclass(eq=False)
class Unfit(Exception):
    """A value that does not fit its column; `expected` describes a valid one.

    `choices` are the valid values, if the task lists them.
    """

    problem: str
    expected: str
    hint: str | None = None
    choices: tuple[str, ...] = ()


def as_written(cell: Any) -> str:
    """A cell as the keys of a column's `values` write it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return cell if isinstance(cell, str) else str(cell)


def converter(column: Column, *, text: bool) -> Convert:
    """A function that converts a cell that is not absent to the column's type, or raises Unfit.

    `text` is true if cells are text, as in CSV, from which numbers must be read.
    """
    convert = (_CONVERT_TEXT if text else _CONVERT)[column.type]
    choices = column.one_of
    if not choices:
        return convert

    def checked(value: Any) -> Any:
        result = convert(value)
        if str(result) not in choices:
            expected = f"one of: {join_names(choices)}"
            raise Unfit("not one of the values that the task allows", expected, choices=choices)
        return result

    return checked


def _string(value: Any) -> str:
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise Unfit(
                    "the text holds half of a surrogate pair", "text that can be written as UTF-8"
                ) from None
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    raise Unfit("not a string", "text, or a whole number used as an id")


def _integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_EXACT:
        return int(value)
    raise Unfit("not an integer", "a whole number, such as 42")


def _integer_text(value: str) -> int:
    stripped = value.strip()
    if not _WHOLE.fullmatch(stripped):
        hint = None
        if _NUMBER.fullmatch(stripped) and "e" in stripped.lower():
            hint = "spreadsheets write long numbers like this and lose digits: export it as text"
        raise Unfit("not an integer", "a whole number, such as 42", hint)
    return int(stripped.partition(".")[0])


def _number(value: Any) -> float:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        try:
            result = float(value)
        except OverflowError:
            result = math.inf
        if math.isfinite(result):
            return result
        if math.isnan(result):
            raise Unfit("not a number", "a finite number or null", "write a missing number as null")
    raise Unfit("not a number", "a finite number, such as 3.5")


def _number_text(value: str) -> float:
    stripped = value.strip()
    if _NUMBER.fullmatch(stripped) and math.isfinite(result := float(stripped)):
        return result
    hint = "write decimals with a point" if _NUMBER.fullmatch(stripped.replace(",", ".")) else None
    raise Unfit("not a number", "a finite number, such as 3.5", hint)


def _plain(kind: type, problem: str, expected: str, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    raise Unfit(problem, expected)


def _boolean_text(value: str) -> bool:
    result = _TRUTH.get(value.strip().lower())
    if result is None:
        raise Unfit("not a boolean", "true, false, 1 or 0")
    return result


def _json(kind: type, problem: str, expected: str, value: str) -> Any:
    try:
        result = msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        result = None
    if isinstance(result, kind):
        return result
    hint = None
    if value.strip()[:1] in "[{" and "'" in value:
        hint = 'JSON quotes text with "; write the column with json.dumps, not with str or repr'
    raise Unfit(problem, expected, hint)


_CONVERT: dict[str, Convert] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": functools.partial(_plain, bool, "not a boolean", "true or false"),
    "list": functools.partial(_plain, list, "not a list", "a list"),
    "object": functools.partial(_plain, dict, "not an object", "an object"),
    "any": lambda value: value,
}
_CONVERT_TEXT: dict[str, Convert] = {
    **_CONVERT,
    "integer": _integer_text,
    "number": _number_text,
    "boolean": _boolean_text,
    "list": functools.partial(_json, list, "not a list", 'a JSON list, such as ["a", "b"]'),
    "object": functools.partial(_json, dict, "not an object", 'a JSON object, such as {"a": 1}'),
}


class StoredSource(Protocol):
    """A source that is stored as columns elsewhere, such as a split of the hub."""

    @property
    def label(self) -> str: ...

    def columns(self) -> tuple[str, ...]: ...

    def reader(self, wanted: Collection[str]) -> pa.RecordBatchReader: ...


@dataclass(frozen=True, kw_only=True)
class FileSource:
    """The rows of one file; DataError if the file changed since `stamp` was taken.

    `entries` are two column names for a file with one JSON object, whose entries are the rows;
    `rows_at` are the keys that lead to the rows in such a file.
    """

    path: Path
    stamp: Stamp
    delimited: DelimitedSpec = DelimitedSpec()  # noqa: RUF009 - a frozen value
    entries: tuple[str, str] | None = None
    rows_at: tuple[str, ...] | None = None

    @property
    def label(self) -> str:
        return str(self.path)

    @functools.cached_property
    def format(self) -> Format:
        return format_of(self.path, any_ending=self.delimited.delimiter is not None)

    def columns(self) -> tuple[str, ...] | None:
        """The names of the columns; None if each row has its own."""
        if self.format == "parquet":
            import duckdb

            if self.stamp.size == 0:
                raise empty_file(self.path)
            try:
                return tuple(_stored(_parquet(self.path), self, _new_cursor()).cells)
            except duckdb.Error as error:
                raise _unread(self, error) from error
        return self.header() if self.format in _DELIMITERS else None

    def delimiter(self) -> str:
        """The text between two cells of a file with delimiters."""
        return self.delimited.delimiter or _DELIMITERS[self.format]

    def records(self, delimiter: str) -> Iterator[list[str]]:
        """The cells of each line of delimited text."""
        look = look_at(self.path, self.stamp, self.delimited.encoding)
        return records(self.path, look, self.delimited, delimiter)

    def header(self, delimiter: str | None = None) -> tuple[str, ...]:
        """The names of the columns of delimited text; '' for a column without a name."""
        if self.delimited.header:
            return self.delimited.header
        first = next(self.records(delimiter or self.delimiter()), None)
        if first is None:
            raise empty_file(self.path)
        names = tuple(cell.strip() for cell in first)
        if len(set(names)) + max(names.count(""), 1) - 1 < len(names):
            twice, times = Counter(filter(None, names)).most_common(1)[0]
            raise DataError(
                f"two columns have the name '{twice}'",
                where=place(str(self.path), line=1),
                found=f"{times} columns of this name",
                expected="a header that names each column once",
                hint="rename or remove one of them",
            )
        return names

    def objects(self) -> Iterator[dict[str, Any]] | None:
        """The rows of JSON; None for another format."""
        both = self.entries is not None and self.rows_at is not None
        one_object = self.entries is not None or self.rows_at is not None
        if both or (one_object and self.format != "json"):
            raise DataError(
                "a table cannot have both `entries` and `rows_at`"
                if both
                else "the file of this table must hold one JSON object",
                where=str(self.path),
                found=f"a file of the format {self.format}",
                expected="a .json file, and one of these keys in the task file",
            )
        check_unchanged(self.path, self.stamp)
        if self.format == "json":
            return json_rows(self.path, entries=self.entries, keys=self.rows_at)
        return json_lines(self.path) if self.format == "jsonl" else None


Source = FileSource | StoredSource


def format_of(path: Path, *, any_ending: bool = False) -> Format:
    """The format of a file by the end of its name; DataError for an unsupported one.

    With `any_ending`, a file with another ending is read as CSV.
    """
    plain = path.with_suffix("") if path.suffix.lower() in PACKINGS else path
    ending = plain.suffix.lower()
    kind = FORMATS.get(ending, "csv" if any_ending else None)
    if kind is not None and (kind != "parquet" or plain == path):
        return kind
    hint = None
    if kind == "parquet":
        hint = "unpack it: Parquet files are compressed inside"
    elif ending in (".dat", ".txt"):
        hint = "text is read if the task names its delimiter: `delimited: {delimiter: …}`"
    extension = plain.suffix + path.suffix * (plain != path)
    raise DataError(
        "the format of the file is not supported",
        where=str(path),
        found=f"the extension '{extension}'" if extension else "a name without an extension",
        expected=f"{', '.join(FORMATS)}; all except .parquet also with {' or '.join(PACKINGS)}",
        hint=hint,
    )


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def distinct(names: Collection[str]) -> bool:
    """Whether no two names differ in case only, which are one name for DuckDB."""
    return len({name.lower() for name in names}) == len(names)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@functools.cache
def _connection(process: int) -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={**CONFIG, "temp_directory": ""})


def _new_cursor() -> duckdb.DuckDBPyConnection:
    """A cursor for one reading, on the one connection that a process makes."""
    return _connection(os.getpid()).cursor()


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The names of a source's columns, and the delimiter of text, "" for what is stored."""

    header: tuple[str, ...]
    delimiter: str = ""

    @property
    def text(self) -> bool:
        return self.delimiter != ""


@dataclass(kw_only=True)
class Scan:
    """What DuckDB reads: the text behind FROM, and each column's cell with what is stored there.

    Nothing is said of what text holds. `error` ends the rows: it was found when they were copied.
    `numbered` stands behind FROM too, for what outlasts the reading, and has `file_row_number`.
    """

    rows: str
    cells: Mapping[str, str]
    stored: Mapping[str, str] = field(default_factory=dict)
    error: DataError | None = None
    numbered: str | None = None


@contextmanager
def _scanned(
    source: Source,
    cursor: duckdb.DuckDBPyConnection,
    layout: Layout,
    fields: Sequence[Field],
    *,
    copied: bool = False,
) -> Iterator[Scan]:
    """The scan of a source for these columns; text is copied if it must be, or is told to be."""
    wanted = {one.key for one in fields if one.key is not None}
    if not isinstance(source, FileSource):
        names = [name for name in layout.header if name in wanted]
        cursor.register("stored", source.reader(names or layout.header[:1]))
        yield _stored("stored", source, cursor)
        return
    check_unchanged(source.path, source.stamp)
    header, delimiter = layout.header, layout.delimiter
    if not delimiter:
        scan = _stored(_parquet(source.path), source, cursor)
        if "file_row_number" not in scan.cells:
            scan.numbered = _parquet(source.path, ", file_row_number=true")
        yield scan
        return
    written = source.delimited
    look = look_at(source.path, source.stamp, written.encoding)
    plain = look.encoding == "utf-8" and look.plain and not (look.quoted and written.quotes)
    if plain and not copied and min(len(header), 2) > len(delimiter) and written.surplus == "error":
        cells = {name: f"c{at}" for at, name in enumerate(header) if name}
        rows = _lines(source.path, len(header), delimiter, header=not written.header)
        yield Scan(rows=rows, cells=cells)
        return
    keys = [name for name in header if name and name in wanted]
    try:
        with tempfile.NamedTemporaryFile(prefix="harness-copy-", suffix=".txt") as file:
            longest, escaped, error = _copied(source, header, delimiter, keys, file.file)
            cells = {name: f"c{at}" for at, name in enumerate(keys)}
            if escaped:
                for text, instead in _ESCAPED.items():
                    undone = f"replace({{}}, {_text(instead)}, {_text(text)})"
                    cells = {name: undone.format(cell) for name, cell in cells.items()}
            rows = _lines(Path(file.name), max(len(keys), 2), _UNIT, header=True, longest=longest)
            yield Scan(rows=rows, cells=cells, error=error)
    except OSError as error:
        raise DataError(
            "a copy of the file cannot be held in the temporary folder",
            where=tempfile.gettempdir(),
            found=error.strerror or str(error),
            hint="if its disk is full, name a folder with more room in the variable TMPDIR",
        ) from error


def _stored(rows: str, source: Source, cursor: duckdb.DuckDBPyConnection) -> Scan:
    """The scan of what is stored as columns; DataError if DuckDB would rename one of them."""
    described = cursor.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
    stored = {name: _KINDS.get(kind, "other") for name, kind, *_ in described}
    names = [] if isinstance(source, FileSource) else [*source.columns()]
    if isinstance(source, FileSource):
        schema = f"SELECT name FROM parquet_schema({_location(source.path)})"
        names = [name for (name,) in cursor.execute(schema).fetchall()]
    renamed = next((name for name in stored if name not in names), None)
    if renamed is not None:
        raise DataError(
            f"two columns have the name '{renamed.rpartition('_')[0]}'",
            where=source.label,
            found="names that differ at most in the case of letters",
            expected="a file that names each column once",
        )
    return Scan(rows=rows, cells={name: quoted(name) for name in stored}, stored=stored)


def _parquet(path: Path, more: str = "") -> str:
    return f"read_parquet({_location(path)}, {_AS_NAMED}{more})"


def _location(path: Path) -> str:
    """A path in SQL, without patterns and, as it is absolute, without the address `file:/…`."""
    return _text(re.sub(r"([*?\[])", r"[\1]", str(path.absolute())))


def _lines(
    path: Path, count: int, delimiter: str, *, header: bool, longest: int = CHUNK * 2
) -> str:
    """Lines of cells of text, in which nothing but the delimiter has a meaning."""
    columns = ", ".join(f"'c{at}': 'VARCHAR'" for at in range(count))
    return (
        f"read_csv({_location(path)}, {_AS_NAMED}, auto_detect=false, columns={{{columns}}}, "
        f"header={header}, delim={_text(delimiter)}, quote='', escape='', nullstr='\r', "
        f"strict_mode=true, encoding='utf-8', max_line_size={max(longest, 1 << 21)})"
    )


def _copied(
    source: FileSource, header: Sequence[str], delimiter: str, keys: Sequence[str], file: IO[bytes]
) -> tuple[int, bool, DataError | None]:
    """Copy these columns for DuckDB, each record on a line; the error that ended it comes last.

    The longest line is returned first, and whether a cell holds anything that is escaped there.
    """
    count = max(len(keys), 2)  # DuckDB takes a blank line for no row
    picked = operator.itemgetter(*[*map(header.index, keys), 0, 0][:count])
    width, escapes = len(header), str.maketrans(_ESCAPED)
    longest, escaped, row = 0, False, 0
    file.write(_UNIT.join("c" * count).encode() + b"\n")
    try:
        for cells in itertools.islice(source.records(delimiter), not source.delimited.header, None):
            row += 1
            if len(cells) > width and source.delimited.surplus == "last":
                cells[width - 1 :] = [delimiter.join(cells[width - 1 :])]
            if len(cells) != width:
                raise DataError(
                    f"the row has {'more' if len(cells) > width else 'fewer'} cells than the "
                    "header has columns",
                    where=place(source.label, row=row),
                    found=f"{len(cells)} cells, the last of which is {preview(cells[-1])}",
                    expected=f"{width} cells, separated by {delimiter!r}",
                )
            line = _UNIT.join(picked(cells))
            if line.count(_UNIT) >= count or "\n" in line or "\r" in line or _ESCAPE in line:
                escaped = True
                line = _UNIT.join(cell.translate(escapes) for cell in picked(cells))
            text = f"{line}\n".encode()
            longest = max(longest, len(text))
            file.write(text)
    except DataError as error:
        return longest, escaped, error
    finally:
        file.flush()
    return longest, escaped, None


def _fetched(
    cursor: duckdb.DuckDBPyConnection, query: str, *, text: bool
) -> Iterator[list[list[Any]]]:
    """The columns of a query, some rows at a time; nested values as arrow gives them."""
    if not text:
        for batch in cursor.sql(query).to_arrow_reader(BATCH_ROWS):
            yield [column.to_pylist() for column in batch.columns]
        return
    cursor.execute(query)
    while rows := cursor.fetchmany(BATCH_ROWS):
        yield [list(column) for column in zip(*rows, strict=True)]


def _query(
    scan: Scan, fields: Sequence[Field], *, vouching: bool = True, named: bool = False
) -> tuple[str, list[bool]]:
    """The query for the columns of a scan, and which of them have values that SQL vouches for.

    The last column says that it cannot vouch for the row. For a database, columns are `named`.
    """
    chosen, doubts, vouched = [], [], []
    for one in fields:
        value, known = "NULL", True
        if one.key is not None:
            value = scan.cells[one.key]
            sql = one.sql(value, scan.stored.get(one.key, "")) if vouching else None
            known = sql is not None
            if sql is not None:
                value, doubt = sql
                doubts.append(doubt)
        vouched.append(known)
        if named:
            kind = TYPES[one.column.type]
            value = f"to_json({value})" if kind == "JSON" and value != "NULL" else value
            value = f"{value}::{kind} AS {quoted(one.name)}"
        chosen.append(value)
    rows = scan.rows
    if named and scan.numbered is not None:
        rows = scan.numbered
        chosen.append("file_row_number AS rowid")
    unfit = f"coalesce({' OR '.join(doubts)}, false)" if doubts else "false"
    return f"SELECT {', '.join(chosen)}, {unfit} AS unfit FROM {rows}", vouched


def _converted(
    source: Source, fields: Sequence[Field], cells: list[list[Any]], vouched: list[bool], done: int
) -> tuple[list[list[Any]], DataError | None]:
    """The values of cells up to the first bad row, and its error."""
    values: list[list[Any]] = []
    bad: tuple[int, DataError] | None = None
    for one, column, known in zip(fields, cells, vouched, strict=True):
        try:
            values.append(column if known else [*map(one.value, column)])
        except Unfit:
            for row, cell in enumerate(column if bad is None else column[: bad[0]]):
                try:
                    one.value(cell)
                except Unfit as unfit:
                    where = place(source.label, row=done + row + 1, column=one.key)
                    bad = row, one.error(cell, unfit, where)
                    break
    if bad is None:
        return values, None
    row, error = bad
    before = [column[:row] for column in cells]
    return _converted(source, fields, before, vouched, done)[0], error


def _unread(source: Source, error: Exception) -> DataError:
    kind = source.format if isinstance(source, FileSource) else "stored columns"
    return DataError(
        f"the file cannot be read as {'Parquet' if kind == 'parquet' else kind}",
        where=source.label,
        found=(str(error).splitlines() or [""])[0],
        expected="a whole file of this format",
        hint="fetch or write it again; it may be cut off, or have the wrong extension",
    )


def meanings(name: str, column: Column) -> dict[str, Any]:
    """What texts in a column stand for, as typed values; DataError if one cannot be typed."""
    convert = converter(column, text=True)
    try:
        return {written: convert(meant) for written, meant in column.values.items()}
    except Unfit as unfit:
        raise DataError(
            f"the values of column '{name}' stand for something that is none of its values: "
            f"{unfit.problem}",
            found=join_names(dict.fromkeys(column.values.values())),
            expected=unfit.expected,
        ) from None


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Consecutive rows of a table as columns; `first` is the number of the first row."""

    first: int
    columns: Mapping[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))


@dataclass(frozen=True, kw_only=True)
class Field:
    """A column with its conversion: `key` is its name in the source, None if absent.

    `meant` are the values that texts in the data stand for. `table` is the table's name, if errors
    propose options of a run.
    """

    name: str
    key: str | None
    column: Column
    convert: Convert
    text: bool = False
    meant: Mapping[str, Any] = field(default_factory=dict)
    table: str | None = None

    def value(self, cell: Any) -> Any:
        """The value of a cell, or Unfit."""
        if self.meant and isinstance(cell, (str, int, float)):
            written = as_written(cell)
            if written in self.meant:
                return self.meant[written]
        if cell is None or (self.text and cell == ""):
            if not self.column.required:
                return None
            raise Unfit("the value is missing", "a value in every row")
        return self.convert(cell)

    def sql(self, cell: str, stored: str) -> tuple[str, str] | None:
        """The value of a cell in SQL, and the condition that it cannot vouch for a row.

        None if it cannot vouch for any. `stored` is what is stored there, "" for text.
        """
        column = self.column
        way = _FROM_STORED.get((column.type, stored)) if stored else _FROM_TEXT.get(column.type)
        texts = stored in ("", "text")
        if (
            way is None
            or (column.values and not texts)
            or (column.one_of and column.type != "string")
        ):
            return None
        meant = "".join(
            f" WHEN {_text(like)} THEN {_text(other)}" for like, other in column.values.items()
        )
        absent = cell if stored else f"nullif({cell}, '')"
        found = f"(CASE {cell}{meant} ELSE {absent} END)" if meant else absent
        value = way.format(found)
        doubt = f"{value} IS NULL"
        if not column.required:
            doubt = f"({found} IS NOT NULL AND {value} IS NULL)"
        if column.one_of:
            doubt += f" OR {value} NOT IN ({', '.join(map(_text, column.one_of))})"
        return value, doubt

    def error(self, cell: Any, unfit: Unfit, where: str) -> DataError:
        """The error for a cell that is unfit."""
        hint = unfit.hint
        if unfit.choices and self.table is not None:
            meaning = shlex.quote(f"{self.table}.{self.name}.{as_written(cell)}=MEANING")
            hint = f"if it stands for one of these: --values {meaning}"
        return DataError(
            unfit.problem, where=where, found=preview(cell), expected=unfit.expected, hint=hint
        )


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of one or several sources, checked while they are read.

        for number, row in table.rows():
            if row["age"] < 0:
                raise table.bad(number, "age", row["age"], "an age of 0 or more")

    A row holds the declared columns only, under their own names instead of a source's aliases; with
    no declared columns it holds all cells unchanged. An optional column that is absent, null or an
    empty cell is None; for a required column this is an error.

    With `of_run`, errors propose options of a run.
    """

    name: str
    columns: Mapping[str, Column]
    sources: Sequence[Source]
    of_run: bool = False

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Number and values of each row; each call reads from the start.

        Numbers start at 1, do not count a header, and continue over several files.
        """
        number = 0
        for source in self.sources:
            for values in self._rows(source):
                number += 1
                yield number, values
        if number == 0:
            raise self._empty()

    def batches(self, *names: str) -> Iterator[Batch]:
        """The same rows as columns, many at a time: the named columns, or all declared ones.

        Only these columns are checked. With no declared columns, a batch has every column of any of
        its rows, and None for rows without it.
        """
        number = 0
        for source in self.sources:
            for columns in self.columns_of(source, names):
                batch = Batch(first=number + 1, columns=columns)
                yield batch
                number += len(batch)
        if number == 0:
            raise self._empty()

    @property
    def where(self) -> str:
        """The table's name, and the files or addresses that it is read from, for errors."""
        labels = [source.label for source in self.sources]
        more = f" and {len(labels) - 1:,} more" if len(labels) > 1 else ""
        return f"table '{self.name}', {labels[0]}{more}" if labels else f"table '{self.name}'"

    def bad(self, row: int, column: str, value: Any, expected: str) -> DataError:
        """The error for a value that a benchmark cannot use, with its file.

        `row` is the number that `rows` gave. With several files, the table is read again.
        """
        label = self.sources[0].label if self.sources else self.name
        if len(self.sources) > 1:
            plain = Table(name=self.name, columns={}, sources=self.sources)
            every = (
                (one.label, n) for one in self.sources for n, _ in enumerate(plain._rows(one), 1)
            )
            label, row = next(itertools.islice(every, row - 1, None), (self.name, row))
        return DataError(
            "a value that cannot be used",
            where=place(label, row=row, column=column),
            found=preview(value),
            expected=expected,
        )

    def _empty(self) -> DataError:
        return DataError(
            f"table '{self.name}' has no rows",
            where=join_names(source.label for source in self.sources),
            expected="at least one row",
        )

    def _rows(self, source: Source) -> Iterator[dict[str, Any]]:
        objects = source.objects() if isinstance(source, FileSource) else None
        if objects is not None:
            yield from self._converted_objects(source, objects, self.columns)
            return
        for columns in self.columns_of(source):
            for cells in zip(*columns.values(), strict=True):
                yield dict(zip(columns, cells, strict=True))

    def columns_of(
        self, source: Source, names: Collection[str] = ()
    ) -> Iterator[dict[str, list[Any]]]:
        """The rows of one of the sources as columns, many at a time: those named, or all."""
        objects = source.objects() if isinstance(source, FileSource) else None
        if objects is None:
            yield from self._scanned_columns(source, names or self.columns)
            return
        rows = self._converted_objects(source, objects, names or self.columns)
        while part := list(itertools.islice(rows, BATCH_ROWS)):
            wanted = names or self.columns or dict.fromkeys(name for row in part for name in row)
            yield {name: [row.get(name) for row in part] for name in wanted}

    def _converted_objects(
        self, source: Source, objects: Iterator[dict[str, Any]], names: Collection[str]
    ) -> Iterator[dict[str, Any]]:
        if not self.columns:
            yield from objects
            return
        keys: KeysView[str] | None = None
        fields: Sequence[Field] = ()
        for row, cells in enumerate(objects, 1):
            if cells.keys() != keys:
                keys = cells.keys()
                where = place(source.label, row=row)
                fields = self._fields(tuple(keys), names, text=False, where=where)
            values = {}
            for one in fields:
                cell = None if one.key is None else cells[one.key]
                try:
                    values[one.name] = one.value(cell)
                except Unfit as unfit:
                    where = place(source.label, row=row, column=one.key)
                    raise one.error(cell, unfit, where) from None
            yield values

    def _scanned_columns(
        self, source: Source, names: Collection[str]
    ) -> Iterator[dict[str, list[Any]]]:
        """The columns of text, or of what is stored as columns.

        They are read by SQL that vouches for the values, or if it does not for one, from that batch
        on without it; and from a copy, if DuckDB could not read on in the file itself.
        """
        import duckdb

        cursor = _new_cursor()
        layout = self._layout(source)
        fields = self._fields(layout.header, names, text=layout.text, where=source.label)
        done, vouching, copied = 0, bool(self.columns), False
        while True:
            try:
                with _scanned(source, cursor, layout, fields, copied=copied) as scan:
                    query, vouched = _query(scan, fields, vouching=vouching)
                    if done:
                        query += f" OFFSET {done}"
                    for cells in _fetched(cursor, query, text=layout.text):
                        if True in cells.pop():
                            vouching = False
                            break
                        values, error = _converted(source, fields, cells, vouched, done)
                        if values[0]:
                            yield {one.name: of for one, of in zip(fields, values, strict=True)}
                        if error is not None:
                            raise error
                        done += len(cells[0])
                    else:
                        if scan.error is not None:
                            raise scan.error
                        return
            except duckdb.Error as error:
                if not layout.text or copied:
                    raise _unread(source, error) from error
                copied = True

    def load(self, source: Source, connection: duckdb.DuckDBPyConnection, part: str) -> int:
        """Make the rows of one of the sources a new table of a database; their number.

        What lasts is a view, as DuckDB reads it about as fast.
        """
        import duckdb

        if not isinstance(source, FileSource) or source.objects() is None:
            layout = self._layout(source)
            fields = self._fields(layout.header, self.columns, text=layout.text, where=source.label)
            try:
                with _scanned(source, connection, layout, fields) as scan:
                    query, vouched = _query(scan, fields, named=True)
                    if all(vouched) and scan.error is None:
                        kind = "TABLE" if scan.numbered is None else "VIEW"
                        connection.execute(f"CREATE {kind} {part} AS {query}")
                        counted = f"SELECT count(*), count(*) FILTER (unfit) FROM {part}"
                        [(rows, unfit)] = connection.execute(counted).fetchall()
                        if not unfit:
                            return int(rows)
                        connection.execute(f"DROP {kind} {part}")
            except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.IOException):
                pass  # read as columns, it is a copy, or it has its error
        return self._load_columns(source, connection, part)

    def _load_columns(
        self, source: Source, connection: duckdb.DuckDBPyConnection, part: str
    ) -> int:
        import pyarrow as pa

        kinds = {name: TYPES[column.type] for name, column in self.columns.items()}
        listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in kinds.items())
        connection.execute(f"CREATE TABLE {part} ({listed})")
        rows = 0
        for values in self.columns_of(source):
            arrays = {
                name: self._array(values[name], kind, row=rows, column=name)
                for name, kind in kinds.items()
            }
            connection.register("batch", pa.table(arrays))
            connection.execute(f"INSERT INTO {part} BY NAME SELECT * FROM batch")
            connection.unregister("batch")
            rows += len(values[next(iter(kinds))])
        return rows

    def _array(self, values: Sequence[Any], kind: str, *, row: int, column: str) -> pa.Array:
        """The values of a column for DuckDB; DataError for an integer that needs over 64 bits."""
        import pyarrow as pa

        if kind == "JSON":
            texts = [None if one is None else msgspec.json.encode(one).decode() for one in values]
            return pa.array(texts, pa.string())
        if kind == "BIGINT":
            for number, one in enumerate(values, row + 1):
                if one is not None and not -(2**63) <= one < 2**63:
                    raise self.bad(number, column, one, "a whole number of at most 64 bits")
        arrow = {"VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}
        return pa.array(values, arrow.get(kind, pa.bool_()))

    def _layout(self, source: Source) -> Layout:
        """The columns of a source, and the delimiter of text.

        It is one with which the header has all required columns, or else the most, for the error.
        """
        if not isinstance(source, FileSource) or source.format == "parquet":
            return Layout(header=tuple(source.columns() or ()))
        best, most = source.delimiter(), 1
        if len(self.columns) > 1 and not source.delimited.header and self._missing(()):
            for one in dict.fromkeys((best, *_OTHER_DELIMITERS)):
                with suppress(DataError):
                    if not self._missing(header := source.header(one)):
                        return Layout(header=header, delimiter=one)
                    if len(header) > most:
                        best, most = one, len(header)
        return Layout(header=source.header(best), delimiter=best)

    def _missing(self, present: Collection[str]) -> list[str]:
        """The required columns without a name among those present."""
        return [
            name
            for name, column in self.columns.items()
            if column.required and not any(one in present for one in column.names(name))
        ]

    def _fields(
        self, present: Sequence[str], names: Collection[str], *, text: bool, where: str
    ) -> list[Field]:
        """The named columns with their names among those present, or all; DataError if a required
        column of the table is missing."""
        if not self.columns:
            plain = Column(type="any", required=False)
            return [
                Field(name=name, key=name, column=plain, convert=_CONVERT["any"])
                for name in names or present
                if name in present and name
            ]
        if missing := self._missing(present):
            raise self._without(missing, present, where)
        return [
            Field(
                name=name,
                key=next((known for known in column.names(name) if known in present), None),
                column=column,
                text=text,
                convert=converter(column, text=text),
                meant=meanings(name, column),
                table=self.name if self.of_run else None,
            )
            for name, column in self.columns.items()
            if name in names
        ]

    def _without(self, missing: Sequence[str], present: Sequence[str], where: str) -> DataError:
        """The error for columns that are missing."""
        taken = {one for name, column in self.columns.items() for one in column.names(name)}
        free = [name for name in present if name not in taken]
        hints = []
        for name in missing:
            wanted = self.columns[name].names(name)
            near = next((found for one in wanted if (found := nearest(one, free))), None)
            option = columns_option(self.name, name, near or "NAME")
            if near and self.of_run:
                hints.append(f"'{near}' is the nearest name: if it is '{name}', give {option}")
            elif near:
                hints.append(f"'{near}' is the nearest name: rename it if it is '{name}'")
            elif self.of_run and free:
                hints.append(f"if '{name}' has another name: {option}")
        if len(present) == 1 and (mark := next((m for m in ";\t|," if m in present[0]), None)):
            hints = [f"the header seems to be separated by {mark!r}; CSV needs commas, TSV tabs"]
        return DataError(
            f"column '{missing[0]}' is missing"
            if len(missing) == 1
            else f"columns {join_names(missing)} are missing",
            where=where,
            found=f"columns {join_names(present)}",
            expected=", ".join(
                " or ".join(f"'{one}'" for one in self.columns[name].names(name))
                for name in missing
            ),
            hint="; ".join(hints) or None,
        )
