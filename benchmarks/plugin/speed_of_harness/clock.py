"""What went by since the first question, for rates of asking without start, data and scores."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

NOTES = "BENCH_NOTES"
"""The variable with the folder of notes, where the questions of several processes are timed."""

TOGETHER = "BENCH_TOGETHER"
"""The variable with the number of processes that ask their first question together."""

_first: list[tuple[float, float]] = []


def asking() -> None:
    """Say that a question is asked now."""
    if not _first:
        _first.append((time.monotonic(), time.process_time()))


async def begin_together() -> None:
    """Wait until all processes are about to ask: the start of one is no part of the asking."""
    if not _first and not list(_notes(os.getpid())):
        note(f"first-{os.getpid()}")
    together = int(os.environ.get(TOGETHER, "0"))
    while not _first and len(list(_notes("*"))) < together:  # noqa: ASYNC110 - other processes
        await asyncio.sleep(0.02)


def _notes(process: int | str) -> Iterator[Path]:
    return Path(os.environ.get(NOTES, ".")).glob(f"first-{process}")


def restart() -> None:
    """Have the next question count as the first."""
    _first.clear()


def seconds() -> float | None:
    """Since the first question; None before it."""
    return time.monotonic() - _first[0][0] if _first else None


def processor_seconds() -> float | None:
    """What this process has computed since the first question; None before it."""
    return time.process_time() - _first[0][1] if _first else None


def note(name: str) -> None:
    """Leave a note of the time now, on the clock that the machine's processes share."""
    if folder := os.environ.get(NOTES):
        Path(folder, name).write_text(repr(time.monotonic()), encoding="utf-8")
