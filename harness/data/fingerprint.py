"""Fingerprints of files, and checks that files stay unchanged."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from harness.base.errors import DataError


class Stamp(msgspec.Struct, frozen=True):
    """Size and time of a file, which show a change without reading the file."""

    size: int
    modified_ns: int


def stamp_of(path: Path) -> Stamp:
    """The current stamp of a file."""
    try:
        status = path.stat()
    except OSError as error:
        raise DataError(
            "the file cannot be read", where=str(path), found=error.strerror or str(error)
        ) from error
    return Stamp(status.st_size, status.st_mtime_ns)


def check_unchanged(path: Path, stamp: Stamp) -> None:
    """Raise DataError if a file changed since the run opened it."""
    now = stamp_of(path)
    if now != stamp:
        raise DataError(
            "the file changed while the run was using it",
            where=str(path),
            found=f"{now.size} bytes, changed since it was opened with {stamp.size} bytes",
            expected="data that does not change until the run has ended",
            hint="run again; copy the file first if another program still writes it",
        )


def sha256_of(path: Path, stamp: Stamp) -> str:
    """The SHA-256 of a file's bytes, as `sha256sum` prints it; DataError if the file changed."""
    check_unchanged(path, stamp)
    try:
        with path.open("rb") as stream:
            result = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(
            "the file cannot be read", where=str(path), found=error.strerror or str(error)
        ) from error
    check_unchanged(path, stamp)
    return result
