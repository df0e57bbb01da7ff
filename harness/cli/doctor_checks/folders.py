"""Checks of the folders that a run writes to: are they writable, and is there space?"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.base.home import expanded
from harness.calls.network_fs import network_type
from harness.contracts.finding import Finding, bad, doubtful, good

GIB = 1024**3
LITTLE = 1 * GIB
"""Below this free space, a long run may not finish."""
TOO_LITTLE = GIB // 20
"""Below this free space, no run should be started."""


def folder(about: str, path: Path, *, option: str) -> Iterator[Finding]:
    """Whether the folder, or the folder in which it would be created, is writable and has space.

    `option` is the option that names another folder.
    """
    existing = nearest(path)
    advice = f"{option} names another folder"
    shown = f"{path}" if existing == path else f"{path}, which will be created"
    if not existing.is_dir():
        yield bad(about, f"{path}: {existing} is not a folder", advice)
        return
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        yield bad(about, f"{existing} cannot be written: {error.strerror}", advice)
        return
    free = shutil.disk_usage(existing).free
    kind = network_type(existing)
    where = f"{shown}; {free / GIB:.1f} GiB free" + (
        f"; on {kind}, over the network" if kind else ""
    )
    if free < TOO_LITTLE:
        yield bad(about, where, f"free some space, or {advice}")
    elif free < LITTLE:
        yield doubtful(about, where, f"free some space, or {advice}")
    else:
        yield good(about, where)


def nearest(path: Path) -> Path:
    """The path itself, or the nearest folder above it that exists."""
    path = expanded(path).absolute()
    return next(one for one in (path, *path.parents) if one.exists())
