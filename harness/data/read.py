"""Tables as rows or as columns, read from every format with the declared types.

Delimited text is split and JSON decoded in `records`; DuckDB reads Parquet, and `datasets` the
splits of the hub. None of them decides a type. Types are strict: a conversion that would lose
something is an error. Whole numbers written as 7.0 are integers, string columns take integers as
ids (7 becomes "7"), and number columns always give floats. An empty cell of delimited text counts
as absent, because it cannot distinguish the two.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from itertools import groupby, islice
from math import isfinite, isnan
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import msgspec

from harness.base.errors import DataError
from harness.contracts.task import Column, DelimitedSpec
from harness.data.records import (
    PACKINGS,
    Stamp,
    check_unchanged,
    damaged,
    empty_file,
    json_lines,
    json_rows,
    look_at,
    records,
)
from harness.data.wording import join_names, nearest, place, preview

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa  # type: ignore[import-untyped]

    from harness.data.hub import SplitSource

    Source: TypeAlias = "FileSource | SplitSource"

Format = Literal["csv", "tsv", "json", "jsonl", "parquet"]

FORMATS: Mapping[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_OTHER_DELIMITERS = (",", ";", "\t", "|")

BATCH_ROWS = 1 << 11
"""As many rows as DuckDB makes at once."""

OBJECTS = 1 << 8
"""The rows of JSON that are held at once: any may have a long history."""

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
            return tuple(parquet_types(self, new_cursor()))
        return self.header() if self.format in _DELIMITERS else None

    def delimiter(self) -> str:
        """The text between two cells of a file with delimiters."""
        return self.delimited.delimiter or _DELIMITERS[self.format]

    def header(self, delimiter: str | None = None) -> tuple[str, ...]:
        """The names of the columns of delimited text; '' for a column without a name."""
        if self.delimited.header:
            return self.delimited.header
        first = next(self.records(delimiter or self.delimiter()), None)
        if first is None:
            raise empty_file(self.path)
        names = tuple(cell.strip() for cell in first)
        twice, times = max(Counter(filter(None, names)).items(), key=itemgetter(1), default=("", 0))
        if times > 1:
            raise DataError(
                f"two columns have the name '{twice}'",
                where=place(str(self.path), line=1),
                found=f"{times} columns of this name",
                expected="a header that names each column once",
                hint="rename or remove one of them",
            )
        return names

    def is_plain(self, width: int, delimiter: str) -> bool:
        """Whether each line of this text of `width` columns is a row, and nothing is quoted."""
        _, plain = look_at(self.path, self.stamp, self.delimited)
        return plain and width > 1 == len(delimiter)

    def records(self, delimiter: str, width: int | None = None) -> Iterator[list[str]]:
        """The cells of each row of delimited text, `width` many; without it also the header's."""
        return records(self.path, self.stamp, self.delimited, delimiter, width=width)

    def batches(self, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns of a Parquet file, some rows at a time."""
        import duckdb

        cursor = new_cursor()
        query = f"SELECT {', '.join(map(quoted, wanted))} FROM {parquet(self.path)}"
        try:
            yield from cursor.sql(query).to_arrow_reader(BATCH_ROWS)
        except duckdb.Error as error:
            raise damaged(self.label, "Parquet", error) from error

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


@functools.cache
def _connection(process: int) -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={**CONFIG, "temp_directory": ""})


def new_cursor() -> duckdb.DuckDBPyConnection:
    """A cursor for one reading, on the one connection that a process makes."""
    return _connection(os.getpid()).cursor()


def parquet(path: Path, *, numbered: bool = False) -> str:
    """The rows of a Parquet file in SQL; `numbered` ones have a `file_row_number`.

    Without an option, a folder `user=bob` is a column `user` for DuckDB.
    """
    number = ", file_row_number=true" if numbered else ""
    return f"read_parquet({location(path)}, hive_partitioning=false{number})"


def location(path: Path) -> str:
    """A path in SQL, without patterns and, as it is absolute, without the address `file:/…`."""
    return literal(re.sub(r"([*?\[])", r"[\1]", str(path.absolute())))


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def parquet_types(source: FileSource, cursor: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """DuckDB's type of each column of a Parquet file; DataError if it would rename one."""
    import duckdb

    if source.stamp.size == 0:
        raise empty_file(source.path)
    schema = f"SELECT name FROM parquet_schema({location(source.path)})"
    try:
        described = cursor.execute(f"DESCRIBE FROM {parquet(source.path)}").fetchall()
        names = {name for (name,) in cursor.execute(schema).fetchall()}
    except duckdb.Error as error:
        raise damaged(source.label, "Parquet", error) from error
    types = {name: kind for name, kind, *_ in described}
    renamed = next((name for name in types if name not in names), None)
    if renamed is not None:
        raise DataError(
            f"two columns have the name '{renamed.rpartition('_')[0]}'",
            where=source.label,
            found="names that differ at most in the case of letters",
            expected="a file that names each column once",
        )
    return types


LARGEST_EXACT = 2**53
"""Floats are exact for whole numbers up to here."""

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A pattern for a number as text."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,400}(?:\.0*)?", re.ASCII)
_NUMBER = re.compile(NUMBER, re.ASCII)
_TRUTH = {"true": True, "false": False, "1": True, "0": False}
_USUAL: Mapping[str, tuple[Callable[[str], Any], Callable[[str], Any]]] = {
    "integer": (re.compile(r"[0-9]{1,400}").fullmatch, int),
    "number": (re.compile(r"-?[0-9]{1,99}\.?[0-9]{0,99}").fullmatch, float),
}
"""By type, what is true of usual texts of numbers and how all of these are read at once."""

