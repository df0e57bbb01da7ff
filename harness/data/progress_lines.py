"""How far long work has come, as a line a minute."""

from __future__ import annotations

import time
from collections.abc import Callable

REPORT_SECONDS = 60.0


class ProgressLines:
    """Shows a line for each minute of work; short work has none.

    progress = ProgressLines(print)
    progress("users", 10, 400)

    State: when the last line was shown.
    """

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self._clock = clock
        self._reported = clock()

    def __call__(self, what: str, done: int, of: int | None = None) -> None:
        now = self._clock()
        if now - self._reported >= REPORT_SECONDS:
            self._reported = now
            share = "" if of is None else f" of {of:,}"
            self._say(f"  {what}: {done:,}{share}")
