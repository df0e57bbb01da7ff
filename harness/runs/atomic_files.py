"""Files of a run: written so that a reader meets the old one or the new one, and read back."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from harness.base.errors import DataError, StorageError

T = TypeVar("T")

RUNS = "--output_path"
"""The option that says where runs are kept."""


def storage_error(path: Path, error: OSError, *, option: str = RUNS) -> StorageError:
    """The error for a file that could not be written, with what to do about it.

    `option` is the one that chose the place.
    """
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if full:
        goes_on = ": it goes on where it stopped" if option == RUNS else ""
        hint = f"free some space, then give the same command again{goes_on}"
    else:
        hint = f"make the folder writable, or choose another with {option}"
    return StorageError(
        "cannot write", where=str(path), found=error.strerror or str(error), hint=hint
    )


@contextmanager
def atomic_writer(path: Path, *, option: str = RUNS) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends well, and else vanishes.

    It is written beside `path`, so that the last step is a rename within one file system.
    `option` is the one that chose the place, for the error.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise storage_error(path, error, option=option) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def atomic_write(path: Path, data: bytes, *, option: str = RUNS) -> None:
    """Put `data` in the place of whatever `path` holds, at once and for good."""
    with atomic_writer(path, option=option) as file:
        file.write(data)


def decode_file(data: bytes, kind: type[T], path: Path, *, what: str, version: int, hint: str) -> T:
    """The value that a file of ours holds; DataError where it cannot be understood."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(
            f"this {what} cannot be read",
            where=str(path),
            found=str(error),
            expected=f"a {what} of format {version}",
            hint=hint,
        ) from error


def sync_folder(folder: Path) -> None:
    """Make new names in a folder last; file systems that cannot do that are left to themselves."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
