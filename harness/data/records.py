"""What a file holds before it has types: its bytes, whole and unpacked, records of text, objects of
JSON."""

from __future__ import annotations

import codecs
import csv
import functools
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from harness.base.errors import DataError
from harness.data.wording import first_line, join_names, kind_of, nearest, place, preview

if TYPE_CHECKING:
    from harness.contracts.task import DelimitedSpec

CHUNK = 1 << 18
PACKINGS = {".gz": "gzip", ".zst": "zstd"}
"""How a file is packed, by the end of its name."""
BOM = b"\xef\xbb\xbf"

LONGEST_FIELD = 1 << 28
"""The longest field in characters; the default of 131,072 is too short for a history in a cell."""

MOST_WHOLE = 100_000_000
"""The bytes of the largest JSON document that is held whole; a larger one is walked through."""

STAND_IN = "\ufdd0"
"""The character in place of a delimiter of several characters while quoted cells are read: one that
Unicode keeps free of any meaning in text."""

_CSV_PROBLEMS = (
    (
        "new-line character",
        "a cell without quotes contains a carriage return",
        "lines that end in LF or CRLF, and quotes around cells that hold line ends",
        "old Macintosh files end lines with CR only: convert the line ends",
    ),
    (
        "unexpected end of data",
        "a quoted cell is never closed",
        'a closing " before the end of the file',
        "the quote was opened in this row",
    ),
    (
        "expected after",
        "a quoted cell continues after its closing quote",
        'a quoted cell in which each " is doubled, and one " closes it',
        None,
    ),
)
"""What `csv` says, and the problem, what is expected and what to do in our words."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_KNOWN_STARTS = (
    (b"\x1f\x8b", "gzip", "name it with .gz at the end"),
    (b"\x28\xb5\x2f\xfd", "zstd", "name it with .zst at the end"),
    (b"PAR1", "Parquet", "name it with .parquet at the end"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "unpack it, or export it as CSV"),
    *((mark, "UTF-16 text", "save it as UTF-8") for mark in _UTF16),
    (BOM, "UTF-8 text", "take `encoding` out of the table's `delimited`"),
)
_NOT_LATIN = re.compile(rb"[\x00\x80-\x9f]|[\xc2-\xf4][\x80-\xbf]")
"""Bytes of control characters, or of a character in UTF-8: what no text in Latin-1 holds."""

_BARE_RETURN = re.compile(r"\r(?!\n|$)")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_LONGEST_ESCAPE = 12
_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Stamp(msgspec.Struct, frozen=True):
    """Size and time of a file, which show a change without reading the file."""

    size: int
    modified_ns: int


def stamp_of(path: Path) -> Stamp:
    """The current stamp of a file."""
    try:
        status = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    return Stamp(status.st_size, status.st_mtime_ns)


def check_unchanged(path: Path, stamp: Stamp) -> None:
    """Raise DataError if a file changed since the run opened it."""
    now = stamp_of(path)
    if now != stamp:
        raise DataError(
            "the file changed while the run was using it",
            where=str(path),
            found=f"{now.size} bytes, changed since it was opened with {stamp.size} bytes",
            expected="data that does not change until the run has ended",
            hint="run again; copy the file first if another program still writes it",
        )


def sha256_of(path: Path, stamp: Stamp) -> str:
    """The SHA-256 of a file's bytes, as `sha256sum` prints it; DataError if the file changed."""
    check_unchanged(path, stamp)
    try:
        with path.open("rb") as stream:
            result = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error
    check_unchanged(path, stamp)
    return result


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError("the file cannot be read", where=str(path), found=error.strerror or str(error))


@contextmanager
def unpacked(path: Path) -> Iterator[Any]:
    """The bytes of a file, unpacked if its name ends in .gz, .tgz or .zst; DataError if damaged."""
    packing = {**PACKINGS, ".tgz": "gzip"}.get(path.suffix.lower())
    try:
        with path.open("rb") as stream:
            if packing is None:
                yield stream
                return
            import pyarrow as pa  # type: ignore[import-untyped]

            with io.BufferedReader(pa.CompressedInputStream(stream, packing), CHUNK) as plain:
                yield plain
    except OSError as error:
        if packing is None or error.errno is not None:
            raise _unreadable(path, error) from error
        raise damaged(str(path), packing, error) from error


def check_start(path: Path, start: bytes, *, encoding: str = "utf-8") -> None:
    """Raise DataError if the first bytes are those of a format that is no such text."""
    for magic, kind, hint in _KNOWN_STARTS:
        if start.startswith(magic) and not (magic == BOM and encoding == "utf-8"):
            unlike = "the task's `encoding`" if magic == BOM else "its name"
            raise DataError(
                f"the file is {kind}, unlike {unlike}",
                where=str(path),
                found=f"first bytes {start[: len(magic)]!r}",
                expected=f"{encoding.upper()} text",
                hint=hint,
            )


