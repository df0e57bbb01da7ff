"""Atomic writing of a run's files, and their decoding."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from harness.base.errors import DataError, StorageError
from harness.base.hashing import FILE, damage, sealed

T = TypeVar("T")

UNFINISHED = ".tmp"
"""How the names of incomplete files and of folders for them end; they begin with a dot."""

RUNS = "--output_path"


def storage_error(path: Path, error: OSError, *, option: str = RUNS) -> StorageError:
    """The error for a file that could not be written, with what to do.

    `option` is the option that chose the file's folder.
    """
    resumes = ": it continues where it stopped" if option == RUNS else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        hint = f"free some space, then repeat the same command{resumes}"
    elif error.errno in (errno.EMFILE, errno.ENFILE):
        hint = f"allow more open files (ulimit -n), then repeat the same command{resumes}"
    elif error.errno == errno.ENOENT:
        hint = f"its folder was removed: repeat the same command, or choose another with {option}"
    else:
        hint = f"make the folder writable, or choose another with {option}"
    return StorageError(
        "cannot write", where=str(path), found=error.strerror or str(error), hint=hint
    )


def make_folder(folder: Path, *, option: str = RUNS) -> None:
    """Make a folder and its parents unless it exists; StorageError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(folder, error, option=option) from error


@contextmanager
def atomic_writer(path: Path, *, option: str = RUNS) -> Iterator[BinaryIO]:
    """A binary file that replaces `path` if the block succeeds, and is deleted otherwise.

    It is written in the folder of `path`, so that the last step is a rename in one file system.
    `option` is the option that chose the folder, for the error.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{UNFINISHED}")
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
    """Replace the content of `path` by `data`, atomically and durably."""
    with atomic_writer(path, option=option) as file:
        file.write(data)


def remove_unfinished(folder: Path) -> None:
    """Delete what killed processes left unfinished in a folder and in the folders in it."""
    for pattern in (f".*{UNFINISHED}", f"*/.*{UNFINISHED}", f"batches/*/.*{UNFINISHED}"):
        for left in folder.glob(pattern):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                with suppress(OSError):
                    left.unlink()


def sealed_file(values: dict[str, Any]) -> bytes:
    """The content of a file of the harness with a checksum, indented for people."""
    return sealed(msgspec.json.format(msgspec.json.encode(values), indent=2) + b"\n", FILE)


class _Format(msgspec.Struct):
    format: int = 0


def read_sealed(
    data: bytes, kind: type[T], path: Path, *, what: str, version: int, hint: str, oldest: int = 1
) -> T:
    """The value in a file with a format and a checksum; DataError if either is not as expected.

    Formats from the `oldest` to this `version` are read.
    """
    wrong = damage(data, FILE)
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        found = msgspec.json.decode(data, type=_Format).format
        if not oldest <= found <= version:
            wrong = f"format {found}"
    if wrong is not None:
        raise DataError(
            f"this {what} cannot be read",
            where=str(path),
            found=wrong,
            expected=f"a {what} of format {version}",
            hint=hint,
        )
    return decode_file(data, kind, path, what=what, version=version, hint=hint)


def decode_file(data: bytes, kind: type[T], path: Path, *, what: str, version: int, hint: str) -> T:
    """The value in a file of the harness; DataError if it cannot be decoded."""
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
    """Make new names in a folder durable, if its file system can do that."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
