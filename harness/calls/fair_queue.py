"""What is made of answers waits while requests that their places set free are sent."""

from __future__ import annotations

import asyncio
from collections import deque

AT_A_TIME = 8
"""Who goes on in one round of the loop: some two milliseconds of work, then the network's turn."""


class Turns:
    """A queue before the work that follows an answer.

    Answers come in bursts. Were each of a burst recorded at once, the first free place would wait
    until the last record is made.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Return in a later round of the loop, a few a round, first come first served."""
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
