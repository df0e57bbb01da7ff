"""The time of a run: the machine's, or that of a simulation, which replaces these functions."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime


def seconds() -> float:
    """The seconds of the running event loop, whose clock is the machine's where none is given."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


def utc() -> datetime:
    """The date and time in UTC."""
    return datetime.now(UTC)


def block(seconds: float) -> None:
    """Let the time pass, and nothing else happen in this thread."""
    time.sleep(seconds)
