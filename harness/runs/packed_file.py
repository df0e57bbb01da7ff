"""A file of packed lines: frames of zstd that hold whole lines, and a table of the frames.

`zstdcat FILE` prints the lines: the table is a frame that readers of zstd skip.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct
from zlib import crc32

import msgspec

from harness.runs.atomic_files import atomic_writer

PACKED = ".zst"
"""What the name of a packed file has behind that of the plain one."""

_FRAME = 1 << 18
"""The bytes of lines in a frame: one is unpacked as a whole, for any line in it."""

_LEVEL = 3
_SKIPPED = 0x184D2A50
_TWO = Struct("<II")
"""The head of a frame that is skipped and its size; at the end, the table's checksum and size."""

_Table = list[tuple[int, int]]
"""The offset of each frame in the lines and its place in the file, and where both end."""


class DamagedPackedFile(Exception):
    """A packed file is not whole."""


def write_packed(path: Path, lines: Iterable[bytes]) -> None:
    """Write the lines to a packed file, which is there as a whole or not at all."""
    import zstandard

    compress = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress
    places: _Table = [(0, 0)]
    frame = bytearray()
    with atomic_writer(path) as file:

        def complete() -> None:
            file.write(compress(frame))
            places.append((places[-1][0] + len(frame), file.tell()))
            frame.clear()

        for line in lines:
            frame += line
            if len(frame) >= _FRAME:
                complete()
        complete()
        table = msgspec.json.encode(places)
        file.write(_TWO.pack(_SKIPPED, len(table) + _TWO.size))
        file.write(table + _TWO.pack(crc32(table), len(table)))


class PackedFile:
    """Reads a packed file; DamagedPackedFile where it is not whole."""

    def __init__(self, path: Path) -> None:
        import zstandard

        self._unpack = zstandard.ZstdDecompressor().decompress
        self._frame, self._number = b"", -1
        self._file = os.open(path, os.O_RDONLY)
        end = max(os.fstat(self._file).st_size - _TWO.size, 0)
        last = os.pread(self._file, _TWO.size, end)
        checksum, size = _TWO.unpack(last) if len(last) == _TWO.size else (0, end)
        table = os.pread(self._file, size, end - size) if size < end else b""
        if not table or crc32(table) != checksum:
            self.close()
            raise DamagedPackedFile("its table of frames is missing or damaged")
        self._places = msgspec.json.decode(table, type=_Table)

    def read(self, offset: int, length: int) -> bytes:
        """So many bytes of the lines, from an offset in them; they lie in one frame."""
        number = bisect_right(self._places, offset, key=lambda place: place[0]) - 1
        if number != self._number:
            self._frame, self._number = self._unpacked(number), number
        start = offset - self._places[number][0]
        return self._frame[start : start + length]

    def lines(self) -> Iterator[bytes]:
        """All lines in their order."""
        for number in range(len(self._places) - 1):
            yield from self._unpacked(number).splitlines(keepends=True)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _unpacked(self, number: int) -> bytes:
        from zstandard import ZstdError, frame_content_size

        (start, place), (end, next_place) = self._places[number : number + 2]
        frame = os.pread(self._file, next_place - place, place)
        try:
            # A damaged size may be one that no memory holds.
            if frame_content_size(frame) == end - start:
                return self._unpack(frame)
        except ZstdError as error:
            raise DamagedPackedFile(str(error)) from error
        raise DamagedPackedFile("a frame has another size than the table says")
