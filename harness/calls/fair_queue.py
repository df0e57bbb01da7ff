"""Delays the processing of replies so that free slots are refilled first."""

from __future__ import annotations

import asyncio
from collections import deque

AT_A_TIME = 8
"""Replies processed per round of the event loop: about two milliseconds of work."""


class Turns:
    """A queue for the work that follows a reply.

    Replies come in bursts. If each were recorded at once, the first free slot would stay empty
    until the last record of the burst is made.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Wait for a later round of the event loop; a few per round, first come first served."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            loop.call_soon(self._next, loop)
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        for _ in range(min(AT_A_TIME, len(self._waiting))):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
        if self._waiting:
            loop.call_soon(self._next, loop)
