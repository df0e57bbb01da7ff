"""Files of requests for an engine that answers files, such as a batch service."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from harness.runs.atomic_files import RUNS, make_folder, storage_error

MOST_LINES, MOST_BYTES = 50_000, 100_000_000
"""The most requests in a file, and the most bytes."""

_encode = msgspec.json.Encoder().encode


class RequestWriter:
    """Writes requests to the file `path`, set before the first, until it is full or all came.

    `finished` then gives the file, which is on disk, another name; it gets the `keys` of the
    requests, and the address of all of them. `option` chose the folder, for errors.
    """

    def __init__(self, finished: Callable[[list[str], str], None], *, option: str = RUNS) -> None:
        self.path = Path()
        self.keys: list[str] = []
        self._finished, self._option = finished, option
        self._endpoint = ""
        self._file: BinaryIO | None = None

    def add(self, key: str, line: Mapping[str, Any]) -> None:
        """Add a request under the key of its call."""
        text = _encode({"custom_id": key, **line}) + b"\n"
        if self._file is not None:
            size = self._file.tell() + len(text)
            if len(self.keys) == MOST_LINES or size > MOST_BYTES:
                self.complete()
        try:
            if self._file is None:
                make_folder(self.path.parent, option=self._option)
                self._file, self._endpoint = self.path.open("wb"), str(line["url"])
            self._file.write(text)
        except OSError as error:
            raise storage_error(self.path.parent, error, option=self._option) from error
        self.keys.append(key)

    def complete(self) -> None:
        """Finish the open file, if there is one."""
        if self._file is None:
            return
        file, self._file = self._file, None
        keys, self.keys = self.keys, []
        try:
            with file:
                file.flush()
                os.fsync(file.fileno())
            self._finished(keys, self._endpoint)
        except OSError as error:
            raise storage_error(self.path.parent, error, option=self._option) from error

    def drop(self) -> None:
        """Remove the open file, if there is one; may be called again."""
        if self._file is not None:
            self._file.close()
            self._file, self.keys = None, []
            self.path.unlink(missing_ok=True)
