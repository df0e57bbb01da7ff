"""How often Python looks for garbage while a run goes on."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

RARELY = 10_000
"""Objects made between two looks, where Python's own choice is 700: looking that often at all that
waits for a reply costs a tenth of a run's processor time."""

_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []
"""The thresholds that each run now going on found: the first is what was there before them all."""


@contextmanager
def rare_collection() -> Iterator[None]:
    """Look for garbage less often, and as often as before once the last of several runs ends."""
    with _lock:
        _before.append(_before[0] if _before else gc.get_threshold())
        often, *rest = _before[0]
        if 0 < often < RARELY:
            gc.set_threshold(RARELY, *rest)
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before:
                gc.set_threshold(*before)
