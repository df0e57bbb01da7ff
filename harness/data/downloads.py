"""Files and archives from the web and Google Drive, kept in one cache by their digests.

<downloads>/<digest>/<file name>/…   the file, or what was in the archive; always whole
<downloads>/sources/<address>.json   the digest that was first seen of an address
<downloads>/unfinished/<address>/    what a broken download continues with, and a whole one
                                     for which the disk has no room once it is unpacked
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import msgspec

from harness.base.errors import DataError, StorageError, Unavailable
from harness.base.hashing import digest
from harness.base.home import expanded, user_cache
from harness.base.redaction import without_query
from harness.contracts.task import DriveSpec, UrlSpec
from harness.data.download_errors import FOLDER
from harness.data.download_watch import Watch
from harness.data.fetching import Fetching
from harness.runs.atomic_files import atomic_write, make_folder, storage_error

Remote = UrlSpec | DriveSpec

VARIABLE = "HARNESS_DOWNLOADS"


class Seen(msgspec.Struct, frozen=True):
    """What came from an address: the digest of its bytes and their number."""

    address: str
    digest: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Download:
    """A downloaded file, or what was in an archive: the folder that holds it, and its digest."""

    folder: Path
    digest: str

    @property
    def place(self) -> Path:
        """The only file, or else the folder."""
        inside = list(self.folder.iterdir())
        return inside[0] if len(inside) == 1 and inside[0].is_file() else self.folder


def downloads_folder() -> Path:
    """The folder of downloads: in HARNESS_DOWNLOADS, or else in the user's cache folder."""
    own = os.environ.get(VARIABLE)
    if own:
        return expanded(own, where=VARIABLE).absolute()
    return user_cache(where="the folder of downloads") / "downloads"


def fetched(remote: Remote, *, task: str, fetching: Fetching) -> Download:
    """What is at an address, from the cache or else fetched, checked and unpacked.

    Several processes may ask for the same address at once: one fetches it.
    """
    cache = _Cache(remote)
    found = cache.kept()
    if found is not None:
        return found
    why = fetching.why_offline()
    if why is not None:
        looked = f"looked in {downloads_folder()}"
        if not fetching.look:
            looked = f"nothing was fetched, because {why}; {looked}"
        raise Unavailable(
            f"task '{task}' needs the file '{file_name(remote)}', which is not in the cache",
            where=cache.address,
            found=looked,
            expected=f"the file with {remote.digest}"
            if remote.digest
            else "the file; no digest is stated",
            hint=f"`harness data fetch {task}` where there is a network, into the same folder; or "
            "give the folder of the data with --data DIR",
        )
    with locked(cache.lock, f"another process fetches {cache.address}", fetching.say):
        return cache.kept() or cache.fetch(fetching)


