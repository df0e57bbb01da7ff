"""Queries by which DuckDB reads whole files into columns of the declared types."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.data.columns import NUMBER
from harness.data.fingerprint import check_unchanged
from harness.data.opening import BOM, CHUNK, unpacked
from harness.data.source import PACKINGS, FileSource
from harness.data.table import meanings

if TYPE_CHECKING:
    import duckdb

    from harness.contracts.task import Column
    from harness.data.source import Source
    from harness.data.table import Table

TYPES: Mapping[str, str] = {
    "string": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "list": "JSON",
    "object": "JSON",
    "any": "JSON",
}

_BARE_RETURN = re.compile(rb"\r(?!\n|\Z)")

_AS_NAMED = "hive_partitioning=false"
"""Else, for DuckDB, a folder `user=bob` is a column `user`."""

_NUMBERS = "file_row_number"

_WHOLE = r"[+-]?[0-9]+(\.0*)?"

_ODD = r"(?i)(^|[:,\[])\s*-?(nan|inf)|[0-9]e\+?[0-9][0-9][0-9]|,\s*(\]|\x7d)"
_STRINGS = r'"([^"\\]|\\.)*"'
_STRICT = (
    f"NOT (regexp_matches({{0}}::VARCHAR, '{_ODD}') AND "
    f"regexp_matches(regexp_replace({{0}}::VARCHAR, '{_STRINGS}', '\"\"', 'g'), '{_ODD}'))"
)
"""Whether a text that DuckDB takes for JSON is JSON: it takes NaN, Infinity, 1e999 and [1,] too."""

_LONGEST_GAP = 1 << 10
"""The most spaces beside a quotation mark that are looked for."""

_FROM_TEXT = {
    "string": "{0}",
    "integer": f"CASE WHEN regexp_full_match(trim({{0}}), '{_WHOLE}') "
    "THEN TRY_CAST(split_part(trim({0}), '.', 1) AS BIGINT) END",
    "number": f"CASE WHEN regexp_full_match(trim({{0}}), '{NUMBER}') "
    "AND isfinite(TRY_CAST(trim({0}) AS DOUBLE)) THEN TRY_CAST(trim({0}) AS DOUBLE) END",
    "boolean": "CASE lower(trim({0})) WHEN 'true' THEN true WHEN '1' THEN true "
    "WHEN 'false' THEN false WHEN '0' THEN false END",
    "list": "CASE WHEN json_valid({0}) AND json_type({0}) = 'ARRAY' "
    f"AND {_STRICT} THEN {{0}}::JSON END",
    "object": "CASE WHEN json_valid({0}) AND json_type({0}) = 'OBJECT' "
    f"AND {_STRICT} THEN {{0}}::JSON END",
    "any": "to_json({0})",
}
_WHOLE_JSON = "json_type({0}) IN ('BIGINT', 'UBIGINT')"
_FROM_JSON = {
    "string": f"CASE WHEN {_WHOLE_JSON} OR json_type({{0}}) = 'VARCHAR' THEN {{0}} ->> '$' END",
    "integer": f"CASE WHEN {_WHOLE_JSON} THEN TRY_CAST({{0}} AS BIGINT) END",
    "number": f"CASE WHEN ({_WHOLE_JSON} OR json_type({{0}}) = 'DOUBLE') "
    "AND isfinite(TRY_CAST({0} AS DOUBLE)) THEN TRY_CAST({0} AS DOUBLE) END",
    "boolean": "CASE json_type({0}) WHEN 'BOOLEAN' THEN TRY_CAST({0} AS BOOLEAN) END",
    "list": f"CASE WHEN json_type({{0}}) = 'ARRAY' AND {_STRICT} THEN {{0}} END",
    "object": f"CASE WHEN json_type({{0}}) = 'OBJECT' AND {_STRICT} THEN {{0}} END",
    "any": "CASE WHEN json_type({0}) IN ('VARCHAR', 'BIGINT', 'UBIGINT', 'BOOLEAN') "
    f"OR {_STRICT} THEN {{0}} END",
}
_FROM_PARQUET = {
    "string": {"text": "{0}", "whole": "{0}::VARCHAR"},
    "integer": {"whole": "TRY_CAST({0} AS BIGINT)"},
    "number": {
        "whole": "{0}::DOUBLE",
        "fraction": "CASE WHEN isfinite({0}) THEN {0}::DOUBLE END",
    },
    "boolean": {"truth": "{0}"},
    "any": {"text": "to_json({0})", "whole": "to_json({0})"},
}
"""The value of a column by its declared type and what the file holds."""

_KINDS = {
    "VARCHAR": "text",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "whole"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), "whole"),
    "FLOAT": "fraction",
    "DOUBLE": "fraction",
    "BOOLEAN": "truth",
}


def bulk_query(
    source: Source, table: Table, *, connection: duckdb.DuckDBPyConnection, folder: Path
) -> str | None:
    """A query for the rows of one of a table's files in its order: the declared columns, and
    `unfit`.

    `unfit` is true for a row with a value that must be read by rows, which gives it or its error.
    The rows of a Parquet file also have `rowid`, from 0 on. None if DuckDB cannot read the file as
    `Table.rows` does. `connection` reads the columns of a Parquet file; `folder` has room for a
    file that must be unpacked first.
    """
    columns = table.columns
    if not isinstance(source, FileSource) or not columns:
        return None
    if set("*?[") & {*str(source.path.absolute()), *str(folder)}:
        return None  # DuckDB takes such a path for a pattern
    if any("" in column.values for column in columns.values()):
        return None  # DuckDB takes an empty cell for an absent one
    if any(column.one_of and column.type != "string" for column in columns.values()):
        return None
    match source.bulk_format():
        case "delimited":
            return _delimited(source, table, folder)
        case "jsonl":
            return _json_lines(source, columns, folder)
        case "parquet":
            return _parquet(source, table, connection)
        case _:
            return None


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def distinct(names: Collection[str]) -> bool:
    """Whether no two names differ in case only, which are one name for DuckDB."""
    return len({name.lower() for name in names}) == len(names)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _plain_file(source: FileSource, folder: Path) -> Path:
    """The file for a query, unpacked if it is packed: DuckDB notices no damage of such a file."""
    check_unchanged(source.path, source.stamp)
    if source.path.suffix.lower() not in PACKINGS:
        return source.path.absolute()  # DuckDB takes a relative `file:/…` for an address
    place = folder / "unpacked"
    with unpacked(source.path) as packed, place.open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    return place


def _without_returns(file: Path, folder: Path) -> Path:
    """The file, or a copy without its carriage returns, if it has any: a space for each in a line.

    A copy has one kind of line end, as DuckDB refuses a file with several.
    """
    if not _holds(file, b"\r"):
        return file
    place = folder / "cleaned"
    with file.open("rb") as stream, place.open("wb") as copy:
        for chunk in iter(partial(stream.read, CHUNK), b""):
            more = chunk
            while more.endswith(b"\r") and (byte := stream.read(1)):
                more += byte
            if b"\r" in more:
                spaced = _BARE_RETURN.sub(b" ", more)
                more = spaced.replace(b"\r\n", b"\n").removesuffix(b"\r")
            copy.write(more)
    return place


def _has_spaces_at_quotes(file: Path, delimiter: bytes) -> bool:
    """Whether spaces stand between a delimiter and a quotation mark: DuckDB drops them."""
    end = rb"(?:%b|[\r\n])" % re.escape(delimiter)
    # Inside quotes, a quotation mark is doubled; an odd number of them begins or ends a cell.
    gap = re.compile(rb'%b +(?:"")*"(?=[^"])|(?<=[^"])(?:"")*" +%b' % (end, end))
    return any(
        (b' "' in text or b'" ' in text) and gap.search(text)
        for text in _overlapping(file, _LONGEST_GAP)
    )


def _overlapping(file: Path, margin: int) -> Iterator[bytes]:
    """The bytes of a file between two line ends, in parts that repeat the end of the one before."""
    before = b"\n"
    with file.open("rb") as stream:
        for chunk in itertools.chain(iter(partial(stream.read, CHUNK), b""), [b"\n"]):
            part = before + chunk
            yield part
            before = part[-margin:]


def _delimited(source: FileSource, table: Table, folder: Path) -> str | None:
    written = source.delimited
    header = source.columns() or ()
    whole = written.surplus == "last"
    if written.quotes and (whole or written.bare_returns != "error"):
        return None
    if len(header) < 2:
        return None  # DuckDB takes a blank line for a row if there is one column
    columns = table.columns
    fields = table.fields(header, columns, text=True, where=source.label)
    cells = {name: f"c{position}" for position, name in enumerate(header)}
    listed = "line: 'VARCHAR'"
    if not whole:
        listed = ", ".join(f"{cell}: 'VARCHAR'" for cell in cells.values())
    # No text should hold this one: with it, whole lines are read.
    delimiter = "\x1f" if whole else source.delimiter()
    mark = "'\"'" if written.quotes else "''"
    encoding = "latin-1" if written.encoding == "iso-8859-1" else "utf-8"
    file = _plain_file(source, folder)
    if written.bare_returns == "space":
        file = _without_returns(file, folder)
    if not written.header:
        with file.open("rb") as stream:
            if stream.read(len(BOM) + 1).removeprefix(BOM)[:1] in (b"\r", b"\n"):
                return None  # DuckDB takes a blank first line for the header
    if written.quotes and _has_spaces_at_quotes(file, source.delimiter().encode(encoding)):
        return None
    read = (
        f"read_csv({_text(str(file))}, {_AS_NAMED}, auto_detect=false, columns={{{listed}}}, "
        f"header={not written.header}, delim={_text(delimiter)}, "
        f"quote={mark}, escape={mark}, nullstr='', encoding='{encoding}', strict_mode=true)"
    )
    doubts = []
    if whole:
        read, doubts = _split(read, source.delimiter(), tuple(cells.values())), ["fewer"]
    found = {}
    for field in fields:
        if field.key:
            column = columns[field.name]
            found[field.name] = _meant_text(cells[field.key], column), _FROM_TEXT[column.type]
    return _select(columns, found, read, doubts=doubts)


def _split(lines: str, delimiter: str, cells: Sequence[str]) -> str:
    """The cells of lines that are not blank, the last with all that is left of its line.

    `fewer` is true for a line with too few cells.
    """
    mark, last = _text(delimiter), len(cells)
    chosen = [f"nullif(parts[{place}], '') AS {cell}" for place, cell in enumerate(cells[:-1], 1)]
    rest = (
        f"CASE WHEN len(parts) > {last} THEN array_to_string(parts[{last}:], {mark}) "
        f"ELSE nullif(parts[{last}], '') END AS {cells[-1]}"
    )
    return (
        f"(SELECT {', '.join(chosen)}, {rest}, len(parts) < {last} AS fewer FROM ("
        f"SELECT string_split(line, {mark}) AS parts FROM {lines} WHERE line IS NOT NULL))"
    )


def _json_lines(source: FileSource, columns: Mapping[str, Column], folder: Path) -> str | None:
    names = {name: column.names(name) for name, column in columns.items()}
    every = dict.fromkeys(itertools.chain(*names.values()))
    if not distinct(every):
        return None
    listed = ", ".join(f"{_text(one)}: 'JSON'" for one in every)
    file = _plain_file(source, folder)
    listed = f"format='newline_delimited', columns={{{listed}}}"
    read = f"read_json({_text(str(file))}, {_AS_NAMED}, {listed})"
    found = {}
    for name, any_of in names.items():
        cell = f"coalesce({', '.join(map(quoted, any_of))})"
        cases = "".join(
            f" WHEN {_text(written)} THEN {_text(msgspec.json.encode(value).decode())}::JSON"
            for written, value in meanings(name, columns[name]).items()
        )
        meant = f"(CASE {cell} ->> '$'{cases} ELSE {cell} END)" if cases else cell
        found[name] = meant, _FROM_JSON[columns[name].type]
    doubts = [doubt for any_of in names.values() if (doubt := _of_two_names(file, any_of))]
    return _select(columns, found, read, doubts=doubts)


def _of_two_names(file: Path, names: Sequence[str]) -> str | None:
    """The condition of a row in which null may stand under one name and a value under another.

    DuckDB takes null for an absent key, and `Table.rows` gives what stands under the first key.
    """
    for place, name in enumerate(names[:-1], 1):
        if _holds(file, f'"{name}"'.encode()):
            first, rest = (", ".join(map(quoted, part)) for part in (names[:place], names[place:]))
            return f"coalesce({first}, NULL) IS NULL AND coalesce({rest}, NULL) IS NOT NULL"
    return None


def _holds(file: Path, text: bytes) -> bool:
    return any(text in part for part in _overlapping(file, len(text)))


def _parquet(source: FileSource, table: Table, connection: duckdb.DuckDBPyConnection) -> str | None:
    import duckdb

    check_unchanged(source.path, source.stamp)
    file = _text(str(source.path.absolute()))
    read = f"read_parquet({file}, {_AS_NAMED}, {_NUMBERS}=true)"
    schema = f"SELECT name FROM parquet_schema({file})"
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {read}").fetchall()
        names = {name for (name,) in connection.execute(schema).fetchall()}
    except duckdb.Error:
        return None
    kinds = {name: kind for name, kind, *_ in described if name != _NUMBERS}
    if not kinds.keys() <= names:
        return None  # DuckDB renames one of two columns whose names differ in case only
    columns, found = table.columns, {}
    for field in table.fields(tuple(kinds), columns, text=False, where=source.label):
        if field.key:
            column, kind = columns[field.name], _KINDS.get(kinds[field.key], "other")
            way = _FROM_PARQUET.get(column.type, {}).get(kind)
            if way is None or (column.values and kind != "text"):
                return None
            found[field.name] = _meant_text(quoted(field.key), column), way
    return _select(columns, found, read, more=f"{_NUMBERS} AS rowid, ")


def _meant_text(cell: str, column: Column) -> str:
    """A cell of text, or the text that it stands for."""
    cases = "".join(
        f" WHEN {_text(written)} THEN {_text(meant)}" for written, meant in column.values.items()
    )
    return f"(CASE {cell}{cases} ELSE {cell} END)" if cases else cell


def _select(
    columns: Mapping[str, Column],
    found: Mapping[str, tuple[str, str]],
    read: str,
    *,
    more: str = "",
    doubts: Iterable[str] = (),
) -> str:
    """The query for the values of columns; each found one has its cell and the value of that.

    A row that fulfils one of the `doubts` is unfit.
    """
    chosen, unfit = [], [*doubts]
    for name, column in columns.items():
        if name not in found:
            chosen.append(f"NULL::{TYPES[column.type]} AS {quoted(name)}")
            continue
        cell, way = found[name]
        value = way.format(cell)
        chosen.append(f"{value} AS {quoted(name)}")
        wrong = [f"{value} IS NULL"]
        if not column.required:
            wrong = [f"({cell} IS NOT NULL AND {value} IS NULL)"]
        if column.one_of:
            wrong.append(f"{value} NOT IN ({', '.join(map(_text, column.one_of))})")
        unfit.append(f"coalesce({' OR '.join(wrong)}, false)")
    unfit_row = " OR ".join(unfit) or "false"
    return f"SELECT {', '.join(chosen)}, {more}{unfit_row} AS unfit FROM {read}"
