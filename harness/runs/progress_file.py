"""What a run at work says of itself to other processes, in a file of its folder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from harness.calls.pricing import Cost

PROGRESS = "progress.json"


class StageNote(msgspec.Struct, frozen=True, kw_only=True):
    """A stage that a run works at: items with a record of `total`, None while items are made."""

    task: str
    stage: str
    done: int
    total: int | None
    missing: int


class ProgressNote(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is; `at_least` if more stages follow, of a size that is still unknown.

    `cost` is what this session paid, None without prices.
    """

    stages: tuple[StageNote, ...]
    items_per_second: float | None
    seconds_left: float | None
    at_least: bool
    cost: Cost | None


def read_progress(folder: Path) -> ProgressNote | None:
    """The last note of a run at work; None if it wrote none yet."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode((folder / PROGRESS).read_bytes(), type=ProgressNote)
    return None
