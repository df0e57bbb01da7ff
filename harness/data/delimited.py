"""Rows of CSV and TSV files, and of others like them with a delimiter of their own.

The first line names the columns, unless the task does. Quoting follows RFC 4180 in both formats
and is checked: a quote that is not closed, or that is followed by anything except a delimiter, is
an error. A task can declare that its files have no quotes.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from harness.base.errors import DataError
from harness.contracts.task import DelimitedSpec
from harness.data.opening import empty_file, text_lines
from harness.data.wording import place, preview

LONGEST_FIELD = 1 << 28
"""The longest field in characters; the default of 131,072 is too short for a history in a cell."""

USUAL = DelimitedSpec()

STAND_IN = "\ufdd0"
"""The character in place of a delimiter of several characters while quoted cells are read: one that
Unicode keeps free of any meaning in text."""

_BARE_RETURN = re.compile(r"\r(?!\n|$)")


class _Unquoted:
    """A reader of lines in which only the delimiter has a meaning."""

    def __init__(self, lines: Iterator[str], delimiter: str) -> None:
        self.line_num = 0
        self._lines = lines
        self._delimiter = delimiter

    def __iter__(self) -> _Unquoted:
        return self

    def __next__(self) -> list[str]:
        line = next(self._lines).rstrip("\r\n")
        self.line_num += 1
        return line.split(self._delimiter) if line else []


class _Several:
    """A reader of quoted cells with a delimiter of several characters.

    The `csv` module takes one character only, so another stands in for the delimiter; inside quotes
    it becomes the delimiter's text again.
    """

    def __init__(self, path: Path, lines: Iterator[str], delimiter: str) -> None:
        self._path = path
        self._delimiter = delimiter
        self._reader = csv.reader(self._replaced(lines), delimiter=STAND_IN, strict=True)

    @property
    def line_num(self) -> int:
        return self._reader.line_num

    def __iter__(self) -> _Several:
        return self

    def __next__(self) -> list[str]:
        return [cell.replace(STAND_IN, self._delimiter) for cell in next(self._reader)]

    def _replaced(self, lines: Iterator[str]) -> Iterator[str]:
        for number, line in enumerate(lines, 1):
            if STAND_IN in line:
                raise DataError(
                    "the text holds a character that no text should hold",
                    where=place(str(self._path), line=number),
                    found="U+FDD0, which Unicode reserves for use inside programs",
                    expected="text without it, or `quotes: false` in the task's `delimited`",
                )
            yield line.replace(self._delimiter, STAND_IN)


def read_header(path: Path, *, delimiter: str, written: DelimitedSpec = USUAL) -> tuple[str, ...]:
    """The names of a file's columns in order; '' for a column without a name."""
    return _header(path, _reader(path, delimiter, written), written)


def read_delimited(
    path: Path,
    *,
    delimiter: str,
    wanted: Collection[str] | None,
    written: DelimitedSpec = USUAL,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells of each data row, of the wanted columns or of all; blank lines skipped.

    The line is the one on which the row begins: quoted cells may hold line ends.
    """
    reader = _reader(path, delimiter, written)
    header = _header(path, reader, written)
    chosen = [
        (position, name)
        for position, name in enumerate(header)
        if name and (wanted is None or name in wanted)
    ]
    width = len(header)
    row = 0
    while True:
        before = reader.line_num
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise _malformed(path, error, row=row + 1, line=before + 1, last=reader.line_num) from (
                error
            )
        if cells is None:
            return
        if not cells:
            continue
        row += 1
        if len(cells) > width and written.surplus == "last":
            cells[width - 1 :] = [delimiter.join(cells[width - 1 :])]
        if len(cells) != width:
            at = place(str(path), row=row, line=before + 1)
            raise _ragged(cells, header, where=at, delimiter=delimiter, quotes=written.quotes)
        yield before + 1, {name: cells[position] for position, name in chosen}


def _reader(path: Path, delimiter: str, written: DelimitedSpec) -> Any:
    """The cells of each row, none for a blank line; `line_num` counts the lines read so far."""
    encoding = written.encoding
    lines = (line.decode(encoding) for line in text_lines(path, encoding=encoding))
    if written.bare_returns == "space":
        lines = (_BARE_RETURN.sub(" ", line) if "\r" in line else line for line in lines)
    if not written.quotes:
        return _Unquoted(lines, delimiter)
    if csv.field_size_limit() < LONGEST_FIELD:
        csv.field_size_limit(LONGEST_FIELD)
    if len(delimiter) > 1:
        return _Several(path, lines, delimiter)
    return csv.reader(lines, delimiter=delimiter, strict=True)


def _header(path: Path, reader: Any, written: DelimitedSpec) -> tuple[str, ...]:
    if written.header:
        return written.header
    try:
        cells = next((cells for cells in reader if cells), None)
    except csv.Error as error:
        raise _malformed(path, error, row=None, line=1, last=1) from error
    if cells is None:
        raise empty_file(path)
    names = tuple(cell.strip() for cell in cells)
    first: dict[str, int] = {}
    for position, name in enumerate(names):
        if name and first.setdefault(name, position) != position:
            raise DataError(
                f"two columns have the name '{name}'",
                where=place(str(path), line=1),
                found=f"columns {first[name] + 1} and {position + 1} of the header",
                expected="a header that names each column once",
                hint="rename or remove one of them",
            )
    return names


def _malformed(path: Path, error: csv.Error, *, row: int | None, line: int, last: int) -> DataError:
    message = str(error)
    hint = None
    if "new-line character" in message:
        problem = "a cell without quotes contains a carriage return"
        expected = "lines that end in LF or CRLF, and quotes around cells that hold line ends"
        hint = "old Macintosh files end lines with CR only: convert the line ends"
    elif "unexpected end of data" in message:
        problem = "a quoted cell is never closed"
        expected = 'a closing " before the end of the file'
        hint = f"the quote was opened in this row; the file ends at line {last}"
    elif "expected after" in message:
        problem = "a quoted cell continues after its closing quote"
        expected = 'a quoted cell in which each " is doubled, and one " closes it'
    else:
        problem = f"the row cannot be read ({message})"
        expected = "CSV as RFC 4180 describes it"
    return DataError(
        problem, where=place(str(path), row=row, line=line), expected=expected, hint=hint
    )


def _ragged(
    cells: list[str], header: tuple[str, ...], *, where: str, delimiter: str, quotes: bool
) -> DataError:
    more = len(cells) > len(header)
    at = (
        f"the first surplus cell: {preview(cells[len(header)])}"
        if more
        else f"'{header[len(cells)]}' is the first column without a cell"
    )
    return DataError(
        f"the row has {'more' if more else 'fewer'} cells than the header has columns",
        where=where,
        found=f"{len(cells)} cells; {at}",
        expected=f"{len(header)} cells, separated by {delimiter!r}",
        hint="put quotes around cells that hold the delimiter or a line end"
        if more and quotes
        else None,
    )
