"""The files of a stage's journal: `1-name.jsonl`, then its parts `1-name.0001.jsonl`, and so on.

Each worker on a cluster writes a part of its own, to which nothing else appends. The numbers of
parts only rise, so the first file and then the parts by number are in the order of time.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Generic, Self, TypeVar

_DIGITS = 4
_MOST_DIGITS = 6

FILE_SPAN = 1 << 40
"""A line's place in a journal is its offset plus so much for each number up to its part's."""

_OPEN = 16
"""Files of a journal that are open at a time. Lines are mostly read part by part."""


def part_path(path: Path, number: int) -> Path:
    """The path of a journal's part; number 0 is the journal's first file, `path` itself."""
    if not 0 <= number < 10**_MOST_DIGITS:
        raise ValueError(f"a journal has no part {number}")
    return path.with_name(f"{path.stem}.{number:0{_DIGITS}}{path.suffix}") if number else path


def part_numbers(path: Path) -> list[int]:
    """The numbers of a journal's existing files in the order of time; 0 is the first file."""
    try:
        names = [file.name for file in path.parent.iterdir()]
    except FileNotFoundError:
        return []
    start, end = f"{path.stem}.", path.suffix
    found = [0] if path.name in names else []
    for name in names:
        if name.startswith(start) and name.endswith(end):
            digits = name[len(start) : len(name) - len(end)]
            if _is_number(digits):
                found.append(int(digits))
    return sorted(found)


def journal_parts(path: Path) -> list[Path]:
    """The existing files of a journal in the order of time; the last line of a key is current."""
    return [part_path(path, number) for number in part_numbers(path)]


def next_part(path: Path) -> int:
    """The number of a journal's next part: one more than the highest, and at least 1."""
    return max(part_numbers(path), default=0) + 1


def named_like_part(stage: str) -> bool:
    """Whether the journal of a stage with this name would be taken for a part of another."""
    _, dot, end = stage.rpartition(".")
    return bool(dot) and _is_number(end)


def _is_number(digits: str) -> bool:
    """Whether these are the digits of a part's number, as `part_path` writes them."""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        return False
    return int(digits) > 0 and f"{int(digits):0{_DIGITS}}" == digits


def file_at(path: Path, place: int) -> tuple[Path, int]:
    """The file of a journal's line at a place, and the line's offset in this file."""
    number, offset = divmod(place, FILE_SPAN)
    return part_path(path, number), offset


FileT = TypeVar("FileT")


class _OpenFiles(ABC, Generic[FileT]):
    """The open files of a journal, which are opened when a line of theirs is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[int, FileT] = {}
        self._start = -FILE_SPAN
        self._file: FileT

    @abstractmethod
    def _opened(self, path: Path) -> FileT: ...

    @abstractmethod
    def _close(self, file: FileT) -> None: ...

    def _turn_to(self, place: int) -> int:
        """Make the file with this place the one that is read; returns the offset in it."""
        number, offset = divmod(place, FILE_SPAN)
        if number not in self._files:
            if len(self._files) >= _OPEN:
                self._close(self._files.pop(next(iter(self._files))))
            self._files[number] = self._opened(part_path(self._path, number))
        self._file, self._start = self._files[number], place - offset
        return offset

    def close(self) -> None:
        """Close all files; reading opens them again."""
        self._start = -FILE_SPAN
        while self._files:
            self._close(self._files.popitem()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class JournalFiles(_OpenFiles[int]):
    """Reads lines of a journal by their places."""

    def read(self, place: int, length: int) -> bytes:
        """The line at a place."""
        offset = place - self._start
        if not 0 <= offset < FILE_SPAN:
            offset = self._turn_to(place)
        return os.pread(self._file, length, offset)

    def _opened(self, path: Path) -> int:
        return os.open(path, os.O_RDONLY)

    def _close(self, file: int) -> None:
        os.close(file)


class MappedJournalFiles(_OpenFiles[mmap]):
    """Reads lines of a journal by their places from memory that holds the files' pages."""

    def read(self, place: int, length: int) -> bytes:
        """The line at a place."""
        offset = place - self._start
        if not 0 <= offset < FILE_SPAN:
            offset = self._turn_to(place)
        return self._file[offset : offset + length]

    def _opened(self, path: Path) -> mmap:
        with path.open("rb") as file:
            return mmap(file.fileno(), 0, access=ACCESS_READ)

    def _close(self, file: mmap) -> None:
        file.close()
