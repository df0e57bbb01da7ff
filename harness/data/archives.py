"""Archives that were downloaded: zip, tar, and single packed files."""

from __future__ import annotations

import errno
import re
import stat
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from harness.base.errors import DataError
from harness.data.records import CHUNK, PACKINGS, unpacked
from harness.runs.atomic_files import storage_error

TARS = (".tar", ".tar.gz", ".tgz", ".tar.zst")

MOST_GROWTH, ALWAYS_ROOM = 200, 1 << 26
"""How many times its own size an archive may unpack to, and the bytes that each may. Tables of text
shrink to a twentieth; some bytes made to fill a disk unpack to a million times as many."""

_BAD_NAMES = {
    errno.ENAMETOOLONG,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.EINVAL,
    errno.EILSEQ,
}
"""What a disk says of names that no room makes possible."""

_DAMAGES = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError,
    IndexError, ValueError, OverflowError,
    RuntimeError,  # of `zipfile`, for a password and, as a subclass, for an unknown compression
)  # fmt: skip


def is_archive(name: str) -> bool:
    """Whether a file of this name is unpacked."""
    return name.lower().endswith((".zip", *TARS, *PACKINGS))


def unpack(archive: Path, folder: Path, *, option: str) -> None:
    """Unpack an archive, by the end of its name, into a folder that exists.

    DataError for a damaged or empty one, for members that are links or devices or would lie
    outside, and for one that grows too much. StorageError if a file cannot be written; `option` is
    what chose the place.
    """
    most = max(ALWAYS_ROOM, MOST_GROWTH * archive.stat().st_size)
    unpacking = _Unpacking(archive, folder, option, most)
    name = archive.name.lower()
    try:
        if name.endswith(".zip"):
            unpacking.zip()
        elif name.endswith(TARS):
            unpacking.tar()
        else:
            with unpacked(archive) as packed:
                unpacking.write(packed, archive.stem)
    except (OSError, *_DAMAGES) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise DataError(
            "the archive cannot be unpacked",
            where=str(archive),
            found=str(error) or type(error).__name__,
            expected="a whole archive of the format that its name says, without a password",
        ) from error
    if not any(folder.iterdir()):
        raise unpacking.refused("no file at all")


@dataclass
class _Unpacking:
    """An archive on its way into a folder, which may still get `left` bytes."""

    archive: Path
    folder: Path
    option: str
    left: int

    def zip(self) -> None:
        with zipfile.ZipFile(self.archive) as opened:
            for member in opened.infolist():
                if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise self.refused(f"the member {member.filename!r}, a link or a device")
                if not member.is_dir():
                    with opened.open(member) as packed:
                        self.write(packed, member.filename)

    def tar(self) -> None:
        with (
            unpacked(self.archive) as stream,
            tarfile.open(fileobj=stream, mode="r|") as opened,
        ):
            for member in opened:
                if not (member.isreg() or member.isdir()) or member.issparse():
                    raise self.refused(
                        f"the member {member.name!r}, a link, a device or a file with holes"
                    )
                packed = opened.extractfile(member)
                if packed is not None:
                    self.write(packed, member.name)

    def write(self, packed: IO[bytes], member: str) -> None:
        """Write a member, which must lie inside the folder; StorageError only if writing fails."""
        parts = PurePosixPath(member).parts
        outside = member.startswith("/") or ".." in parts or "\\" in member
        if outside or re.match("[A-Za-z]:", member):
            raise self.refused(
                f"the member {member!r}, a name that leads out of the folder of the archive"
            )
        place = self.folder.joinpath(*parts)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            written = place.open("wb", buffering=0)
        except OSError as error:
            if error.errno in _BAD_NAMES:
                raise self.refused(f"the member {member[:200]!r}: {error.strerror}") from error
            raise storage_error(place, error, option=self.option) from error
        with written:
            while chunk := memoryview(packed.read(CHUNK)):
                self.left -= len(chunk)
                if self.left < 0:
                    raise self.refused(
                        f"the member {member!r}, with which it unpacks to more than {MOST_GROWTH} "
                        f"times its {self.archive.stat().st_size:,} bytes"
                    )
                try:
                    while chunk:
                        chunk = chunk[written.write(chunk) :]
                except OSError as error:
                    raise storage_error(place, error, option=self.option) from error

    def refused(self, found: str) -> DataError:
        return DataError(
            "the archive is refused: nothing of it is used",
            where=str(self.archive),
            found=found,
            expected="ordinary files with names inside the archive's folder",
            hint="look at the archive before you trust it; then unpack it yourself and give the "
            "folder with --data DIR",
        )
