"""The folder of one run: its name, its paths, and its lock, which one process holds."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.base import clock
from harness.base.errors import HarnessError, UsageError
from harness.base.hashing import digest
from harness.runs.atomic_files import remove_unfinished, storage_error
from harness.runs.journal import named_like_part
from harness.runs.manifest import Manifest, read_manifest, write_manifest
from harness.runs.progress_file import PROGRESS

_log = logging.getLogger(__name__)

_PLAIN = re.compile(r"[a-z0-9_][a-z0-9._@-]{0,79}")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")
LOCK = "lock"
ENGINES = "engines"
"""The subfolder for the logs of the servers that a run started."""

BATCHES = "batches"
"""The subfolder for the requests that were sent in batches, and for their answers."""

OWN_ANSWERS = ("answers.sqlite", "answers.sqlite-wal", "answers.sqlite-shm", "answers.sqlite.lock")
"""The file of the answers that the run got, and the files that may lie next to it."""

_TAKEN = frozenset({LOCK, ENGINES, BATCHES, "manifest.json", PROGRESS, *OWN_ANSWERS})
_NAME = re.compile(r"(?P<time>\d{8}T\d{6})-(?P<model>.*)-(?P<key>[0-9a-f]{8})(?:-(?P<again>\d+))?")


def plain_name(name: str) -> str:
    """The name of a file or folder for `name`: the same name, or a readable form with a hash.

    Different names never get the same one, even on file systems that ignore case: a changed name
    contains a `~`, and an unchanged name never does.
    """
    return name if _PLAIN.fullmatch(name) and name not in _TAKEN else _marked(name)


def _marked(name: str) -> str:
    mark = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{slug(name)}~{mark}"


def slug(name: str, *, longest: int = 60) -> str:
    """A readable form of any name in letters, digits, dots, dashes and underscores."""
    return _NOT_PLAIN.sub("-", name).strip(".-")[:longest].strip(".-") or "unnamed"


class RunFolder:
    """One run's folder. `lock` it before you write to it; its paths need not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    @classmethod
    def create(cls, output_path: Path, model: str, run_key: str) -> RunFolder:
        """A new folder named after time, model and run key, locked by this process."""
        name = f"{clock.utc():%Y%m%dT%H%M%S}-{slug(model)}-{run_key[:8]}"
        path, tries = output_path / name, 1
        while True:
            try:
                output_path.mkdir(parents=True, exist_ok=True)
                path.mkdir()
                break
            except FileExistsError as error:
                if not output_path.is_dir():
                    raise UsageError(
                        "runs cannot be stored here",
                        where=str(output_path),
                        found="a file",
                        expected="a folder: choose one with --output_path",
                    ) from error
                tries += 1
                path = output_path / f"{name}-{tries}"
            except OSError as error:
                raise storage_error(path, error) from error
        folder = cls(path)
        folder.lock()
        return folder

    @classmethod
    def find(
        cls,
        output_path: Path,
        run_key: str,
        *,
        done: bool = False,
        but: Callable[[Manifest], bool] = lambda run: False,
    ) -> RunFolder | None:
        """The newest folder of this run key with an undelivered result; the newest with `done`.

        Runs for which `but` is true do not count.
        """
        for folder in _begun(output_path, lambda name: name["key"] == run_key[:8]):
            run = folder.manifest()
            counts = done or run.status != "done" or not run.delivered
            if run.run_key == run_key and counts and not but(run):
                return folder
        return None

    @classmethod
    def find_of_model(cls, output_path: Path, model: str) -> Iterator[RunFolder]:
        """The folders of the runs of a candidate of that name, newest first."""
        return _begun(output_path, lambda name: name["model"] == slug(model))

    @property
    def manifest_file(self) -> Path:
        """The path of the run's manifest."""
        return self.path / "manifest.json"

    def manifest(self) -> Manifest:
        """The run's manifest; DataError if there is none."""
        return read_manifest(self.manifest_file)

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the run's manifest, atomically and without secrets."""
        write_manifest(self.manifest_file, manifest)

    def task(self, name: str) -> Path:
        """The folder of one task."""
        return self.path / plain_name(name)

    def journal(self, task: str, number: int, stage: str) -> Path:
        """The first file of the journal of a task's stage; stages count from 1."""
        name = _marked(stage) if named_like_part(stage) else plain_name(stage)
        return self.task(task) / f"{number}-{name}.jsonl"

    def scores(self, task: str) -> Path:
        """The file of a task's scores, one line per unit."""
        return self.task(task) / "scores.jsonl"

    def summary(self, task: str) -> Path:
        """The file of a task's summary; without this file the task is unfinished."""
        return self.task(task) / "summary.json"

    @property
    def own_answers(self) -> Path:
        """The file of the answers that the run got; there is none once its result is delivered."""
        return self.path / OWN_ANSWERS[0]

    def forget_own_answers(self) -> None:
        """Remove the file of the answers that the run got."""
        for name in OWN_ANSWERS:
            (self.path / name).unlink(missing_ok=True)

    @property
    def asked(self) -> Path:
        """The file of the keys of the questions that were written to files."""
        return self.path / BATCHES / "asked.jsonl"

    @property
    def answers(self) -> Path:
        """The answers that version 0.1 collected from batches."""
        return self.path / BATCHES / "answers.sqlite"

    def batches(self, model: object) -> Path:
        """The folder of the batches of the model with this key."""
        return self.path / BATCHES / digest(model)[:12]

    def lock(self) -> None:
        """Lock the folder for this process until `unlock` or the end of the process."""
        if self._lock is not None:
            return
        try:
            descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise storage_error(self.path / LOCK, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 4096, 0)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                os.close(descriptor)
                raise _held(self.path, holder) from error
            _log.warning("%s: this file system has no locks (%s)", self.path, error.strerror)
        try:
            me = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, me + b"\n", 0)
        except OSError as error:
            os.close(descriptor)
            raise storage_error(self.path / LOCK, error) from error
        self._lock = descriptor
        remove_unfinished(self.path)

    def at_work(self) -> bool | None:
        """Whether the last process that locked it is alive; None if it is on another machine.

        The lock is not tried, as that could stop a run that begins at the same moment.
        """
        try:
            holder = json.loads((self.path / LOCK).read_bytes())
            pid, host = int(holder["pid"]), holder["host"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        if host != socket.gethostname():
            return None
        if pid < 1:  # means several processes; no run writes it
            return False
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            return True  # another user's process
        return True

    def unlock(self) -> None:
        """Release the lock for other processes."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _begun(output_path: Path, wanted: Callable[[re.Match[str]], bool]) -> Iterator[RunFolder]:
    """The folders with such a name that have a manifest, newest first."""
    found = []
    for path in output_path.iterdir() if output_path.is_dir() else ():
        name = _NAME.fullmatch(path.name)
        if name and wanted(name):
            found.append((name["time"], int(name["again"] or 1), path))
    for _, _, path in sorted(found, reverse=True):
        folder = RunFolder(path)
        # A process that was killed before it wrote the manifest left nothing in the folder.
        if folder.manifest_file.exists():
            yield folder


def _held(path: Path, holder: bytes) -> HarnessError:
    try:
        described = json.loads(holder)
        who = f"process {described['pid']} on {described['host']}"
    except (ValueError, KeyError, TypeError):
        who = "another process"
    return HarnessError(
        "the run folder is in use",
        where=str(path),
        found=f"{who} is at work in it",
        hint="wait until it has ended, or end it; --reuse none starts a new run in its own folder",
    )
