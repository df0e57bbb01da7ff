"""The file that the lines of a journal go to."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from harness.base.errors import StorageError
from harness.runs.atomic_files import storage_error, sync_folder
from harness.runs.journal_index import cut_torn_tail


class JournalFile:
    """A file to which one process appends lines. `broken` says why it takes none any more.

    Opening cuts off the line that a crash left unfinished. A `new` file must not exist, and is
    removed if it is closed without a line, unless it is `kept`. `size` is where the next line
    begins.
    """

    def __init__(self, path: Path, *, new: bool = False, kept: bool = False) -> None:
        self.path = path
        self.broken: StorageError | None = None
        self._removed = new and not kept
        self._descriptor: int | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | (os.O_EXCL if new else 0)
            self._descriptor = os.open(path, flags, 0o666)
            cut_torn_tail(self._descriptor)
            self.size = os.fstat(self._descriptor).st_size
        except OSError as error:
            self._release()
            if new and path.exists():
                raise StorageError(
                    "another process wrote this part of a journal",
                    where=str(path),
                    expected="a new file",
                    hint="repeat the same command: it continues where it stopped",
                ) from error
            raise storage_error(path, error) from error

    def write(self, lines: bytes | bytearray) -> None:
        """Append whole lines; what a failure leaves of them is cut off."""
        assert self._descriptor is not None, "the file is closed"
        try:
            with memoryview(lines) as view:
                written = 0
                while written < len(view):
                    written += os.write(self._descriptor, view[written:])
            self.size += written
        except OSError as error:
            self.broken = storage_error(self.path, error)
            # Best effort: the next process that opens the journal cuts a half line too.
            with suppress(OSError):
                os.ftruncate(self._descriptor, self.size)

    def sync(self) -> None:
        """Write the lines durably to disk."""
        try:
            if self._descriptor is not None:
                os.fsync(self._descriptor)
        except OSError as error:
            self.broken = storage_error(self.path, error)

    def close(self) -> None:
        """Write the lines durably to disk; a second call does nothing."""
        if self._descriptor is None:
            return
        try:
            if self.broken is None:
                os.fsync(self._descriptor)
                if self._removed and self.size == 0:
                    self.path.unlink(missing_ok=True)
                sync_folder(self.path.parent)
        except OSError as error:
            self.broken = storage_error(self.path, error)
        finally:
            self._release()

    def _release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
