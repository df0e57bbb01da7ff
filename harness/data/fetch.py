"""Files and archives from the web and Google Drive, kept in one cache by their digests.

<downloads>/<digest>/<file name>/…   the file, or what was in the archive; always whole
<downloads>/sources/<address>.json   the digest that was first seen of an address
<downloads>/unfinished/<address>/    what a broken download continues with, and a whole one
                                     for which the disk has no room once it is unpacked

`requests` fetches from the web, `gdown` from Google Drive. Archives are zip, tar, and single packed
files.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import msgspec

from harness.base.errors import DataError, HarnessError, StorageError, Unavailable, UsageError
from harness.base.hashing import digest
from harness.base.home import expanded, user_cache
from harness.base.question import agreed
from harness.base.redaction import without_query
from harness.contracts.task import DriveSpec, UrlSpec
from harness.data import records
from harness.data.records import PACKINGS, unpacked
from harness.runs.atomic_files import atomic_write, make_folder, storage_error

if TYPE_CHECKING:
    from harness.contracts.task import BuildSpec

Remote = UrlSpec | DriveSpec

VARIABLE = "HARNESS_DOWNLOADS"
OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")

LARGE = 1_000_000_000
"""The bytes above which a file is not fetched without being asked for."""

REPORT_SECONDS = 10.0

TIMEOUT = (15, 60)
"""Seconds to wait for a connection, and for the next bytes."""

PAUSE = 2.0
"""Seconds before a further attempt; twice as long before each later one without progress."""

ATTEMPTS = 3
"""How many attempts in a row may bring nothing."""

CHUNK = 1 << 16
"""The bytes that are read at once; of a broken download, the last ones are lost."""

_FOLDER = "give the folder that holds the file, unpacked, with --data DIR"


class NotKept(HarnessError):
    """Data would be fetched or built."""


@dataclass(frozen=True, kw_only=True)
class BuildTool:
    """A data tool with all its options, except its inputs and its folder.

    `run` writes the data into a folder that does not exist yet, from the files of each input, and
    calls its last argument with what is done. If it `continues`, it completes a folder that it left
    unfinished.
    """

    plugin: str
    options: Mapping[str, Any]
    run: Callable[[Mapping[str, Sequence[Path]], Path, Callable[..., None]], None]
    continues: bool = False


@dataclass(frozen=True, kw_only=True)
class Fetching:
    """What may be fetched: nothing if `offline`, large files unasked with `download`.

    `say` shows a line. `tools` finds the data tools that build data; with `look`, none is built.
    With `stop`, NotKept is raised where something would be fetched or built.

    State: `failed` holds why downloads could not be had, so that several tasks try each once.
    """

    offline: bool = False
    download: bool = False
    look: bool = False
    stop: bool = False
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)
    tools: Callable[[BuildSpec], BuildTool] | None = None
    failed: dict[bytes, Unavailable] = field(default_factory=dict)

    def begin(self, line: str) -> None:
        """Show what is fetched or built now."""
        if self.stop:
            raise NotKept(line)
        self.say(line)

    def why_offline(self) -> str | None:
        """What turns the network off, as it follows `because`; None if nothing does."""
        if self.offline:
            return "of --offline"
        true = {"1", "true", "yes", "on"}
        variable = next((one for one in OFFLINE if os.environ.get(one, "").lower() in true), None)
        return None if variable is None else f"{variable} is set"


@dataclass(kw_only=True)
class Watch:
    """Shows the progress of a download, and ends one that has no room or is not agreed to.

    It is called with the bytes that lie in `folder`, and with the size of the file if known. It
    raises if the disk has no room, or if a large file is not agreed to; a person is asked once.
    """

    address: str
    folder: Path
    fetching: Fetching
    option: str
    _sized: bool = False
    _agreed: bool = False
    _reported: float | None = None

    def __call__(self, written: int, total: int | None) -> None:
        if total is not None and not self._sized:
            self._sized = True
            self.fetching.say(f"  {total:,} bytes")
            missing, free = total - written, shutil.disk_usage(self.folder).free
            if missing > free:
                raise StorageError(
                    "the disk has no room for the download",
                    where=str(self.folder),
                    found=f"{free:,} bytes free",
                    expected=f"{missing:,} bytes for {self.address}",
                    hint=f"free some space, or choose another folder with {self.option}",
                )
        if (
            not (self.fetching.download or self._agreed)
            and (written if total is None else total) > LARGE
        ):
            self._ask(f"more than {LARGE:,} bytes" if total is None else f"{total:,} bytes")
        now = time.monotonic()
        if self._reported is None:
            self._reported = now
        elif now - self._reported > REPORT_SECONDS:
            self.fetching.say(f"  {written:,}{'' if total is None else f' of {total:,}'} bytes")
            self._reported = now

    def _ask(self, size: str) -> None:
        self._agreed = bool(answer := agreed(f"fetch {size} from {self.address}?"))
        if not self._agreed:
            unasked = "a large download must be asked for"
            raise UsageError(
                unasked if answer is None else "the download was refused",
                where=self.address,
                found=size,
                expected="--download, or local data with --data",
            )


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
    cache = _Cache(remote, fetching)
    found = cache.find()
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
        return cache.find() or cache.fetch()


class _Cache:
    """The part of the cache for one address."""

    def __init__(self, remote: Remote, fetching: Fetching) -> None:
        self._remote = remote
        self._fetching = fetching
        self.address = without_query(remote.address)
        self._root = downloads_folder()
        key = digest(remote.address)
        self._name = file_name(remote)
        self._seen = self._root / "sources" / f"{key}.json"
        self.lock = self._seen.with_suffix(".lock")
        self._work = self._root / "unfinished" / key

    def find(self) -> Download | None:
        known = self._known_digest()
        folder = None if known is None else self._folder(known)
        if known is None or folder is None or not folder.is_dir():
            return None
        return Download(folder=folder, digest=known)

    def fetch(self) -> Download:
        """Fetch, check and unpack; nothing is used unless all of that succeeds."""
        make_folder(self._work, option=VARIABLE)
        part, whole = self._work / self._name, self._work / ".whole"
        if not (whole.exists() and part.exists()):
            self._transfer(part)
            whole.touch()
        known = self._known_digest()
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
        self._fetching.say(f"  fetched {seen.bytes:,} bytes with {found}, kept in {folder}")
        return Download(folder=folder, digest=found)

    def _transfer(self, part: Path) -> None:
        remote = self._remote
        terms = f"; terms: {remote.terms}" if remote.terms else ""
        self._fetching.begin(f"fetching {self.address}{terms}")
        watch = Watch(
            address=self.address, folder=self._work, fetching=self._fetching, option=VARIABLE
        )
        try:
            if isinstance(remote, DriveSpec):
                _fetch_from_drive(remote, part, watch)
            else:
                checked = self._known_digest() is not None
                _fetch_from_web(remote.address, part, watch, checked=checked)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                self._forget()
            raise storage_error(part, error, option=VARIABLE) from error
        if not part.stat().st_size:
            self._forget()
            raise Unavailable(
                "the server sent an empty file",
                where=self.address,
                hint=f"open the address in a browser and look at what it gives; then {_FOLDER}",
            )

    def _keep(self, part: Path, folder: Path) -> None:
        """Move or unpack a whole file into its folder, which appears in one step."""
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

    def _known_digest(self) -> str | None:
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
    with file.open("rb") as stream:
        return f"{kind}:{hashlib.file_digest(stream, kind).hexdigest()}"


def _fetch_from_web(address: str, part: Path, watch: Watch, *, checked: bool) -> None:
    """Fetch a whole file as `part`; Unavailable if the server refuses it or cannot be reached.

    It continues where it broke off. `checked` says that a digest will show whether it is whole.
    """
    from requests import RequestException

    idle = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            return _continue(address, part, watch, checked=checked)
        except (RequestException, ConnectionError, TimeoutError) as error:
            idle = 0 if part.stat().st_size > before else idle + 1
            status = getattr(getattr(error, "response", None), "status_code", 0)
            if status == 416:  # no such range
                part.unlink()
            elif 400 <= status < 500 and status not in (408, 429):
                raise _refused(watch.address, status) from error
            if idle == ATTEMPTS:
                raise _unreachable(watch.address, error) from error
            time.sleep(PAUSE * 2 ** max(idle - 1, 0))


def _continue(address: str, part: Path, watch: Watch, *, checked: bool) -> None:
    """Fetch what `part` lacks, or all if the validator next to it is none or of another file."""
    import requests

    headers = {"Accept-Encoding": "identity"}
    validator = part.with_name(f"{part.name}.validator")
    known = validator.read_text() if validator.exists() else ""
    with part.open("ab") as file:
        written = file.tell()
        if written and known:
            headers |= {"Range": f"bytes={written}-", "If-Range": known}
        with requests.get(address, headers=headers, timeout=TIMEOUT, stream=True) as answer:
            answer.raise_for_status()
            if answer.status_code not in (200, 206):
                raise _refused(watch.address, answer.status_code)
            rest = answer.headers.get("content-range", "").startswith(f"bytes {written}-")
            if answer.status_code == 200 or not rest:
                file.truncate(0)
                written = 0
                # A strong ETag or the date shows that a file is still the same.
                tag = answer.headers.get("etag", "")
                strong = tag.startswith('"')
                validator.write_text(tag if strong else answer.headers.get("last-modified", ""))
            if answer.status_code == 206 and not rest:
                raise ConnectionError("the server sent another part of the file")
            length = _length(answer.headers, watch.address, checked=checked)
            total = None if length is None else written + length
            watch(written, total)
            # Some servers call a .gz file an encoding of its content: it is kept as it lies there.
            answer.raw.headers.pop("content-encoding", None)
            for chunk in answer.iter_content(CHUNK):
                written += file.write(chunk)
                watch(written, total)
        file.flush()
        os.fsync(file.fileno())
    if total is not None and written != total:
        raise ConnectionError(f"{written:,} of {total:,} bytes came")


def _length(headers: Mapping[str, str], address: str, *, checked: bool) -> int | None:
    """The bytes that an answer will have, None if only a digest or the transfer shows its end."""
    if headers.get("content-type", "").startswith("text/html"):
        raise Unavailable(
            "the server sent a web page in place of the file",
            where=address,
            hint=f"open the address in a browser and do what the page asks for; then {_FOLDER}",
        )
    said = headers.get("content-length", "")
    lengths = sorted({one.strip() for one in said.split(",")} - {""})
    chunked = "chunked" in headers.get("transfer-encoding", "").lower()
    none = not (lengths or chunked or checked)
    if none or len(lengths) > 1 or not all(map(str.isdecimal, lengths)):
        raise Unavailable(
            "the server does not say how long the file is: a cut file would look whole",
            where=address,
            found="no Content-Length" if none else f"Content-Length: {', '.join(lengths)}",
            hint="give the file's `digest` in the task's `data.sources`; or fetch it yourself, "
            f"and {_FOLDER}",
        )
    return int(lengths[0]) if lengths else None


def _fetch_from_drive(drive: DriveSpec, part: Path, watch: Watch) -> None:
    """Fetch a whole file as `part`; Unavailable if Google Drive refuses it or cannot be reached.

    A part that an earlier command left is used only if a file that changed since then is found out:
    by its digest, or by the checksums of an archive.
    """
    import gdown
    from requests import HTTPError, RequestException

    def left() -> list[Path]:
        """What there is of the download: the library adds letters of its own to the name."""
        return [path for path in part.parent.glob(f"{part.name}*") if path.is_file()]

    if drive.digest is None and not is_archive(drive.name):
        for path in left():
            path.unlink()
    before = sum(path.stat().st_size for path in left())
    try:
        gdown.download(
            id=drive.file, output=str(part), quiet=True, use_cookies=False, resume=True,
            progress=watch, timeout=TIMEOUT, retries=ATTEMPTS,
        )  # fmt: skip
    except gdown.FileURLRetrievalError as error:
        raise _not_given(drive.address, str(error.__context__ or error)) from error
    except gdown.DownloadError as error:
        answered = not isinstance(error.__cause__, RequestException)
        if before and answered and sum(path.stat().st_size for path in left()) == before:
            for path in left():  # the server does not go on with it
                path.unlink()
            return _fetch_from_drive(drive, part, watch)
        raise _unreachable(drive.address, error) from error
    except RequestException as error:
        status = getattr(error.response, "status_code", 500)
        if isinstance(error, HTTPError) and status < 500:
            raise _refused(drive.address, status) from error
        raise _unreachable(drive.address, error) from error
    except (HarnessError, OSError):
        raise
    except Exception as error:  # a page that the library cannot read
        raise _not_given(drive.address, f"{type(error).__name__}: {error}") from error


def _refused(address: str, status: int) -> Unavailable:
    return Unavailable(
        f"the server refuses the file with status {status}",
        where=address,
        hint="open the address in a browser: the owner may want you to log in or to agree to "
        f"terms first, or the file may have moved; then {_FOLDER}",
    )


def _not_given(address: str, says: str) -> Unavailable:
    """The error for a page of Google Drive in place of the file; `says` is what it says."""
    if "quota" in says.lower() or "too many" in says.lower():
        return Unavailable(
            "Google Drive gives the file to nobody for now: too many people fetched it",
            where=address,
            found=says,
            hint="repeat the command after a day; or open the address in a browser, copy the file "
            f"into a Drive of your own, download it there, and {_FOLDER}",
        )
    return Unavailable(
        "Google Drive does not give the file to everybody",
        where=address,
        found=says,
        hint="open the address in a browser: its owner may have to share it with you, or may have "
        f"moved it; download it there and {_FOLDER}",
    )


def _unreachable(address: str, error: Exception) -> Unavailable:
    return Unavailable(
        "the file could not be fetched",
        where=address,
        found=without_query(str(error)),
        hint="repeat the command when the server can be reached: it continues where it stopped; or "
        + _FOLDER,
    )


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

    def refused(found: str) -> DataError:
        return DataError(
            "the archive is refused: nothing of it is used",
            where=str(archive),
            found=found,
            expected="ordinary files with names inside the archive's folder",
            hint="look at the archive before you trust it; then unpack it yourself and give the "
            "folder with --data DIR",
        )

    size = archive.stat().st_size
    left = max(ALWAYS_ROOM, MOST_GROWTH * size)
    try:
        for member, packed in _members(archive):
            if packed is None:
                raise refused(f"the member {member!r}, a link, a device or a file with holes")
            parts = PurePosixPath(member).parts
            outside = member.startswith("/") or ".." in parts or "\\" in member
            if outside or re.match("[A-Za-z]:", member):
                raise refused(
                    f"the member {member!r}, a name that leads out of the folder of the archive"
                )
            place = folder.joinpath(*parts)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                written = place.open("wb", buffering=0)
            except OSError as error:
                if error.errno in _BAD_NAMES:
                    raise refused(f"the member {member[:200]!r}: {error.strerror}") from error
                raise storage_error(place, error, option=option) from error
            with written:
                while chunk := memoryview(packed.read(records.CHUNK)):
                    left -= len(chunk)
                    if left < 0:
                        raise refused(
                            f"the member {member!r}, with which it unpacks to more than "
                            f"{MOST_GROWTH} times its {size:,} bytes"
                        )
                    try:
                        while chunk:
                            chunk = chunk[written.write(chunk) :]
                    except OSError as error:
                        raise storage_error(place, error, option=option) from error
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
        raise refused("no file at all")


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Name and bytes of each file in an archive; None for what is no plain file."""
    name = archive.name.lower()
    if name.endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            for entry in zipped.infolist():
                if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                    yield entry.filename, None
                elif not entry.is_dir():
                    with zipped.open(entry) as packed:
                        yield entry.filename, packed
    elif name.endswith(TARS):
        with unpacked(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tarred:
            for member in tarred:
                if member.isreg() and not member.issparse():
                    yield member.name, tarred.extractfile(member)
                elif not member.isdir():
                    yield member.name, None
    else:
        with unpacked(archive) as packed:
            yield archive.stem, packed
