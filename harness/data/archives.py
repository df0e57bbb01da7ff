"""Archives that were downloaded: zip, tar, and single packed files."""

from __future__ import annotations

import gzip
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, cast

from harness.base.errors import DataError
from harness.data.opening import CHUNK, unpacked
from harness.runs.atomic_files import storage_error

TARS = (".tar", ".tar.gz", ".tgz", ".tar.zst")
PACKED = (".gz", ".zst")

_DAMAGES = (zipfile.BadZipFile, tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError)
_UNREADABLE = RuntimeError
"""What `zipfile` raises for a password and, as a subclass, for an unknown compression."""


def is_archive(name: str) -> bool:
    """Whether a file of this name is unpacked."""
    return name.lower().endswith((".zip", *TARS, *PACKED))


def unpack(archive: Path, folder: Path, *, option: str) -> None:
    """Unpack an archive, by the end of its name, into a folder that exists.

    DataError for a damaged one, and for members that are links or devices or would lie outside.
    StorageError if a file cannot be written; `option` is what chose the place.
    """
    name = archive.name.lower()
    try:
        if name.endswith(".zip"):
            _unpack_zip(archive, folder, option)
        elif name.endswith(TARS):
            _unpack_tar(archive, folder, option)
        else:
            with unpacked(archive) as packed:
                _write(packed, folder / archive.stem, option)
    except (*_DAMAGES, _UNREADABLE) as error:
        raise DataError(
            "the archive cannot be unpacked",
            where=str(archive),
            found=str(error) or type(error).__name__,
            expected="a whole archive of the format that its name says, without a password",
        ) from error


def _unpack_zip(archive: Path, folder: Path, option: str) -> None:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            place = _inside(archive, folder, member.filename)
            if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refused(archive, member.filename, "a link or a device")
            if not member.is_dir():
                with opened.open(member) as packed:
                    _write(packed, place, option)


def _unpack_tar(archive: Path, folder: Path, option: str) -> None:
    with _tar_stream(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as opened:
        for member in opened:
            place = _inside(archive, folder, member.name)
            if not (member.isreg() or member.isdir()):
                raise _refused(archive, member.name, "a link or a device")
            packed = opened.extractfile(member)
            if packed is not None:
                _write(packed, place, option)


@contextmanager
def _tar_stream(archive: Path) -> Iterator[IO[bytes]]:
    if archive.suffix.lower() == ".tgz":
        with gzip.open(archive) as stream:
            yield cast(IO[bytes], stream)
    else:
        with unpacked(archive) as stream:
            yield stream


def _inside(archive: Path, folder: Path, member: str) -> Path:
    """The place of a member in the folder; DataError for a place outside it."""
    parts = PurePosixPath(member).parts
    if member.startswith("/") or ".." in parts or "\\" in member or re.match("[A-Za-z]:", member):
        raise _refused(archive, member, "a name that leads out of the folder of the archive")
    return folder.joinpath(*parts)


def _refused(archive: Path, member: str, why: str) -> DataError:
    return DataError(
        "the archive is refused: nothing of it is unpacked",
        where=str(archive),
        found=f"the member {member!r}, {why}",
        expected="ordinary files with names inside the archive's folder",
        hint="look at the archive before you trust it; then unpack it yourself and give the folder "
        "with --data DIR",
    )


def _write(packed: IO[bytes], place: Path, option: str) -> None:
    """Write a file; only its own errors become a StorageError, not those of reading."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        written = place.open("wb", buffering=0)
    except OSError as error:
        raise storage_error(place, error, option=option) from error
    with written:
        while chunk := memoryview(packed.read(CHUNK)):
            try:
                while chunk:
                    chunk = chunk[written.write(chunk) :]
            except OSError as error:
                raise storage_error(place, error, option=option) from error
