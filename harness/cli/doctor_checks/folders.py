"""Looks at the places that a run writes to: can they be written, and is there space?"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.calls.network_fs import network_type
from harness.contracts.finding import Finding, bad, doubtful, good

GIB = 1024**3
LITTLE = 1 * GIB
"""Free space below which a long run may not end."""
TOO_LITTLE = GIB // 20
"""Free space below which no run is begun with good reason."""


def folder(about: str, path: Path, *, option: str) -> Iterator[Finding]:
    """Whether a folder, or the one in which it would be made, can be written and has space.

    `option` names another place.
    """
    there = nearest(path)
    cure = f"{option} names another place"
    shown = f"{path}" if there == path else f"{path}, which will be made"
    if not there.is_dir():
        yield bad(about, f"{path}: {there} is no folder", cure)
        return
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        yield bad(about, f"{there} cannot be written: {error.strerror}", cure)
        return
    free = shutil.disk_usage(there).free
    kind = network_type(there)
    where = f"{shown}; {free / GIB:.1f} GiB free" + (
        f"; on {kind}, over the network" if kind else ""
    )
    if free < TOO_LITTLE:
        yield bad(about, where, f"free some space, or {cure}")
    elif free < LITTLE:
        yield doubtful(about, where, f"free some space, or {cure}")
    else:
        yield good(about, where)


def nearest(path: Path) -> Path:
    """The path itself, or the innermost of the folders above it that is there."""
    path = path.expanduser().absolute()
    return next(one for one in (path, *path.parents) if one.exists())
