"""A file of requests for an engine that answers files, such as a batch service."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

MOST_LINES, MOST_BYTES = 50_000, 100_000_000
"""The most requests in a file, and the most bytes."""

_encode = msgspec.json.Encoder().encode


class RequestFile:
    """A file that is being written; the `keys` of its requests, and the address of all of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.keys: list[str] = []
        self.endpoint = ""
        self._file = path.open("wb")

    def add(self, key: str, line: Mapping[str, Any]) -> bool:
        """Add a request under the key of its call; False if the file is full."""
        text = _encode({"custom_id": key, **line}) + b"\n"
        full = len(self.keys) == MOST_LINES or self._file.tell() + len(text) > MOST_BYTES
        if full and self.keys:
            return False
        self._file.write(text)
        self.keys.append(key)
        self.endpoint = self.endpoint or str(line["url"])
        return True

    def finish(self) -> None:
        """Close the file; it is on disk then."""
        with self._file as file:
            file.flush()
            os.fsync(file.fileno())

    def drop(self) -> None:
        """Remove the file."""
        self._file.close()
        self.path.unlink(missing_ok=True)