def empty_file(path: Path) -> DataError:
    """The error for an empty file."""
    return DataError(
        "the file is empty", where=str(path), found="0 rows", expected="at least one row"
    )


def damaged(where: str, kind: str, error: Exception) -> DataError:
    """The error for a file that is not whole, or not of its format, for which a reader took it."""
    return DataError(
        f"the file cannot be read as {kind}",
        where=where,
        found=first_line(error),
        expected="a whole file of this format",
        hint="fetch or write it again; it may be cut off, or have the wrong extension",
    )


@functools.lru_cache(maxsize=256)
def look_at(path: Path, stamp: Stamp, written: DelimitedSpec) -> tuple[str, bool]:
    """The encoding of a text file, and whether each of its lines is a row and nothing is quoted.

    Text that is not UTF-8 is in Latin-1 if nothing in it says otherwise, and UTF-16 is known by its
    first bytes; DataError if the encoding is neither the task's nor clear.
    """
    encoding, utf8 = written.encoding, written.encoding == "utf-8"
    plain = utf8 and written.surplus == "error" and path.suffix.lower() not in PACKINGS
    odd, refused, offset, line = False, None, 0, 1
    with unpacked(path) as stream:
        start = stream.peek(4)
        if start.startswith(_UTF16):
            return "utf-16", False
        check_start(path, start, encoding=encoding)
        plain = plain and start.removeprefix(BOM)[:1] != b"\n"
        while chunk := stream.read(CHUNK) + stream.readline():
            # A chunk of whole lines is long if one of them is, for which DuckDB may have no room.
            plain = plain and b"\r" not in chunk and len(chunk) < 2 * CHUNK
            plain = plain and not (written.quotes and b'"' in chunk)
            try:
                if refused is None:
                    chunk.decode(encoding)
                    odd = odd or not chunk.isascii()
            except UnicodeDecodeError as error:
                at = error.start
                odd = odd or error.reason == "unexpected end of data"
                refused = DataError(
                    f"the text is not {encoding.upper()}",
                    where=place(str(path), line=line + chunk.count(b"\n", 0, at)),
                    found=f"byte 0x{chunk[at]:02x} at offset {offset + at}",
                    expected=f"{encoding.upper()}, or Latin-1 without control characters",
                    hint="write the file again as UTF-8, or name its `encoding` in the task; "
                    "older exports are often Windows-1252",
                )
            odd = odd or (refused is not None and bool(_NOT_LATIN.search(chunk)))
            offset += len(chunk)
            line += chunk.count(b"\n")
    if refused is None:
        return "utf-8-sig" if utf8 else encoding, plain
    if odd or not utf8:
        raise refused
    return "iso-8859-1", False


def records(
    path: Path, stamp: Stamp, written: DelimitedSpec, delimiter: str, *, width: int | None = None
) -> Iterator[list[str]]:
    """The cells of each row of a text file, without blank lines, each of so many cells.

    Quoting follows RFC 4180: a quote that is not closed, or that is followed by anything except a
    delimiter, is an error. Only a line feed ends a line. Without a `width`, rows may have any
    number of cells, and a header line is the first.
    """
    encoding, _ = look_at(path, stamp, written)
    row = bool(written.header) - 1
    try:
        with unpacked(path) as stream:
            lines: Iterable[str] = io.TextIOWrapper(stream, encoding, newline="\n")
            if written.bare_returns == "space":
                lines = (_BARE_RETURN.sub(" ", line) if "\r" in line else line for line in lines)
            for cells in filter(None, _cells(path, lines, written, delimiter)):
                row += 1
                if len(cells) != width and width is not None:
                    if len(cells) < width or written.surplus == "error":
                        more = "more" if len(cells) > width else "fewer"
                        raise DataError(
                            f"the row has {more} cells than the header has columns",
                            where=place(str(path), row=row),
                            found=f"{len(cells)} cells, the last of which is {preview(cells[-1])}",
                            expected=f"{width} cells, separated by {delimiter!r}",
                        )
                    cells[width - 1 :] = [delimiter.join(cells[width - 1 :])]
                if row or width is None:
                    yield cells
    except csv.Error as error:
        problem, expected, hint = next(
            (told for said, *told in _CSV_PROBLEMS if said in str(error)),
            (f"the row cannot be read ({error})", "CSV as RFC 4180 describes it", None),
        )
        where = place(str(path), row=row + 1) if row >= 0 else place(str(path), line=1)
        raise DataError(str(problem), where=where, expected=expected, hint=hint) from error
    except UnicodeDecodeError as error:  # of UTF-16, which `look_at` does not read through
        raise damaged(str(path), "UTF-16 text", error) from None


