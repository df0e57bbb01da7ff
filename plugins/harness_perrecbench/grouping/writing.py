"""The published files, each written as a stream and there only when it is whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import UsageError
from harness.runs.atomic_files import atomic_writer, storage_error
from harness_perrecbench.data.layout import ALWAYS, PUBLISHED

OUT = "--out"
"""The option that chooses where the files go."""

RECORD = "groups.json"
"""The account of what was done, in the folder that is given."""

HISTORIES, ITEMS = ALWAYS["histories"], ALWAYS["items"]
BEHAVIOURS = "sample_behavior.json"
DRAWN = "drawn_behavior.json"
"""The same drawn by us: not the list that was published."""


def groups_file(level: str, *, held_out: bool) -> str:
    """The name of the file that holds the groups of a level."""
    return PUBLISHED["held_out" if held_out else "test"].format(level=level)


def folder_of(root: Path, name: str) -> Path:
    """Where the files of a domain lie, or of `all` of them."""
    return root / name / f"{name}-processed"


def refuse_full(folder: Path) -> None:
    """Raise UsageError where something lies that would be written over or mistaken for this."""
    there = [folder.name] if folder.exists() and not folder.is_dir() else []
    if folder.is_dir():
        there = sorted(path.name for path in folder.iterdir())
    if there:
        raise UsageError(
            "the groups cannot be written there",
            where=str(folder),
            found=", ".join(there[:5]),
            expected="an empty folder, or one that does not exist yet",
        )


def write_object(file: Path, entries: Iterable[tuple[str, Any]]) -> None:
    """Writes one JSON object, an entry a line."""
    _write(file, b"{", (_entry(key, value) for key, value in entries), b"}")


def write_list(file: Path, values: Iterable[Any]) -> None:
    """Writes one JSON array, a value a line."""
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
