"""Large JSON files, written as their values come: one value or entry per line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from harness.runs.atomic_files import atomic_writer, make_folder


def write_list(file: Path, values: Iterable[Any], *, option: str) -> None:
    """Write one JSON array, one value per line, as the values come."""
    _write_lines(file, b"[", map(msgspec.json.encode, values), b"]", option=option)


def write_object(file: Path, entries: Iterable[tuple[str, Any]], *, option: str) -> None:
    """Write one JSON object, one entry per line, as the entries come."""
    encode = msgspec.json.encode
    lines = (encode(key) + b": " + encode(value) for key, value in entries)
    _write_lines(file, b"{", lines, b"}", option=option)


def _write_lines(
    file: Path, start: bytes, lines: Iterable[bytes], end: bytes, *, option: str
) -> None:
    make_folder(file.parent, option=option)
    with atomic_writer(file, option=option) as stream:
        stream.write(start)
        for number, line in enumerate(lines):
            stream.write(b",\n" + line if number else line)
        stream.write(end + b"\n")