def _cells(
    path: Path, lines: Iterable[str], written: DelimitedSpec, delimiter: str
) -> Iterator[list[str]]:
    if not written.quotes:
        texts = (line.rstrip("\r\n") for line in lines)
        return (text.split(delimiter) if text else [] for text in texts)
    if csv.field_size_limit() < LONGEST_FIELD:
        csv.field_size_limit(LONGEST_FIELD)
    if len(delimiter) == 1:
        return csv.reader(lines, delimiter=delimiter, strict=True)

    def replaced() -> Iterator[str]:
        for number, line in enumerate(lines, 1):
            if STAND_IN in line:
                raise DataError(
                    "the text holds a character that no text should hold",
                    where=place(str(path), line=number),
                    found="U+FDD0, which Unicode reserves for use inside programs",
                    expected="text without it, or `quotes: false` in the task's `delimited`",
                )
            yield line.replace(delimiter, STAND_IN)

    read = csv.reader(replaced(), delimiter=STAND_IN, strict=True)
    return ([cell.replace(STAND_IN, delimiter) for cell in cells] for cells in read)


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The object of each line; blank lines skipped."""
    row = 0
    with unpacked(path) as stream:
        check_start(path, stream.peek(4))
        for number, line in enumerate(stream):
            text = line if number else line.removeprefix(BOM)
            if not text.isspace():
                row += 1
                yield _object(path, _decoded(path, text, row), row)


def json_rows(
    path: Path, *, entries: tuple[str, str] | None, keys: tuple[str, ...] | None
) -> Iterator[dict[str, Any]]:
    """Each object of an array, entry of an object, or object that stands under the keys in one.

    An entry is a row with its key and its value under the two names. Files called .json often hold
    one object a line; without entries or keys, these are read as such.
    """
    with unpacked(path) as stream:
        text = stream.read(CHUNK)
        check_start(path, text)
        if text.startswith(BOM):
            text = b"   " + text.removeprefix(BOM)  # so that bytes and lines count as in the file
        first, _, rest = text.lstrip().partition(b"\n")
        if not first:
            raise empty_file(path)
        in_lines = first.rstrip()[-1:] == b"}" and rest.lstrip()[:1] == b"{"
        known = {b"[": "an array", b"{": "one object a line" if in_lines else "one object"}
        other = f"a file that begins with {preview(first[:1].decode('utf-8', 'replace'))}"
        found = known.get(first[:1], other)
        wanted = "an array" if entries is None and keys is None else "one object"
        if wanted == "an array" and first[:1] == b"{":
            yield from json_lines(path)
            return
        if found != wanted:
            raise DataError(
                "the file has no rows",
                where=str(path),
                found=found,
                expected="an array of objects, or one object a line"
                if wanted == "an array"
                else "one JSON object with the rows in it",
            )
        text += stream.read(max(MOST_WHOLE - len(text) + 1, 0))
    values = _whole if len(text) <= MOST_WHOLE else _walked
    for row, (key, value) in enumerate(values(path, text, entries, keys), 1):
        yield _object(path, value, row) if entries is None else {entries[0]: key, entries[1]: value}


def _whole(
    path: Path, text: bytes, entries: tuple[str, str] | None, keys: tuple[str, ...] | None
) -> Iterator[tuple[str, Any]]:
    """The keys and values of the rows of a document that is held whole."""
    rows: Iterable[tuple[str, Any]]
    held: Any = msgspec.Raw(text)
    try:
        for key in keys or ():
            inside = _members(path, held)
            if key not in inside:
                raise _nothing_there(path, keys or (), key, inside)
            held = inside[key]
        if entries is not None:
            rows = _members(path, held).items()
        elif keys is not None and bytes(held).lstrip()[:1] == b"{":
            rows = [("", held)]
        else:
            rows = [("", raw) for raw in msgspec.json.decode(held, type=list[msgspec.Raw])]
    except _UNREADABLE as error:
        at = re.search(r"\(byte (\d+)\)", str(error))
        line = text.count(b"\n", 0, int(at[1])) + 1 if at else None
        raise damaged(place(str(path), line=line), "JSON", error) from None
    for row, (key, raw) in enumerate(rows, 1):
        yield key, _decoded(path, raw, row, entries and entries[1])


def _walked(
    path: Path, _text: bytes, entries: tuple[str, str] | None, keys: tuple[str, ...] | None
) -> Iterator[tuple[str, Any]]:
    """The same of a document that is too large to be held whole."""
    import ijson  # type: ignore[import-untyped]

    try:
        with unpacked(path) as stream:
            source: Any = ijson.from_iter(_pieces(path, stream))
            if entries is not None:
                met: set[str] = set()
                for key, value in ijson.kvitems(source, "", use_float=True):
                    if key in met:
                        raise _twice(str(path), key)
                    met.add(key)
                    yield key, value
                return
            item = "item"
            if keys is not None:
                item = f"{'.'.join(keys)}.item"
                source = _inside(path, ijson.parse(source, use_float=True), keys)
            for value in ijson.items(source, item, use_float=True):
                yield "", value
    except ijson.JSONError as error:
        raise damaged(str(path), "JSON", error) from None


def _pieces(path: Path, stream: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a file for ijson, which would replace half of a surrogate pair silently."""
    piece = stream.read(CHUNK).removeprefix(BOM)
    while piece:
        while b"\\" in piece[-_LONGEST_ESCAPE:] and (more := stream.read(64)):
            piece += more
        if b"\\u" in piece and any(one["half"] for one in _ESCAPE.finditer(piece)):
            raise DataError(
                "malformed JSON",
                where=str(path),
                found="half of a surrogate pair",
                expected="text that can be written as UTF-8",
            )
        yield piece
        piece = stream.read(CHUNK)


