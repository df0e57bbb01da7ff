"""Objects and texts that are too many to hold, in a temporary file that nobody has to remove."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import numpy as np

GAP = 1 << 15
"""Texts this near each other in the file are read together."""

_encode_lines = msgspec.json.Encoder().encode_lines
_decode_lines = msgspec.json.Decoder(tuple[str, str]).decode_lines


class Spool:
    """Objects with their texts, each found again by where it begins and how long it is there.

    The file has no name, so that it is gone with the process, however that ends.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as its owner lives)

    def add(self, objects: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        """Keeps objects with their texts one after the other; how long each is in the file."""
        import numpy as np

        lines = _encode_lines(zip(objects, texts, strict=True))
        self._file.write(lines)
        # JSON has line ends between values alone.
        ends = np.flatnonzero(np.frombuffer(lines, dtype=np.uint8) == ord("\n")) + 1
        return np.diff(ends, prepend=0)

    def seal(self) -> None:
        """Ends the adding; what was added can be read."""
        self._file.flush()

    def read(self, starts: np.ndarray, sizes: np.ndarray) -> list[tuple[str, str]]:
        """Object and text at each of the places, in the order asked."""
        import numpy as np

        if not len(starts):
            return []
        order = np.argsort(starts)
        begins, ends = starts[order], (starts + sizes)[order]
        wide = np.flatnonzero(begins[1:] - ends[:-1] > GAP) + 1
        found: list[tuple[str, str]] = []
        for first, end in pairwise((0, *wide.tolist(), len(order))):
            begin = int(begins[first])
            data = os.pread(self._file.fileno(), int(ends[end - 1]) - begin, begin)
            places = zip(
                (begins[first:end] - begin).tolist(),
                (ends[first:end] - begin).tolist(),
                strict=True,
            )
            found += _decode_lines(b"".join([data[start:stop] for start, stop in places]))
        return [found[place] for place in np.argsort(order).tolist()]