class _Cache:
    """The part of the cache for one address."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self.address = without_query(remote.address)
        self._root = downloads_folder()
        self._key = digest(self._remote.address)
        self._name = file_name(remote)
        self._seen = self._root / "sources" / f"{self._key}.json"
        self.lock = self._seen.with_suffix(".lock")
        self._work = self._root / "unfinished" / self._key

    def kept(self) -> Download | None:
        known = self._known()
        folder = None if known is None else self._folder(known)
        if known is None or folder is None or not folder.is_dir():
            return None
        return Download(folder=folder, digest=known)

    def fetch(self, fetching: Fetching) -> Download:
        """Fetch, check and unpack; nothing is used unless all of that succeeds."""
        make_folder(self._work, option=VARIABLE)
        part, whole = self._work / self._name, self._work / ".whole"
        if not (whole.exists() and part.exists()):
            self._transfer(part, fetching)
            whole.touch()
        known = self._known()
        found = _digest_of(part, "sha256" if known is None else known.partition(":")[0])
        if known not in (None, found):
            self._forget()
            stated = self._remote.digest is not None
            before = "the task names" if stated else "was fetched from this address before"
            raise DataError(
                f"the file is not the one that {before}",
                where=self.address,
                found=found,
                expected=known,
                hint="fetch it again; if the owner publishes a new file, state its `digest` "
                "in the task's `data.sources`, or give the folder of the data with "
                "--data DIR",
            )
        seen = Seen(self.address, found, part.stat().st_size)
        folder = self._folder(found)
        self._keep(part, folder)
        make_folder(self._seen.parent, option=VARIABLE)
        atomic_write(self._seen, msgspec.json.encode(seen), option=VARIABLE)
        fetching.say(f"  fetched {seen.bytes:,} bytes with {found}, kept in {folder}")
        return Download(folder=folder, digest=found)

    def _transfer(self, part: Path, fetching: Fetching) -> None:
        from harness.data.drive_file import fetch_drive_file
        from harness.data.web_file import WebFile

        remote = self._remote
        terms = f"; terms: {remote.terms}" if remote.terms else ""
        fetching.begin(f"fetching {self.address}{terms}")
        watch = Watch(self.address, self._work, fetching, option=VARIABLE)
        try:
            if isinstance(remote, DriveSpec):
                fetch_drive_file(remote, part, watch)
            else:
                checked = self._known() is not None
                WebFile(remote.address, part, watch, checked=checked).fetch()
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                self._forget()
            raise storage_error(part, error, option=VARIABLE) from error
        if not part.stat().st_size:
            self._forget()
            raise Unavailable(
                "the server sent an empty file",
                where=self.address,
                hint=f"open the address in a browser and look at what it gives; then {FOLDER}",
            )

    def _keep(self, part: Path, folder: Path) -> None:
        """Move or unpack a whole file into its folder, which appears in one step."""
        from harness.data.archives import is_archive, unpack

        made = self._work / ".made"
        try:
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            if is_archive(self._name):
                unpack(part, made, option=VARIABLE)
            else:
                part.replace(made / self._name)
            for name, stated in self._remote.contents.items():
                parts = PurePosixPath(name).parts
                files = [one for one in made.rglob(parts[-1]) if one.parts[-len(parts) :] == parts]
                kind, many = stated.partition(":")[0], f"{len(files)} such files"
                found = _digest_of(files[0], kind) if len(files) == 1 else many
                if found != stated:
                    raise DataError(
                        f"the file '{name}' in the download is not the one that the task names",
                        where=self.address,
                        found=found,
                        expected=stated,
                        hint="correct `contents` in the task's `data.sources`, or give the data "
                        "with --data",
                    )
            folder.parent.mkdir(parents=True, exist_ok=True)
            if not folder.is_dir():  # another address may have the same file
                made.replace(folder)
        except (OSError, StorageError) as error:  # what was fetched stays until there is room
            shutil.rmtree(made, ignore_errors=True)
            if isinstance(error, OSError):
                full = storage_error(folder, error, option=VARIABLE)
            else:
                full = error
            full.hint = f"{full.hint}; what was fetched is kept, and not fetched again"
            raise full from error
        except DataError:
            self._forget()
            raise
        self._forget()

    def _forget(self) -> None:
        shutil.rmtree(self._work, ignore_errors=True)

    def _known(self) -> str | None:
        """The digest that the file must have: stated, or first seen."""
        if self._remote.digest is not None:
            return self._remote.digest
        try:
            return msgspec.json.decode(self._seen.read_bytes(), type=Seen).digest
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise DataError(
                "the digest that was first seen of a source cannot be read",
                where=str(self._seen),
                found=str(error),
                hint="remove the file; the next digest counts as the first",
            ) from error

    def _folder(self, known: str) -> Path:
        return self._root / known.replace(":", "-") / self._name


@contextmanager
def locked(path: Path, other: str, say: Callable[[str], None]) -> Iterator[None]:
    """Wait until no other process holds a lock, which `other` describes, then hold it."""
    make_folder(path.parent, option=VARIABLE)
    try:
        file = path.open("wb")
    except OSError as error:
        raise storage_error(path, error, option=VARIABLE) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{other}: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def file_name(remote: Remote) -> str:
    """The name of the file at an address: the task's, else the last part of the address."""
    last = unquote(urlsplit(remote.address).path).rpartition("/")[2]
    name = remote.name or re.sub(r"[^\w.-]", "_", last).lstrip(".")
    if not name:
        raise DataError(
            "the address of the data does not end with the name of a file",
            where=without_query(remote.address),
            expected="`url.name` with the file's name in the task's `data.sources`",
        )
    return name


def _digest_of(file: Path, kind: str) -> str:
    import pooch  # type: ignore[import-untyped]

    return f"{kind}:{pooch.file_hash(file, alg=kind)}"
