"""The unpacked bytes and lines of a file; damage is an error."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from harness.base.errors import DataError
from harness.data.wording import place

if TYPE_CHECKING:
    from harness.contracts.task import Encoding

CHUNK = 1 << 18
BOM = b"\xef\xbb\xbf"

_KNOWN_STARTS = (
    (b"\x1f\x8b", "gzip", "name it with .gz at the end"),
    (b"\x28\xb5\x2f\xfd", "zstd", "name it with .zst at the end"),
    (b"PAR1", "Parquet", "name it with .parquet at the end"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "unpack it, or export it as CSV"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
)


class ZstdFrames(io.RawIOBase):
    """The unpacked bytes of a zstd file of any number of frames; a cut-off last frame raises.

    The library's own reader ends without an error if a file was cut off, which would turn a broken
    download into a smaller data set.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._packed = b""
        self._ready = b""
        self._frame: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        import zstandard

        while not self._ready:
            if not self._packed:
                self._packed = self._stream.read(CHUNK)
                if not self._packed:
                    if self._frame is not None:
                        raise EOFError("the file ends in the middle of a frame")
                    return 0
            if self._frame is None:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._ready = self._frame.decompress(self._packed)
            self._packed = b""
            if self._frame.eof:
                self._packed = self._frame.unused_data
                self._frame = None
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if its name ends in .gz or .zst; DataError if damaged."""
    packing = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix.lower())
    try:
        with path.open("rb") as stream:
            if packing == "gzip":
                with io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=stream))) as plain:
                    yield plain
            elif packing == "zstd":
                with io.BufferedReader(ZstdFrames(stream), CHUNK) as plain:
                    yield plain
            else:
                yield stream
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise _damaged(path, packing, error) from error
    except OSError as error:
        raise DataError(
            "the file cannot be read", where=str(path), found=error.strerror or str(error)
        ) from error
    except Exception as error:
        if packing == "zstd" and type(error).__name__ == "ZstdError":
            raise _damaged(path, packing, error) from error
        raise


def _damaged(path: Path, packing: str | None, error: Exception) -> DataError:
    return DataError(
        f"the file cannot be unpacked as {packing}",
        where=str(path),
        found=str(error),
        expected=f"a whole {packing} file",
        hint="fetch or pack it again; it may be cut off, or have the wrong extension",
    )


def text_lines(path: Path, *, encoding: Encoding = "utf-8") -> Iterator[bytes]:
    """The lines of a text file as checked bytes, with their ends, without a byte order mark.

    Only a line feed ends a line; a carriage return is kept. Any byte is valid in ISO-8859-1, but a
    file with the byte order mark of UTF-8 is in UTF-8.
    """
    one_byte = encoding == "iso-8859-1"
    with unpacked(path) as stream:
        offset = 0
        for number, raw in enumerate(stream, 1):
            line = raw
            if number == 1:
                check_start(path, raw, expected=f"{encoding.upper()} text")
                if raw.startswith(BOM):
                    if one_byte:
                        raise DataError(
                            "the file is UTF-8 text, unlike the task's `encoding`",
                            where=str(path),
                            found=f"first bytes {BOM!r}",
                            expected="ISO-8859-1 text",
                            hint="take `encoding` out of the table's `delimited`",
                        )
                    line = raw[len(BOM) :]
            if not one_byte and not line.isascii():
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    at = offset + len(raw) - len(line) + error.start
                    raise bad_utf8(path, byte=line[error.start], offset=at, line=number) from None
            offset += len(raw)
            yield line


def check_start(path: Path, start: bytes, *, expected: str = "UTF-8 text") -> None:
    """Raise DataError if the first bytes are those of a format that is no such text."""
    for magic, kind, hint in _KNOWN_STARTS:
        if start.startswith(magic):
            raise DataError(
                f"the file is {kind}, unlike its name",
                where=str(path),
                found=f"first bytes {start[: len(magic)]!r}",
                expected=expected,
                hint=hint,
            )


def bad_utf8(path: Path, *, byte: int, offset: int, line: int) -> DataError:
    """The error for a byte that is not UTF-8; `offset` counts unpacked bytes from 0."""
    return DataError(
        "the text is not UTF-8",
        where=place(str(path), line=line),
        found=f"byte 0x{byte:02x} at offset {offset}",
        expected="UTF-8",
        hint="write the file again as UTF-8; older exports are often Latin-1 or Windows-1252",
    )


def empty_file(path: Path) -> DataError:
    """The error for an empty file."""
    return DataError(
        "the file is empty", where=str(path), found="0 rows", expected="at least one row"
    )
