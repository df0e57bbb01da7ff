"""The seconds from the first question on, for rates of asking without start, data and scores."""

from __future__ import annotations

import time

_first: list[float] = []


def asking() -> None:
    """Say that a question is asked now."""
    if not _first:
        _first.append(time.monotonic())


def seconds() -> float | None:
    """Since the first question; None before it."""
    return time.monotonic() - _first[0] if _first else None
