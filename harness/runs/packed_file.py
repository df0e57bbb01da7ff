"""A file of packed lines: frames of zstd that hold whole lines, and a table of the frames.

`zstdcat FILE` prints the lines: the table is a frame that readers of zstd skip.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from zlib import crc32

from harness.runs.atomic_files import atomic_writer

PACKED = ".zst"
"""What the name of a packed file has behind that of the plain one."""

_FRAME = 1 << 18
"""The bytes of lines in a frame: one is unpacked as a whole, for any line in it."""

_LEVEL = 3
_SKIPPED, _TABLE = 0x184D2A50, struct.Struct("<II")
_ENTRY, _END = struct.Struct("<QQ"), struct.Struct("<QI4s")
_MARK = b"hpck"


class DamagedPackedFile(Exception):
    """A packed file is not whole."""


def write_packed(path: Path, lines: Iterable[bytes]) -> None:
    """Write the lines to a packed file, which is there as a whole or not at all."""
    import zstandard

    compress = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress
    table, start = bytearray(), 0
    with atomic_writer(path) as file:
        for frame in _frames(lines):
            table += _ENTRY.pack(start, file.tell())
            file.write(compress(frame))
            start += len(frame)
        table += _ENTRY.pack(start, file.tell())
        file.write(_TABLE.pack(_SKIPPED, len(table) + _END.size))
        file.write(table)
        file.write(_END.pack(len(table), crc32(table), _MARK))


def _frames(lines: Iterable[bytes]) -> Iterator[bytes]:
    frame = bytearray()
    for line in lines:
        frame += line
        if len(frame) >= _FRAME:
            yield bytes(frame)
            frame.clear()
    if frame:
        yield bytes(frame)


class PackedFile:
    """Reads a packed file; DamagedPackedFile where it is not whole."""

    def __init__(self, path: Path) -> None:
        import zstandard

        self._file = os.open(path, os.O_RDONLY)
        self._unpack = zstandard.ZstdDecompressor().decompress
        self._frame, self._number = b"", -1
        end = os.fstat(self._file).st_size - _END.size
        try:
            size, checksum, mark = _END.unpack(os.pread(self._file, _END.size, end))
            table = os.pread(self._file, min(size, end), end - size)
            whole = mark == _MARK and crc32(table) == checksum
        except (struct.error, OSError, OverflowError):
            whole = False
        if not whole:
            self.close()
            raise DamagedPackedFile("its table of frames is missing or damaged")
        entries = [*_ENTRY.iter_unpack(table)]
        self._starts = [start for start, _ in entries]
        self._places = [*pairwise(place for _, place in entries)]

    def read(self, offset: int, length: int) -> bytes:
        """So many bytes of the lines, from an offset in them; they lie in one frame."""
        number = bisect_right(self._starts, offset) - 1
        if number != self._number:
            self._frame, self._number = self._unpacked(number), number
        start = offset - self._starts[number]
        return self._frame[start : start + length]

    def lines(self) -> Iterator[bytes]:
        """All lines in their order."""
        for number in range(len(self._places)):
            yield from self._unpacked(number).splitlines(keepends=True)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _unpacked(self, number: int) -> bytes:
        from zstandard import ZstdError, frame_content_size

        place, end = self._places[number]
        frame = os.pread(self._file, end - place, place)
        try:
            # A damaged size may be one that no memory holds.
            if frame_content_size(frame) != self._starts[number + 1] - self._starts[number]:
                raise DamagedPackedFile("a frame has another size than the table says")
            return self._unpack(frame)
        except ZstdError as error:
            raise DamagedPackedFile(str(error)) from error
