"""What is installed and does not change while tests run, read once."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.pipeline import resume
from harness.registry.task_catalogue import Catalogue
from harness.tasks.load import Document


@contextmanager
def read_once() -> Iterator[None]:
    """Read each task file once in this process while it is unchanged, and the commit once.

    A command reads the files of all plugins and calls git, which takes longer than a small run.
    """
    known: dict[tuple[Path, int, int, int], tuple[Document, ...]] = {}
    read = Catalogue._in_file

    def in_file(self: Catalogue, file: Path) -> tuple[Document, ...]:
        path = file.resolve()
        try:
            about = path.stat()
        except OSError:
            return read(self, file)
        key = (path, about.st_ino, about.st_mtime_ns, about.st_size)
        if key not in known:
            known[key] = read(self, file)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Catalogue, "_in_file", in_file)
        patch.setattr(resume, "_commits", functools.cache(resume._commits))
        yield
