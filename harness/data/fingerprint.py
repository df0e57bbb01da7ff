"""What was read, as a hash; and whether it is still what it was."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from harness.base.errors import DataError
from harness.base.hashing import digest


class Stamp(msgspec.Struct, frozen=True):
    """What shows that a file was changed without reading it again."""

    size: int
    modified_ns: int


def stamp_of(path: Path) -> Stamp:
    """The stamp of a file as it is now."""
    try:
        status = path.stat()
    except OSError as error:
        raise DataError(
            "the file cannot be read", where=str(path), found=error.strerror or str(error)
        ) from error
    return Stamp(status.st_size, status.st_mtime_ns)


def check_unchanged(path: Path, stamp: Stamp) -> None:
    """Raise DataError when a file is no longer what it was when the run opened it."""
    now = stamp_of(path)
    if now != stamp:
        raise DataError(
            "the file changed while the run was using it",
            where=str(path),
            found=f"{now.size} bytes, changed since it was opened with {stamp.size} bytes",
            expected="data that stays as it is until the run has ended",
            hint="run again; copy the file first if something else is still writing it",
        )


def sha256_of(path: Path, stamp: Stamp) -> str:
    """The SHA-256 of a file's bytes, as `sha256sum` prints it; refused if the file changed."""
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


def combined(parts: list[str]) -> str:
    """One fingerprint of several, in their order."""
    return digest(parts)
