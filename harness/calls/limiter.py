"""Limits the requests in flight to one model, and adapts to its rate limits."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Literal

Ending = Literal["success", "rate limit", "trouble"]
"""How a request ended; "trouble" is a server error, a lost connection or a timeout."""

LEAST = 50
"""A share is one of at least so many answers."""

BEARABLE = 0.05
"""Up to this share of answers, 429s and troubles concern only the requests that met them."""

KEPT_CHANGES = 200


class Limiter:
    """Admits at most `limit` requests at once, first come first served.

    The limit starts at the ceiling. When more than 5% of the answers of the last two rounds are
    429s, it falls to 0.7 of itself, and again only after a request that was sent since succeeded,
    or was sent a round trip later: once a round trip. A round of successes, as many as are admitted
    at once, raises it by a tenth up to the last cut, and then by one; with more than 5% of troubles
    it does not grow. A Retry-After holds up all requests only above these shares. Requests that
    were sent before a cut do not test the new limit, so they do not count. Below the ceiling,
    requests are spread over a round trip, which counts as a second until one succeeds: servers
    limit what comes at once.
    """

    def __init__(self, ceiling: int, *, clock: Callable[[], float] | None = None) -> None:
        self.ceiling = max(1, ceiling)
        self.limit = float(self.ceiling)
        self.busy = 0
        self._clock = clock or asyncio.get_running_loop().time
        self._began = self._clock()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._dismissed: Exception | None = None
        self._endings: deque[Ending] = deque()
        self._counts: Counter[Ending] = Counter()
        self._last_cut = self._opens = self._paused_until = float("-inf")
        self._round_trip: float | None = None
        self._cut_from = self.limit
        self._tested = True
        self._cuts = self._pauses = 0
        self._lowest = self.ceiling
        self._cause: str | None = None
        self._changes: list[dict[str, Any]] = []
        self._unlisted = 0

    async def acquire(self) -> None:
        """Wait for a slot; return it with `release`."""
        if self._dismissed is not None:
            raise self._dismissed.with_traceback(None)  # else it grows with every raise
        if not self._waiting and self._free():
            self._enter()
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

    def learn(self, ending: Ending, *, sent: float, pause: float = 0.0) -> None:
        """Adapt to how a request ended that was sent at `sent` (clock time).

        `pause` is the Retry-After of the answer, in seconds.
        """
        if sent < self._last_cut:
            return
        if ending == "success" or sent >= self._last_cut + (self._round_trip or 1.0):
            self._tested = True
        self._endings.append(ending)
        self._counts[ending] += 1
        if len(self._endings) > max(LEAST, 2 * self.limit):
            self._counts[self._endings.popleft()] -= 1
        if ending == "success":
            seconds = self._clock() - sent
            mean = seconds if self._round_trip is None else self._round_trip
            self._round_trip = mean + (seconds - mean) / 16
            if self.limit < self.ceiling and not (
                self._too_many("rate limit") or self._too_many("trouble")
            ):
                self._grow()
        elif self._too_many(ending):
            if ending == "rate limit" and self._tested and self.limit > 1:
                self._cut()
            if pause:
                until, already = self._clock() + pause, self._paused()
                self._paused_until = max(until, self._paused_until)
                self._opens = max(self._opens, until)
                if not already:
                    self._pauses += 1
                    self._note("paused")

    def report(self) -> dict[str, Any]:
        """The limiter's history as JSON values; `at` is seconds since the first call."""
        return {
            "ceiling": self.ceiling,
            "limit": int(self.limit),
            "lowest": self._lowest,
            "throttled": "it asked for a pause (Retry-After)" if self._paused() else self._cause,
            "cuts": self._cuts,
            "pauses": self._pauses,
            "changes": list(self._changes),
            "changes_unlisted": self._unlisted,
        }

    def _too_many(self, ending: Ending) -> bool:
        # Refusals come before answers: those in flight count where there are more of them.
        return self._counts[ending] > BEARABLE * max(LEAST, len(self._endings), self.busy)

    def _grow(self) -> None:
        part = 0.1 if self.limit < self._cut_from else 0.0
        self.limit = min(float(self.ceiling), self.limit + max(part, 1.0 / self.limit))
        if self.limit > self.ceiling - 0.01:
            self.limit = float(self.ceiling)
            self._cause = None
            self._note("recovered")
        self._admit()

    def _cut(self) -> None:
        limited, of = self._counts["rate limit"], len(self._endings)
        self._cause = f"{limited:,} of its last {of:,} answers were HTTP 429"
        self._cut_from = self.limit
        self.limit = max(1.0, 0.7 * self.limit)
        self._lowest = min(self._lowest, int(self.limit))
        self._cuts += 1
        self._last_cut = self._clock()
        self._tested = False
        self._endings.clear()
        self._counts.clear()
        self._note("rate limited")

    def _paused(self) -> bool:
        return self._clock() < self._paused_until

    def _free(self) -> bool:
        return self.busy < int(self.limit) and self._clock() >= self._opens

    def _admit(self) -> None:
        while self._waiting and self._free():
            slot = self._waiting.popleft()
            if not slot.done():
                self._enter()
                slot.set_result(None)
        wait = self._opens - self._clock()
        if self._waiting and self._timer is None and wait > 0:
            self._timer = asyncio.get_running_loop().call_later(wait, self._open)

    def _enter(self) -> None:
        """Take a place; below the ceiling, the next is taken a part of a round trip later."""
        self.busy += 1
        if self.limit < self.ceiling:
            self._opens = self._clock() + (self._round_trip or 1.0) / self.limit

    def _open(self) -> None:
        self._timer = None
        self._admit()

    def _note(self, why: str) -> None:
        if len(self._changes) >= KEPT_CHANGES:
            self._unlisted += 1
            return
        at = round(self._clock() - self._began, 3)
        change: dict[str, Any] = {"at": at, "limit": int(self.limit), "why": why}
        if why == "paused":
            change["seconds"] = round(self._paused_until - self._clock(), 3)
        self._changes.append(change)
