"""Writes files of the published layout as streams; a file appears only when it is complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import UsageError
from harness.runs.atomic_files import atomic_writer, storage_error
from harness_perrecbench.data.layout import ALWAYS, PUBLISHED

OUT = "--out"
"""The option with the folder of the files."""

RECORD = "groups.json"
"""The file with the report, in that folder."""

HISTORIES, ITEMS = ALWAYS["histories"], ALWAYS["items"]
BEHAVIOURS = "sample_behavior.json"
DRAWN = "drawn_behavior.json"
"""Behaviours that the tool drew, in place of the published list."""


def groups_file(level: str, *, held_out: bool) -> str:
    """The name of the file with the groups of a level."""
    return PUBLISHED["held_out" if held_out else "test"].format(level=level)


def folder_of(root: Path, name: str) -> Path:
    """The folder for the files of a domain, or of `all` domains."""
    return root / name / f"{name}-processed"


def check_empty(folder: Path) -> None:
    """Raise UsageError unless the folder is empty or does not exist."""
    there = [folder.name] if folder.exists() and not folder.is_dir() else []
    if folder.is_dir():
        there = sorted(path.name for path in folder.iterdir())
    if there:
        raise UsageError(
            "the folder for the groups is not empty",
            where=str(folder),
            found=", ".join(there[:5]),
            expected="--out: an empty folder, or one that does not exist yet",
        )


def write_object(file: Path, entries: Iterable[tuple[str, Any]]) -> None:
    """Write one JSON object, one entry per line."""
    _write(file, b"{", (_entry(key, value) for key, value in entries), b"}")


def write_list(file: Path, values: Iterable[Any]) -> None:
    """Write one JSON array, one value per line."""
    _write(file, b"[", map(msgspec.json.encode, values), b"]")


def _entry(key: str, value: Any) -> bytes:
    return msgspec.json.encode(key) + b": " + msgspec.json.encode(value)


def _write(file: Path, start: bytes, lines: Iterable[bytes], end: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(file.parent, error, option=OUT) from error
    with atomic_writer(file, option=OUT) as stream:
        stream.write(start)
        stream.writelines(_separated(lines))
        stream.write(end + b"\n")


def _separated(lines: Iterable[bytes]) -> Iterator[bytes]:
    for number, line in enumerate(lines):
        yield b",\n" + line if number else line