def _inside(
    path: Path, events: Iterable[tuple[str, str, Any]], keys: tuple[str, ...]
) -> Iterator[tuple[str, str, Any]]:
    """The events, with a single value under these keys as if it were the item of a list there."""
    target, found, alone = ".".join(keys), False, False
    for where, event, value in events:
        if where == target and event not in ("map_key", "end_map", "end_array"):
            if found:
                raise _twice(str(path), target)
            found, alone = True, event != "start_array"
        yield f"{target}.item" if alone and where == target else where, event, value
    if not found:
        raise _nothing_there(path, keys, keys[0], ())


def _nothing_there(
    path: Path, keys: tuple[str, ...], key: str, there: Collection[str]
) -> DataError:
    near = nearest(key, there)
    return DataError(
        f"the file has no {'.'.join(keys)}, under which the task expects the rows",
        where=str(path),
        found=f"an object with {join_names(there)}" if there else None,
        expected="one JSON object with a list of objects there, or one object",
        hint=f"'{near}' is the nearest name" if near else None,
    )


def _members(path: Path, text: Any) -> dict[str, msgspec.Raw]:
    """The values of an object by their keys, not decoded."""
    members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    if (key := _repeated(bytes(text), members)) is not None:
        raise _twice(str(path), key)
    return members


def _repeated(text: bytes, value: Any) -> str | None:
    """A key that an object in a text has twice; of its value a decoder takes the last only.

    Such a text has more colons than the value has keys, or than it has written again.
    """
    colons = text.count(b":")
    if colons == (len(value) if isinstance(value, dict) else 0):
        return None
    with suppress(OverflowError):  # an integer of more than 64 bits cannot be written
        if colons == _encode(value).count(b":") and b"\\u003" not in text:
            return None
    twice: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        most = Counter(name for name, _ in pairs).most_common(1)
        twice.extend(name for name, times in most if times > 1)

    json.loads(text, object_pairs_hook=look)
    return twice[0] if twice else None


def _twice(where: str, key: str) -> DataError:
    return DataError(
        "a key occurs twice", where=where, found=preview(key), expected="each key once"
    )


def _decoded(path: Path, text: Any, row: int, column: str | None = None) -> Any:
    """The value of a row, or of the column in it, in strict JSON."""
    try:
        value = _decode(text)
        if (key := _repeated(bytes(text), value)) is not None:
            raise _twice(place(str(path), row=row, column=column), key)
    except _UNREADABLE as error:
        where = column or _unwritable(bytes(text))
        raise DataError(
            "malformed JSON",
            where=place(str(path), row=row, column=where),
            found=first_line(error),
            expected="a finite number, null or text in UTF-8" if where else "a JSON object",
            hint="a whole file of one object is read with `rows_at` or `entries` in the task"
            if row == 1 and where is None and "truncated" in str(error)
            else None,
        ) from None
    return value


def _object(path: Path, value: Any, row: int) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise DataError(
        "the row is not an object",
        where=place(str(path), row=row),
        found=f"a JSON {kind_of(value)}: {preview(value)}",
        expected='one JSON object, such as {"user": "u1"}',
    )


def _unwritable(text: bytes) -> str | None:
    """The column of a value that Python's decoder takes and JSON forbids, if there is one."""
    with suppress(ValueError, RecursionError, AttributeError):
        for column, value in json.loads(text).items():
            try:
                _decode(json.dumps(value))
            except _UNREADABLE:
                return str(column)
    return None