_HELD_AS: Mapping[str, type] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "list": list, "object": dict,
    "any": object,
}  # fmt: skip
_EXPECTED = {
    "string": "text, or a whole number used as an id",
    "integer": "a whole number, such as 42",
    "number": "a finite number, such as 3.5",
    "boolean": "true or false",
    "list": "a list",
    "object": "an object",
}
_EXPECTED_TEXT = {
    **_EXPECTED,
    "boolean": "true, false, 1 or 0",
    "list": 'a JSON list, such as ["a", "b"]',
    "object": 'a JSON object, such as {"a": 1}',
}
_SPREADSHEET = "spreadsheets write long numbers like this and lose digits: export it as text"
_REPR = 'JSON quotes text with "; write the column with json.dumps, not with str or repr'


@dataclass(eq=False)
class Unfit(Exception):
    """A value that does not fit its column; `expected` describes a valid one."""

    problem: str
    expected: str
    hint: str | None = None


def value_of(kind: str, value: Any) -> Any:
    """A value with a type as one of the declared type; Unfit if it would lose something."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if kind == "string":
        if whole:
            return str(value)
        if isinstance(value, (datetime, date, time)):
            return value.isoformat()
    if kind == "integer":
        if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_EXACT:
            return int(value)
        if whole:
            return value
    elif kind == "number":
        if whole or isinstance(value, (float, Decimal)):
            with suppress(OverflowError):
                if isfinite(number := float(value)):
                    return number
                if isnan(number):
                    hint = "write a missing number as null"
                    raise Unfit("not a number", "a finite number or null", hint)
    elif isinstance(value, _HELD_AS[kind]):
        return value
    raise _unfit(kind, _EXPECTED)


def value_in(kind: str, text: str) -> Any:
    """A text as a value of the declared type; Unfit if it would lose something."""
    stripped, hint = text.strip(), None
    match kind:
        case "string" | "any":
            return text
        case "integer":
            if _WHOLE.fullmatch(stripped):
                return int(stripped.partition(".")[0])
            if _NUMBER.fullmatch(stripped) and "e" in stripped.lower():
                hint = _SPREADSHEET
        case "number":
            if _NUMBER.fullmatch(stripped) and isfinite(number := float(stripped)):
                return number
            if _NUMBER.fullmatch(stripped.replace(",", ".")):
                hint = "write decimals with a point"
        case "boolean":
            if (truth := _TRUTH.get(stripped.lower())) is not None:
                return truth
        case _:
            with suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
                if isinstance(held := msgspec.json.decode(text), _HELD_AS[kind]):
                    return held
            if stripped[:1] in "[{" and "'" in text:
                hint = _REPR
    raise _unfit(kind, _EXPECTED_TEXT, hint)


def _unfit(kind: str, expected: Mapping[str, str], hint: str | None = None) -> Unfit:
    article = "an" if kind[0] in "io" else "a"
    return Unfit(f"not {article} {kind}", expected[kind], hint)


@dataclass(frozen=True, kw_only=True)
class Field:
    """A column with its conversion: `key` is its name in the source, None if absent.

    `text` is true if cells are text. `table` is the table's name, if errors propose options of a
    run.
    """

    name: str
    key: str | None
    column: Column
    text: bool = False
    table: str | None = None

    @functools.cached_property
    def meanings(self) -> Mapping[str, Any]:
        """What texts in the data stand for, as typed values; DataError if one cannot be typed."""
        meant = self.column.values
        try:
            return {written: self.converted(text, text=True) for written, text in meant.items()}
        except Unfit as unfit:
            raise DataError(
                f"the values of column '{self.name}' stand for something that is none of its "
                f"values: {unfit.problem}",
                found=join_names(dict.fromkeys(meant.values())),
                expected=unfit.expected,
            ) from None

    def converted(self, cell: Any, *, text: bool) -> Any:
        """A cell that is not absent and stands for nothing else as the column's type, or Unfit."""
        kind, choices = self.column.type, self.column.one_of
        value = value_in(kind, cell) if text else value_of(kind, cell)
        if not choices or str(value) in choices:
            return value
        hint = None
        if self.table is not None:
            meaning = shlex.quote(f"{self.table}.{self.name}.{as_written(cell)}=MEANING")
            hint = f"if it stands for one of these: --values {meaning}"
        expected = f"one of: {join_names(choices)}"
        raise Unfit("not one of the values that the task allows", expected, hint)

    def value(self, cell: Any) -> Any:
        """The value of a cell, or Unfit."""
        if self.meanings and isinstance(cell, (str, int, float)):
            written = as_written(cell)
            if written in self.meanings:
                return self.meanings[written]
        if cell is not None and not (self.text and cell == ""):
            return self.converted(cell, text=self.text)
        if self.column.required:
            raise Unfit(
                "the value is missing", "a value in every row", "complete or remove the row"
            )
        return None

    def values(self, cells: list[Any]) -> list[Any]:
        """The values of the cells of this column, as `value` gives them, or Unfit."""
        column, held = self.column, _HELD_AS[self.column.type]
        if self.meanings or column.one_of:
            pass
        elif self.text and self.key is not None and column.type in _USUAL:
            is_usual, read = _USUAL[column.type]
            if all(map(is_usual, cells)):
                return [*map(read, cells)]
        elif not (self.text and "" in cells):
            types = {*map(type, cells)}
            if not column.required:
                types.discard(type(None))
            fits = type(None) not in types if held is object else types <= {held}
            if fits and (held is not float or all(one is None or isfinite(one) for one in cells)):
                return cells
        if self.text and held not in (list, dict):
            distinct = {cell: self.value(cell) for cell in {*cells}}
            return [distinct[cell] for cell in cells]
        return [self.value(cell) for cell in cells]


