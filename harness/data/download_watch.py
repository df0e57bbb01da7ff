"""Shows how a download goes on, and ends one that must not be made."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from harness.base.errors import StorageError, UsageError
from harness.base.question import agreed
from harness.data.fetching import Fetching

LARGE = 1_000_000_000
"""The bytes above which a file is not fetched without being asked for."""

REPORT_SECONDS = 10.0


class Watch:
    """Is called with the bytes that lie in `folder`, and with the size of the file if known.

    Raises if the disk has no room, or if a large file is not agreed to; a person is asked once.
    """

    def __init__(self, address: str, folder: Path, fetching: Fetching, *, option: str) -> None:
        self._address = address
        self._folder = folder
        self._say = fetching.say
        self._allowed = fetching.download
        self._option = option
        self._sized = False
        self._reported: float | None = None

    def __call__(self, written: int, total: int | None) -> None:
        if total is not None and not self._sized:
            self._sized = True
            self._say(f"  {total:,} bytes")
            missing, free = total - written, shutil.disk_usage(self._folder).free
            if missing > free:
                raise StorageError(
                    "the disk has no room for the download",
                    where=str(self._folder),
                    found=f"{free:,} bytes free",
                    expected=f"{missing:,} bytes for {self._address}",
                    hint=f"free some space, or choose another folder with {self._option}",
                )
        if not self._allowed and (written if total is None else total) > LARGE:
            size = f"more than {LARGE:,} bytes" if total is None else f"{total:,} bytes"
            answer = agreed(f"fetch {size} from {self._address}?")
            if answer is None:
                raise UsageError(
                    "a large download must be asked for",
                    where=self._address,
                    found=size,
                    expected="--download, or local data with --data",
                )
            if not answer:
                raise UsageError(
                    "the download was refused",
                    where=self._address,
                    expected="local data with --data",
                )
            self._allowed = True
        now = time.monotonic()
        if self._reported is None:
            self._reported = now
        elif now - self._reported > REPORT_SECONDS:
            self._say(f"  {written:,}{'' if total is None else f' of {total:,}'} bytes")
            self._reported = now
