"""Rows of a file that is one JSON object: an entry a row, its key and its value the columns."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from harness.data.json_rows import Rows, Walk
from harness.data.opening import BOM, CHUNK, check_start, empty_file, unpacked
from harness.data.wording import place, shown
from harness.errors import DataError


def read_entries(path: Path, *, names: tuple[str, str]) -> Rows:
    """Line number, and key and value under these two names, of each entry of a file's object.

    Entries are read one at a time; their keys are held, for no key may stand twice.
    """
    with unpacked(path) as stream:
        start = stream.read(CHUNK).removeprefix(BOM).lstrip()
    check_start(path, start)
    if not start:
        raise empty_file(path)
    if start[:1] == b"[":
        raise _no_object(path, names, "an array")
    if start[:1] != b"{":
        raise _no_object(
            path, names, f"a file that begins with {shown(start[:1].decode('utf-8', 'replace'))}"
        )
    first, _, rest = start.partition(b"\n")
    if first.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{"):
        raise _no_object(path, names, "one object a line")
    return _Entries(path, names).rows()


class _Entries(Walk):
    """The walk over the entries of one object; the keys that it met are its state too."""

    whole = "object"
    close = "}"

    def __init__(self, path: Path, names: tuple[str, str]) -> None:
        super().__init__(path)
        self._key, self._held = names
        self._met: set[str] = set()

    def _row(self, stream: IO[bytes], row: int) -> dict[str, Any]:
        mark = self._text[self._used]
        if mark != '"':
            self._refuse(f"an entry that begins with {mark!r}", "a key in quotes", row=row)
        line = self._line
        key = self._value(stream, row, column=self._key)
        if key in self._met:
            raise DataError(
                "a key stands twice",
                where=place(str(self._path), row=row, line=line, column=self._key),
                found=shown(key),
                expected="each key once",
            )
        self._met.add(key)
        mark = self._next_mark(stream, row, inside=True)
        if mark != ":":
            self._refuse(f"{mark!r} follows a key", "a colon", row=row)
        self._take(1)
        self._next_mark(stream, row, inside=True)
        return {self._key: key, self._held: self._value(stream, row, column=self._held)}


def _no_object(path: Path, names: tuple[str, str], found: str) -> DataError:
    key, held = names
    return DataError(
        "the rows of this table are the entries of one JSON object",
        where=str(path),
        found=found,
        expected=f'{{"KEY": VALUE, …}}, where each key is a {key} and its value the {held}',
    )
