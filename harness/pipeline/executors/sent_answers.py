"""A run's own answers as its workers see them: one process, where the driver is, keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping

from harness.base.errors import StorageError
from harness.calls.own_answers import Answer, OwnAnswer, decoded, encoded

SEND_SECONDS = 0.1
"""How long answers gather before they are sent, so that they are on disk within 0.2 s."""

FIND_SECONDS = 0.01
"""How long keys gather before they are looked up."""


class SentAnswers:
    """Sends the answers of a worker, and looks up what others had, after a call of `look`.

    `send` returns once answers are written, or failed to be; `find` raises StorageError. One
    message of each kind is on its way at a time; what comes meanwhile is in the next. Needs a
    running event loop.
    """

    def __init__(
        self,
        *,
        session: int,
        send: Callable[[dict[bytes, bytes]], Awaitable[StorageError | None]],
        find: Callable[[Collection[bytes]], Awaitable[Mapping[bytes, bytes]]],
    ) -> None:
        self._session = session
        self._send = send
        self._find = find
        self._looks = False
        self._failed: StorageError | None = None
        self._unsent: dict[bytes, bytes] = {}
        self._sender: asyncio.Task[None] | None = None
        self._wanted: list[tuple[bytes, asyncio.Future[bytes | None]]] = []
        self._finder: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Look answers up from now on, as some may be there."""
        self._looks = True

    async def earlier(self, key: str) -> OwnAnswer | None:
        """The answer that an earlier session or another worker got; None if there is none."""
        if not self._looks:
            return None
        found: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self._wanted.append((bytes.fromhex(key), found))
        if self._finder is None:
            self._finder = asyncio.create_task(self._find_all())
        value = await found
        return None if value is None else decoded(value)

    def keep(self, asker: str, answer: Answer) -> None:
        """Send an answer; the StorageError of one that could not be written is raised later."""
        if self._failed is not None:
            raise self._failed
        own = OwnAnswer(session=self._session, asker=asker, answer=answer)
        self._unsent[bytes.fromhex(answer.key)] = encoded(own)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all())

    async def close(self) -> None:
        """Wait until all answers are written; StorageError if they could not be."""
        if self._sender is not None:
            await self._sender
        if self._failed is not None:
            raise self._failed

    async def _send_all(self) -> None:
        while self._unsent and self._failed is None:
            await asyncio.sleep(SEND_SECONDS)
            answers, self._unsent = self._unsent, {}
            self._failed = await self._send(answers)
        self._sender = None

    async def _find_all(self) -> None:
        while self._wanted:
            await asyncio.sleep(FIND_SECONDS)
            wanted, self._wanted = self._wanted, []
            values: Mapping[bytes, bytes] = {}
            failed: StorageError | None = None
            try:
                values = await self._find({key for key, _ in wanted})
            except StorageError as error:
                failed = error
            for key, found in wanted:
                if found.done():
                    continue  # who asked was cancelled
                if failed is None:
                    found.set_result(values.get(key))
                else:
                    found.set_exception(failed)
        self._finder = None
