"""How often Python looks for garbage while a run goes on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARELY = 10_000
"""Objects made between two looks, where Python's own choice is 700: looking that often at all that
waits for a reply costs a tenth of a run's processor time."""


@contextmanager
def rare_collection() -> Iterator[None]:
    """Look for garbage less often, and as often as before afterwards."""
    before = gc.get_threshold()
    if 0 < before[0] < RARELY:
        gc.set_threshold(RARELY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
