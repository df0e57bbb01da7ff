"""Rows of JSON files: one object a line, or one array of objects, read as a stream."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

import msgspec

from harness.base.errors import DataError
from harness.data.opening import (
    BOM,
    CHUNK,
    bad_utf8,
    check_start,
    empty_file,
    text_lines,
    unpacked,
)
from harness.data.wording import kind_of, place, preview

Rows = Iterator[tuple[int, dict[str, Any]]]

_DECODE_FAILURES = (msgspec.MsgspecError, UnicodeError, RecursionError)
_MARGIN = 16
"""An error this near the end of the text read so far may only mean that more must be read."""


def read_json_lines(path: Path) -> Rows:
    """Line number and object of each line; blank lines skipped."""
    decode = msgspec.json.Decoder().decode
    row = 0
    for line, raw in enumerate(text_lines(path), 1):
        if raw.isspace():
            continue
        row += 1
        try:
            value = decode(raw)
        except _DECODE_FAILURES as error:
            raise malformed(path, raw.decode(), error, row=row, line=line) from None
        if not isinstance(value, dict):
            raise DataError(
                "the line is not an object",
                where=place(str(path), row=row, line=line),
                found=f"a JSON {kind_of(value)}: {preview(value)}",
                expected='one JSON object, such as {"user": "u1"}',
            )
        yield line, value


def read_json(path: Path) -> Rows:
    """Line number and object of each element of the array that a file holds.

    Files called .json often hold one object a line; these are read as such.
    """
    start = _start(path)[:1]
    if start == b"[":
        return Walk(path).rows()
    if start != b"{":
        raise DataError(
            "the file has no rows",
            where=str(path),
            found=f"a file that begins with {preview(start.decode('utf-8', 'replace'))}",
            expected="an array of objects, or one object a line",
        )
    first = next((line for line in text_lines(path) if not line.isspace()), b"")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        raise DataError(
            "the file is neither an array of objects nor one object a line",
            where=str(path),
            found="a first line that is not a whole object",
            expected="[{…}, {…}] or one {…} on each line",
            hint="write only the list of rows, without an object around it",
        ) from None
    return read_json_lines(path)


def begins_with_object(path: Path) -> bool:
    """Whether the file begins with an object, as it does if it has one object a line."""
    return _start(path)[:1] == b"{"


def _start(path: Path) -> bytes:
    """The beginning of a JSON file, without white space before it; DataError if there is none."""
    with unpacked(path) as stream:
        start = stream.read(CHUNK)
    check_start(path, start)
    start = start.removeprefix(BOM).lstrip()
    if not start:
        raise empty_file(path)
    return start


class Walk:
    """The walk over one array or object: the text that is read but not used yet, and its place.

    With `names`, each row is an entry of an object: key and value under these names.
    """

    def __init__(self, path: Path, names: tuple[str, str] | None = None) -> None:
        self._path = path
        self._names = names
        self._whole, self._close = ("array", "]") if names is None else ("object", "}")
        self._met: set[str] = set()
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._scan = json.JSONDecoder().raw_decode
        self._text = ""
        self._used = 0
        self._line = 1
        self._bytes = 0
        self._ended = False

    def rows(self) -> Rows:
        """Line and columns of each row, which is a value of the array or an entry of the object."""
        with unpacked(self._path) as stream:
            self._read(stream, CHUNK)
            self._text = self._text.removeprefix("\ufeff")
            self._skip_space(stream)
            self._take(1)
            row = 0
            while True:
                mark = self._next_mark(stream, row)
                if mark == self._close and row == 0:
                    break
                row += 1
                if mark == self._close:
                    self._fail(
                        f"a comma before the closing {self._close}",
                        "a comma between rows only",
                        row=row,
                    )
                yield self._line, self._row(stream, row)
                mark = self._next_mark(stream, row)
                if mark not in (",", self._close):
                    self._fail(f"{mark!r} follows an element", f"a comma or {self._close}", row=row)
                if mark == self._close:
                    break
                self._take(1)
            self._take(1)
            self._skip_space(stream)
            if self._used < len(self._text):
                only = f"only one {self._whole}"
                self._fail(f"text after the end of the {self._whole}", only, row=row)

    def _row(self, stream: IO[bytes], row: int) -> Any:
        mark = self._text[self._used]
        if self._names is None:
            if mark != "{":
                self._fail(f"an element that begins with {mark!r}", "an object", row=row)
            return self._value(stream, row)
        name, held = self._names
        if mark != '"':
            self._fail(f"an entry that begins with {mark!r}", "a key in quotes", row=row)
        line = self._line
        key = self._value(stream, row, column=name)
        if key in self._met:
            raise DataError(
                "a key occurs twice",
                where=place(str(self._path), row=row, line=line, column=name),
                found=preview(key),
                expected="each key once",
            )
        self._met.add(key)
        mark = self._next_mark(stream, row, inside=True)
        if mark != ":":
            self._fail(f"{mark!r} follows a key", "a colon", row=row)
        self._take(1)
        self._next_mark(stream, row, inside=True)
        return {name: key, held: self._value(stream, row, column=held)}

    def _value(self, stream: IO[bytes], row: int, *, column: str | None = None) -> Any:
        """The whole JSON value that begins here; `column` is its column if it is not a row."""
        grow = CHUNK
        while True:
            try:
                _, end = self._scan(self._text, self._used)
                # A part of a number is a number too.
                if (
                    self._ended
                    or self._text[self._used] in '{["'
                    or end < len(self._text) - _MARGIN
                ):
                    break
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated string")
                if self._ended or not (cut or error.pos >= len(self._text) - _MARGIN):
                    raise DataError(
                        "malformed JSON",
                        where=place(
                            str(self._path),
                            row=row,
                            line=self._line + self._text.count("\n", self._used, error.pos),
                            column=column,
                        ),
                        found=_describe(error, self._text),
                        expected="a JSON object" if column is None else "a JSON value",
                    ) from None
            except RecursionError:
                self._fail("objects nested too deeply", "fewer levels", row=row)
            except ValueError:
                self._fail("an integer of thousands of digits", "numbers of 64 bits", row=row)
            self._read(stream, grow)
            grow *= 2
        piece = self._text[self._used : end]
        try:
            value = msgspec.json.decode(piece)
        except _DECODE_FAILURES as error:
            raise malformed(
                self._path, piece, error, row=row, line=self._line, column=column
            ) from None
        self._take(end - self._used)
        return value

    def _next_mark(self, stream: IO[bytes], row: int, *, inside: bool = False) -> str:
        """The next character that is no space; `inside` means that the row is not complete."""
        self._skip_space(stream)
        if self._used >= len(self._text):
            raise DataError(
                f"the {self._whole} is never closed",
                where=place(str(self._path), row=row, line=self._line),
                found=f"the end of the file after {row - inside} whole rows",
                expected=f"a {self._close} after the last row",
                hint="the file may have been cut off: fetch or write it again",
            )
        return self._text[self._used]

    def _skip_space(self, stream: IO[bytes]) -> None:
        while True:
            while self._used < len(self._text) and self._text[self._used] in " \t\r\n":
                self._take(1)
            if self._used < len(self._text) or self._ended:
                return
            self._read(stream, CHUNK)

    def _take(self, count: int) -> None:
        end = self._used + count
        self._line += self._text.count("\n", self._used, end)
        self._used = end

    def _read(self, stream: IO[bytes], size: int) -> None:
        pending = len(self._decoder.getstate()[0])
        chunk = stream.read(size)
        try:
            text = self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            lines = self._text.count("\n", self._used) + error.object.count(b"\n", 0, error.start)
            raise bad_utf8(
                self._path,
                byte=error.object[error.start],
                offset=self._bytes - pending + error.start,
                line=self._line + lines,
            ) from None
        self._bytes += len(chunk)
        self._ended = not chunk
        self._text = self._text[self._used :] + text
        self._used = 0

    def _fail(self, found: str, expected: str, *, row: int) -> NoReturn:
        raise DataError(
            "malformed rows",
            where=place(str(self._path), row=row, line=self._line),
            found=found,
            expected=expected,
        )


def malformed(
    path: Path, text: str, error: Exception, *, row: int, line: int, column: str | None = None
) -> DataError:
    """The error for a text that is not strict JSON.

    `column` is the column of the text, if the text is not a whole row.
    """
    expected = "a JSON object" if column is None else "a JSON value"
    try:
        value = json.loads(text)
    except json.JSONDecodeError as explained:
        found = _describe(explained, text)
    except RecursionError:
        found = "objects nested too deeply"
    except ValueError as unread:
        found = str(unread).partition(":")[0]
    else:
        found = str(error)
        unwritable = _unwritable(value, column)
        if unwritable:
            column, found = unwritable
            expected = "a finite number, null or text in UTF-8"
    return DataError(
        "malformed JSON",
        where=place(str(path), row=row, line=line, column=column),
        found=found,
        expected=expected,
    )


def _describe(error: json.JSONDecodeError, text: str) -> str:
    near = text[error.pos : error.pos + 20].rstrip("\r\n")
    return f"{error.msg.removesuffix(' at')} at {preview(near) if near else 'the end'}"


def _unwritable(value: Any, column: str | None = None) -> tuple[str | None, str] | None:
    """The top-level key and the kind of a value that Python's decoder accepts but JSON forbids."""
    if isinstance(value, dict):
        parts = (_unwritable(one, column or str(key)) for key, one in value.items())
        return next((part for part in parts if part), None)
    if isinstance(value, list):
        return next((part for one in value if (part := _unwritable(one, column))), None)
    if isinstance(value, float) and math.isnan(value):
        return column, "NaN"
    if isinstance(value, float) and math.isinf(value):
        return column, "Infinity, or a number too large for a float"
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        return column, f"half of a surrogate pair in {preview(value)}"
    return None


def read_entries(path: Path, *, names: tuple[str, str]) -> Rows:
    """Line number, and key and value under these two names, of each entry of a file's object.

    Entries are read one at a time; all keys are held in memory to find repeated ones.
    """
    start = _start(path)
    first, _, rest = start.partition(b"\n")
    if start[:1] == b"[":
        found = "an array"
    elif start[:1] != b"{":
        found = f"a file that begins with {preview(start[:1].decode('utf-8', 'replace'))}"
    elif first.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{"):
        found = "one object a line"
    else:
        return Walk(path, names).rows()
    key, held = names
    raise DataError(
        "the file of this table must hold one JSON object, whose entries are the rows",
        where=str(path),
        found=found,
        expected=f'{{"KEY": VALUE, …}}, where each key is a {key} and its value the {held}',
    )
