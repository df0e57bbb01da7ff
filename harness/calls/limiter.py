"""Limits the requests in flight to one model, and adapts to its rate limits."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

KEPT_CHANGES = 200


class Limiter:
    """Admits at most `limit` requests at once, first come first served.

    The limit starts at the ceiling, halves when the server answers 429 and grows back by about one
    per round of successes. Requests that were sent before a cut do not test the new limit, so they
    never cut it again. Other errors only delay the growth.
    """

    def __init__(
        self,
        ceiling: int,
        *,
        window: float = 1.0,
        quiet: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ceiling = max(1, ceiling)
        self.limit = float(self.ceiling)
        self.busy = 0
        self._window = window
        self._quiet = quiet
        self._clock = clock
        self._began = clock()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._dismissed: Exception | None = None
        self._last_cut = float("-inf")
        self._no_growth_until = float("-inf")
        self._paused_until = 0.0
        self._cuts = 0
        self._pauses = 0
        self._lowest = self.ceiling
        self._changes: list[dict[str, Any]] = []
        self._unlisted = 0

    async def acquire(self) -> None:
        """Wait for a slot; return it with `release`."""
        if self._dismissed is not None:
            raise self._dismissed.with_traceback(None)  # else it grows with every raise
        if not self._waiting and self._free():
            self.busy += 1
            return
        slot = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
        self._admit()
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled() and slot.exception() is None:
                self.release()
            raise

    def release(self) -> None:
        """Return a slot."""
        self.busy -= 1
        if self._waiting:
            self._admit()

    def dismiss(self, error: Exception) -> None:
        """Give out no more slots: requests that wait, and all later ones, raise the error."""
        self._dismissed = error
        while self._waiting:
            slot = self._waiting.popleft()
            if not slot.done():
                slot.set_exception(error)

    def succeeded(self) -> None:
        """Grow towards the ceiling, unless there was an error a moment ago."""
        if self.limit >= self.ceiling or self._clock() < self._no_growth_until:
            return
        self.limit = min(float(self.ceiling), self.limit + 1.0 / self.limit)
        if self.limit > self.ceiling - 0.01:
            self.limit = float(self.ceiling)
            self._note("recovered")
        self._admit()

    def rate_limited(self, *, sent: float, retry_after: float | None = None) -> None:
        """Halve the limit for a request sent at `sent` (clock time), at most once per window."""
        now = self._clock()
        self._no_growth_until = max(self._no_growth_until, now + self._window)
        if sent >= self._last_cut and now - self._last_cut >= self._window:
            self._last_cut = now
            self._cuts += 1
            self.limit = max(1.0, float(int(self.limit) // 2))
            self._lowest = min(self._lowest, int(self.limit))
            self._note("rate limited")
        if retry_after:
            self._pause(now + retry_after)

    def troubled(self, *, retry_after: float | None = None) -> None:
        """Delay growth after a server error, a lost connection or a timeout."""
        now = self._clock()
        self._no_growth_until = max(self._no_growth_until, now + self._quiet)
        if retry_after:
            self._pause(now + retry_after)

    def report(self) -> dict[str, Any]:
        """The limiter's history as JSON values; `at` is seconds since the first call."""
        return {
            "ceiling": self.ceiling,
            "limit": int(self.limit),
            "lowest": self._lowest,
            "cuts": self._cuts,
            "pauses": self._pauses,
            "changes": list(self._changes),
            "changes_unlisted": self._unlisted,
        }

    def _free(self) -> bool:
        if self.busy >= int(self.limit):
            return False
        if self._paused_until:
            if self._clock() < self._paused_until:
                return False
            self._paused_until = 0.0
        return True

    def _admit(self) -> None:
        while self._waiting and self._free():
            slot = self._waiting.popleft()
            if not slot.done():
                self.busy += 1
                slot.set_result(None)
        if self._waiting and self._paused_until and self._timer is None:
            loop = asyncio.get_running_loop()
            wait = max(0.0, self._paused_until - self._clock())
            self._timer = loop.call_later(wait, self._pause_over)

    def _pause_over(self) -> None:
        self._timer = None
        self._admit()

    def _pause(self, until: float) -> None:
        if until <= self._paused_until:
            return
        already = self._paused_until > self._clock()
        self._paused_until = until
        if not already:
            self._pauses += 1
            self._note("paused")

    def _note(self, why: str) -> None:
        if len(self._changes) >= KEPT_CHANGES:
            self._unlisted += 1
            return
        at = round(self._clock() - self._began, 3)
        change: dict[str, Any] = {"at": at, "limit": int(self.limit), "why": why}
        if why == "paused":
            change["seconds"] = round(self._paused_until - self._clock(), 3)
        self._changes.append(change)


def limits_of_workers(reports: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The limits of all workers as those of one run, each under `model on worker`."""
    return {
        f"{model} on {worker}": report
        for worker, limits in reports.items()
        for model, report in limits.items()
    }