def as_written(cell: Any) -> str:
    """A cell as the keys of a column's `values` write it."""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def rows_that_fit(
    cells: Sequence[tuple[Field, list[Any]]], *, label: str, first: int
) -> Iterator[dict[str, list[Any]]]:
    """The rows one by one, as columns of one value, until the error of the first that does not fit.

    `label` is the source of the rows, and `first` the number of the first one there.
    """
    for number, row in enumerate(zip(*(every for _, every in cells), strict=True), first):
        values = {}
        for (one, _), cell in zip(cells, row, strict=True):
            try:
                values[one.name] = [one.value(cell)]
            except Unfit as unfit:
                raise DataError(
                    unfit.problem,
                    where=place(label, row=number, column=one.key),
                    found=preview(cell),
                    expected=unfit.expected,
                    hint=unfit.hint,
                ) from None
        yield values


Cells = tuple[Sequence[Field], Mapping[str, list[Any]], int]
"""Columns, the cells of some rows by the columns' names in a source, and the number of rows."""

T = TypeVar("T")


def _parts(rows: Iterator[T], most: int) -> Iterator[list[T]]:
    """Rows, many at a time; an error comes after the rows before it."""
    while True:
        part: list[T] = []
        try:
            part.extend(islice(rows, most))  # which keeps what came before an error
        except DataError:
            if part:
                yield part
            raise
        if not part:
            return
        yield part


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Consecutive rows of a table as columns; `first` is the number of the first row."""

    first: int
    columns: Mapping[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of one or several sources, checked while they are read.

        for number, row in table.rows():
            if row["age"] < 0:
                raise table.bad(number, "age", row["age"], "an age of 0 or more")

    A row holds the declared columns only, under their own names instead of a source's aliases; with
    no declared columns it holds all cells unchanged. An optional column that is absent, null or an
    empty cell is None; for a required column this is an error.

    `named` are in a run the columns that the command names in the data; a header must have these,
    and errors propose options of a run.
    """

    name: str
    columns: Mapping[str, Column]
    sources: Sequence[Source]
    named: Collection[str] | None = None

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
            label, row = next(islice(every, row - 1, None), (self.name, row))
        return unusable(value, place(label, row=row, column=column), expected)

    def _empty(self) -> DataError:
        return DataError(
            f"table '{self.name}' has no rows",
            where=join_names(source.label for source in self.sources),
            expected="at least one row",
        )

    def _rows(self, source: Source) -> Iterator[dict[str, Any]]:
        if not self.columns and isinstance(source, FileSource):
            objects = source.objects()
            if objects is not None:
                yield from objects
                return
        for columns in self.columns_of(source):
            for cells in zip(*columns.values(), strict=True):
                yield dict(zip(columns, cells, strict=True))

    def columns_of(
        self, source: Source, names: Collection[str] = ()
    ) -> Iterator[dict[str, list[Any]]]:
        """The rows of one of the sources as columns, many at a time: those named, or all."""
        first = 1
        for fields, columns, count in self._cells(source, names or self.columns):
            cells = [
                (one, [None] * count if one.key is None else columns[one.key]) for one in fields
            ]
            try:
                yield {one.name: one.values(every) for one, every in cells}
            except Unfit:
                yield from rows_that_fit(cells, label=source.label, first=first)
            first += count

    def _cells(self, source: Source, names: Collection[str]) -> Iterator[Cells]:
        """The named columns, with their cells in some consecutive rows, and the number of these."""
        objects = source.objects() if isinstance(source, FileSource) else None
        if objects is not None:
            yield from self._cells_of_objects(objects, names, source.label)
            return
        header, delimiter = self.layout(source)
        fields = self.fields_of(header, names, text=bool(delimiter), where=source.label)
        keys = [*dict.fromkeys(one.key for one in fields if one.key is not None)]
        if isinstance(source, FileSource) and delimiter:
            for part in _parts(source.records(delimiter, len(header)), BATCH_ROWS):
                columns = [*zip(*part, strict=True)]
                yield fields, {key: [*columns[header.index(key)]] for key in keys}, len(part)
        else:
            for batch in source.batches(keys or header[:1]):
                yield fields, {key: batch[key].to_pylist() for key in keys}, batch.num_rows

    def _cells_of_objects(
        self, objects: Iterator[dict[str, Any]], names: Collection[str], label: str
    ) -> Iterator[Cells]:
        first = 1
        # An object may leave out an optional column, whoever named it.
        plain = replace(self, named=None if self.named is None else ())
        declared = [one for name, column in self.columns.items() for one in column.names(name)]
        known: dict[tuple[str, ...], Sequence[Field]] = {}
        for part in _parts(objects, OBJECTS):
            every = {} if self.columns else dict.fromkeys(key for row in part for key in row)
            for keys, alike in groupby(part, dict.keys) if self.columns else [(every, part)]:
                rows = [*alike]
                there = tuple(one for one in declared if one in keys)
                if there not in known or not self.columns:
                    where = place(label, row=first)
                    known[there] = plain.fields_of([*keys], names, text=False, where=where)
                fields = known[there]
                wanted = {one.key for one in fields if one.key is not None}
                yield fields, {key: [row.get(key) for row in rows] for key in wanted}, len(rows)
                first += len(rows)

    def layout(self, source: Source) -> tuple[tuple[str, ...], str]:
        """The columns of a source, and the delimiter of text, "" for what is stored.

        It is one with which the header has all required columns, or else the most, for the error.
        """
        if not isinstance(source, FileSource) or source.format == "parquet":
            return tuple(source.columns() or ()), ""
        best, most = source.delimiter(), 1
        if len(self.columns) > 1 and not source.delimited.header and self._missing(()):
            for one in dict.fromkeys((best, *_OTHER_DELIMITERS)):
                with suppress(DataError):
                    if not self._missing(header := source.header(one)):
                        return header, one
                    if len(header) > most:
                        best, most = one, len(header)
        return source.header(best), best

    def _missing(self, present: Collection[str]) -> list[str]:
        """The columns that must be there and have no name among those present."""
        return [
            name
            for name, column in self.columns.items()
            if (column.required or name in (self.named or ()))
            and not any(one in present for one in column.names(name))
        ]

    def fields_of(
        self, present: Sequence[str], names: Collection[str], *, text: bool, where: str
    ) -> list[Field]:
        """The named columns with their names among those present, or all; DataError if a required
        column of the table is missing."""
        if missing := self._missing(present):
            raise self._without(missing, present, where)
        plain = Column(type="any", required=False)
        columns = self.columns or {name: plain for name in names or present if name}
        return [
            Field(
                name=name,
                key=next((known for known in column.names(name) if known in present), None),
                column=column,
                text=text and bool(self.columns),
                table=self.name if self.named is not None else None,
            )
            for name, column in columns.items()
            if name in (names or columns)
        ]

    def _without(self, missing: Sequence[str], present: Sequence[str], where: str) -> DataError:
        """The error for columns that are missing."""
        taken = {one for name, column in self.columns.items() for one in column.names(name)}
        free = [name for name in present if name not in taken]
        hints = []
        for name in missing:
            wanted = self.columns[name].names(name)
            near = next((found for one in wanted if (found := nearest(one, free))), None)
            option = "--columns " + shlex.quote(f"{self.name}.{name}={near or 'NAME'}")
            if near and self.named is not None:
                hints.append(f"'{near}' is the nearest name: if it is '{name}', give {option}")
            elif near:
                hints.append(f"'{near}' is the nearest name: rename it if it is '{name}'")
            elif self.named is not None and free:
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


def unusable(value: Any, where: str, expected: str) -> DataError:
    """The error for a value that fits its column and cannot be used."""
    return DataError(
        "a value that cannot be used", where=where, found=preview(value), expected=expected
    )
