"""Workers in this process, which die at will: an executor for tests that need no cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from harness.contracts.executor import Executor, WorkerDied
from harness.contracts.model import Model


class Hosted:
    """A worker that is an object of this process, and another one after each death."""

    def __init__(self, kind: type, given: tuple[Any, ...]) -> None:
        self._make = lambda: kind(*given)
        self._died = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.object = self._make()

    async def call(self, method: str, *given: Any) -> Any:
        for _ in range(3):
            died = asyncio.ensure_future(self._died.wait())
            task = asyncio.ensure_future(getattr(self.object, method)(*given))
            await asyncio.wait({died, task}, return_when=asyncio.FIRST_COMPLETED)
            died.cancel()
            if task.done():
                return task.result()
            await asyncio.sleep(0.01)
        raise WorkerDied("a worker died", found="killed")

    def kill(self, *, lives_on: bool = False) -> None:
        """End the object, or only cut it off; from another thread too."""
        self._loop.call_soon_threadsafe(self._kill, lives_on)

    def _kill(self, lives_on: bool) -> None:
        dead, self.object = self.object, self._make()
        self._died.set()
        self._died = asyncio.Event()
        if not lives_on:
            with suppress(AttributeError):  # it had not begun
                dead._lanes.drop()


class Here(Executor):
    """Opens `count` workers in this process."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.workers: list[Hosted] = []

    def join(self, models: Sequence[Model]) -> int:
        return self._count

    async def open(self, kind: type, given: Sequence[tuple[Any, ...]]) -> list[Any]:
        self.workers = [Hosted(kind, each) for each in given]
        return [*self.workers]

    async def close(self) -> None:
        pass
