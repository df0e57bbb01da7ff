"""One file from the web, which `pooch` fetches; a broken download continues where it stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from harness.base.errors import Unavailable
from harness.base.redaction import without_query
from harness.data.download_errors import FOLDER, refused, unreachable, unsized

TIMEOUT = (15, 60)
"""Seconds to wait for a connection, and for the next bytes."""

PAUSE = 2.0
"""Seconds before a further attempt; twice as long before each later one without progress."""

ATTEMPTS = 3
"""How many attempts in a row may bring nothing."""

CHUNK = 1 << 16
"""The bytes that are read at once; of a broken download, the last ones are lost."""

Watched = Callable[[int, int | None], None]
"""Is called with the bytes so far and with the size if known; raises to end the download."""


class WebFile:
    """A download of `address` into the file `part`, whose validator is kept next to it.

    `checked` says that a digest will show whether the file is whole.
    """

    def __init__(self, address: str, part: Path, watch: Watched, *, checked: bool) -> None:
        self._address = address
        self._shown = without_query(address)
        self._part = part
        self._validator = part.with_name(f"{part.name}.validator")
        self._watch = watch
        self._checked = checked
        self._written = 0
        self._total: int | None = None
        self._file: BinaryIO

    def fetch(self) -> None:
        """Fetch the whole file; Unavailable if the server refuses it or cannot be reached."""
        from requests import RequestException

        idle = 0
        while True:
            before = self._written
            try:
                return self._attempt()
            except (RequestException, ConnectionError, TimeoutError) as error:
                status = getattr(getattr(error, "response", None), "status_code", 0)
                if status == 416:  # no such range
                    self._part.unlink()
                elif 400 <= status < 500 and status not in (408, 429):
                    raise refused(self._shown, status) from error
                idle = 0 if self._written > before else idle + 1
                if idle == ATTEMPTS:
                    raise unreachable(self._shown, error) from error
                time.sleep(PAUSE * 2 ** max(idle - 1, 0))

    def _attempt(self) -> None:
        import pooch  # type: ignore[import-untyped]

        headers = {"Accept-Encoding": "identity"}
        known = self._validator.read_text() if self._validator.exists() else ""
        with self._part.open("ab", buffering=0) as self._file:
            self._written = self._file.tell()
            if self._written and known:
                headers |= {"Range": f"bytes={self._written}-", "If-Range": known}
            get = pooch.HTTPDownloader(
                headers=headers, hooks={"response": self._answered}, timeout=TIMEOUT,
                chunk_size=CHUNK,
            )  # fmt: skip
            get(self._address, self, None)
            os.fsync(self._file.fileno())
        if self._total is not None and self._written != self._total:
            raise ConnectionError(f"{self._written:,} of {self._total:,} bytes came")

    def _answered(self, response: Any, **_: Any) -> None:
        """Look at an answer before its bytes are read: are they the rest, or all from the start?"""
        if response.is_redirect or response.status_code >= 400:
            return
        if response.status_code not in (200, 206):
            raise refused(self._shown, response.status_code)
        headers = response.headers
        rest = str(headers.get("content-range", "")).startswith(f"bytes {self._written}-")
        if response.status_code != 206 or not rest:
            self._file.truncate(0)
            self._written = 0
            # A strong ETag or the date shows that a file is still the same.
            tag = str(headers.get("etag", ""))
            strong = tag if tag.startswith('"') else str(headers.get("last-modified", ""))
            self._validator.write_text(strong)
        if response.status_code == 206 and not rest:
            raise ConnectionError("the server sent another part of the file")
        # Some servers call a .gz file an encoding of its content: it is kept as it lies there.
        response.raw.headers.pop("content-encoding", None)
        if str(headers.get("content-type", "")).startswith("text/html"):
            raise Unavailable(
                "the server sent a web page in place of the file",
                where=self._shown,
                hint="open the address in a browser and do what the page asks for; then " + FOLDER,
            )
        lengths = {one.strip() for one in str(headers.get("content-length", "")).split(",")} - {""}
        chunked = "chunked" in str(headers.get("transfer-encoding", "")).lower()
        if not all(map(str.isdecimal, lengths)) or len(lengths) > 1:
            raise unsized(self._shown, ", ".join(sorted(lengths)))
        if not (lengths or chunked or self._checked):
            raise unsized(self._shown, None)
        self._total = None
        for length in lengths:
            headers["content-length"] = length  # `pooch` reads it too
            self._total = self._written + int(length)
        self._watch(self._written, self._total)

    def write(self, chunk: bytes) -> None:
        """Keep the next bytes; `pooch` calls this."""
        view = memoryview(chunk)
        while view:
            view = view[self._file.write(view) :]
        self._written += len(chunk)
        self._watch(self._written, self._total)

    def flush(self) -> None:
        """Do nothing: every chunk is written at once."""
