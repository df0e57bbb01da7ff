"""Objects and texts that are too many to hold, in a temporary file that nobody has to remove."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence

GAP = 1 << 15
"""Texts this near each other in the file are read together."""


class Spool:
    """Objects with their texts, each found again by where it begins and how long it is there.

    The file has no name, so that it is gone with the process, however that ends.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as its owner lives)

    def add(self, objects: Sequence[str], texts: Sequence[str]) -> list[int]:
        """Keeps objects with their texts one after the other; how long each is in the file."""
        records = [
            f"{len(thing)}:{thing}{text}".encode()
            for thing, text in zip(objects, texts, strict=True)
        ]
        self._file.write(b"".join(records))
        return [len(record) for record in records]

    def seal(self) -> None:
        """Ends the adding; what was added can be read."""
        self._file.flush()

    def read(self, starts: Sequence[int], sizes: Sequence[int]) -> list[tuple[str, str]]:
        """Object and text at each of the places, in the order asked."""
        found = [("", "")] * len(starts)
        for run in _runs(starts, sizes):
            first = starts[run[0]]
            end = max(starts[place] + sizes[place] for place in run)
            data = os.pread(self._file.fileno(), end - first, first)
            for place in run:
                begin = starts[place] - first
                size, _, rest = data[begin : begin + sizes[place]].decode().partition(":")
                cut = int(size)
                found[place] = rest[:cut], rest[cut:]
        return found


def _runs(starts: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """The places in groups without wide gaps, each from its first in the file on."""
    run: list[int] = []
    end = 0
    for place in sorted(range(len(starts)), key=starts.__getitem__):
        if run and starts[place] - end > GAP:
            yield run
            run = []
        run.append(place)
        end = starts[place] + sizes[place]
    if run:
        yield run
