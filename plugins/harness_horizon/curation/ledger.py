"""What a build has finished, on disk after every part, so that a killed build continues.

<out>/manifest.json   the inputs, the options, and the finished parts with their files and counts
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import DataError, UsageError
from harness.runs.atomic_files import (
    UNFINISHED,
    atomic_write,
    make_folder,
    read_sealed,
    sealed_file,
)
from harness_horizon.curation.engine import OUT
from harness_horizon.curation.sources import Source, sha256_of

MANIFEST = "manifest.json"
FORMAT = 1
HINT = "remove the folder and build it again"


class File(msgspec.Struct, frozen=True):
    """A file that was written: its size and digest."""

    size: int
    digest: str


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A finished part: its files by their path in the folder, and what was counted."""

    files: dict[str, File] = {}
    counts: dict[str, int] = {}


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known about a build; `digest` stands for its splits when it is complete."""

    format: int = FORMAT
    crc32: str = ""
    tool: str = "horizon"
    complete: bool = False
    digest: str = ""
    options: dict[str, Any] = {}
    inputs: tuple[Source, ...] = ()
    parts: dict[str, Part] = {}
    totals: dict[str, dict[str, int]] = {}


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder, None without one; DataError if it is damaged."""
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return read_sealed(data, Manifest, path, what="manifest", version=FORMAT, hint=HINT)


def complete_manifest(folder: Path) -> Manifest:
    """The manifest of a complete build; DataError if the folder holds none."""
    manifest = read_manifest(folder)
    if manifest is None or not manifest.complete:
        raise DataError(
            "the folder holds no complete build",
            where=str(folder),
            found=f"no {MANIFEST}" if manifest is None else f"{len(manifest.parts)} finished parts",
            expected="a folder that `harness data horizon --out` wrote to its end",
        )
    return manifest


class Ledger:
    """The parts of a build that are finished.

    State: the manifest, in memory and on disk.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    def has(self, part: str) -> bool:
        """Whether a part is finished."""
        return part in self.manifest.parts

    def counts(self, part: str) -> dict[str, int]:
        """What was counted in a finished part."""
        return self.manifest.parts[part].counts

    def sums(self, stage: str) -> dict[str, int]:
        """What was counted in all parts of a stage together."""
        found: Counter[str] = Counter()
        for name, part in self.manifest.parts.items():
            if name.startswith(f"{stage}/"):
                found.update(part.counts)
        return dict(found)

    def finish(self, part: str, files: Sequence[Path], counts: Mapping[str, int]) -> None:
        """Record that a part is finished."""
        paths = (path for one in files for path in (one, *sorted(one.rglob("*"))))
        written = {str(one.relative_to(self.folder)): _file(one) for one in paths if one.is_file()}
        done = Part(files=written, counts=dict(counts))
        self._write(parts={**self.manifest.parts, part: done})

    def forget_files(self, stage: str, folder: Path) -> None:
        """Remove what a stage wrote and no later part reads; its counts are kept."""
        parts = {
            name: Part(counts=part.counts) if name.startswith(f"{stage}/") else part
            for name, part in self.manifest.parts.items()
        }
        if parts != self.manifest.parts:
            self._write(parts=parts)
        shutil.rmtree(folder, ignore_errors=True)

    def complete(self, totals: dict[str, dict[str, int]], *, without: str) -> None:
        """Record that everything is finished; files in the folder `without` are no longer there."""
        parts: dict[str, Part] = {}
        digests: dict[str, str] = {}
        for name, part in self.manifest.parts.items():
            files = {
                path: one for path, one in part.files.items() if Path(path).parts[0] != without
            }
            parts[name] = Part(files=files, counts=part.counts)
            digests |= {path: one.digest for path, one in files.items()}
        listed = "".join(f"{path} {digests[path]}\n" for path in sorted(digests))
        digest = hashlib.sha256(listed.encode()).hexdigest()
        self._write(complete=True, parts=parts, totals=totals, digest=digest)

    def _write(self, **changes: Any) -> None:
        self.manifest = msgspec.structs.replace(self.manifest, **changes)
        write_manifest(self.folder, self.manifest)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest with its checksum."""
    values = msgspec.to_builtins(manifest)
    del values["crc32"]
    atomic_write(folder / MANIFEST, sealed_file(values), option=OUT)


def opened(
    folder: Path, before: Manifest | None, *, options: dict[str, Any], inputs: tuple[Source, ...]
) -> Ledger:
    """The ledger of a folder, new or as it was left.

    UsageError if it was begun with other inputs or options, with what differs; DataError if a
    finished file was changed.
    """
    if before is None:
        ledger = Ledger(folder, Manifest(options=options, inputs=inputs))
        write_manifest(folder, ledger.manifest)
        return ledger
    were = before.options
    differs = [f"{name}: {options.get(name)} instead of {were.get(name)}"
               for name in {**were, **options} if were.get(name) != options.get(name)]  # fmt: skip
    differs += _other_inputs(before.inputs, inputs)
    if differs:
        raise UsageError(
            "the folder was begun with other inputs or options",
            where=str(folder),
            found="\n      ".join(differs),
            expected=f"the inputs and options of {MANIFEST}, or another folder ({OUT})",
        )
    check_files(folder, before)
    return Ledger(folder, msgspec.structs.replace(before, inputs=inputs))


def check_files(folder: Path, manifest: Manifest, *only: str) -> None:
    """Raise DataError if a finished file, or one of those named, is gone or was changed."""
    for part in manifest.parts.values():
        for path, file in part.files.items():
            there = folder / path
            size = there.stat().st_size if there.is_file() else None
            if (not only or path in only) and (size != file.size or _file(there) != file):
                raise DataError(
                    "a finished file is gone or was changed",
                    where=str(there),
                    found="no such file" if size is None else f"{size:,} bytes",
                    expected=f"{file.size:,} bytes of the digest in {MANIFEST}",
                    hint=HINT,
                )


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; UsageError if another process holds it."""
    make_folder(folder, option=OUT)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                "another process builds in this folder", where=str(folder), hint="wait for its end"
            ) from None
        yield


def check_usable(folder: Path, before: Manifest | None, *, what: str = "the histories") -> None:
    """Raise UsageError if a folder for something, without a manifest, holds other things."""
    there = sorted(one.name for one in folder.iterdir() if one.name not in (".lock", "spill"))
    there = [one for one in there if not one.endswith(UNFINISHED)]
    if before is None and there:
        raise UsageError(
            f"the folder for {what} is not empty",
            where=str(folder),
            found=", ".join(there[:5]),
            expected=f"{OUT}: an empty folder, one that does not exist yet, or one that this tool "
            "left unfinished",
        )


def _file(path: Path) -> File:
    return File(size=path.stat().st_size, digest=sha256_of(path))


def _other_inputs(before: tuple[Source, ...], now: tuple[Source, ...]) -> Iterator[str]:
    was, are = ({(one.kind, one.file): one for one in each} for each in (before, now))
    for key in {**was, **are}:
        old, new = was.get(key), are.get(key)
        name = " ".join(key)
        if old is None:
            yield f"{name}: is new"
        elif new is None:
            yield f"{name}: is gone"
        elif old.digest != new.digest:
            yield f"{name}: {new.size:,} bytes with another content, instead of {old.size:,} bytes"
