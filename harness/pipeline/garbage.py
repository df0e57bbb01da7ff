"""Collects garbage less often while models are asked."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

RARELY = 10_000
"""Objects made between two collections. With Python's default of 700, collecting over all objects
that wait for a reply takes a tenth of a run's processor time."""

_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []
"""The thresholds that each active run found; the first ones are those from before all runs."""


def collect_rarely() -> None:
    """Collect garbage less often from now on."""
    often, *rest = gc.get_threshold()
    if 0 < often < RARELY:
        gc.set_threshold(RARELY, *rest)


@contextmanager
def rare_collection() -> Iterator[None]:
    """Collect garbage less often until the last of several overlapping runs ends."""
    with _lock:
        _before.append(_before[0] if _before else gc.get_threshold())
        collect_rarely()
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before:
                gc.set_threshold(*before)
