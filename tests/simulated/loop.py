"""An event loop whose time jumps, whose tasks wake up in a drawn order, and without threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

BEGAN = datetime(2026, 1, 5, 12, tzinfo=UTC)
"""When a world begins."""

WORK = 2e-4
"""The most seconds that one round of the loop takes."""

ROUNDS = 400_000
"""More than any session needs: a loop that goes round so often waits for what never comes."""


class Stuck(Exception):
    """Nothing will ever wake the tasks that wait, or they wake each other for ever."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop that never waits: its clock is at once at the next timer.

    Wake-ups of tasks that are ready together change places by the draw; all other callbacks stay
    in order. What is to be done in a thread is done at once.
    """

    def __init__(self, draw: Random, *, began: float = 0.0) -> None:
        super().__init__()
        self.now = began
        self.draw = draw
        self.rounds = 0
        self.connect: Callable[[Any], Any] = lambda protocol: None
        self.handlers: dict[int, Callable[[], Any]] = {}
        self.troubles: list[dict[str, Any]] = []
        self._select = self._selector.select
        self._selector.select = self._jump
        self.set_exception_handler(lambda loop, trouble: self.troubles.append(trouble))

    def time(self) -> float:
        return self.now

    def run_in_executor(self, pool: Any, work: Callable[..., Any], *given: Any) -> Any:
        """The result of the work, which is done now."""
        future = self.create_future()
        try:
            future.set_result(work(*given))
        except Exception as error:
            future.set_exception(error)
        return future

    async def create_unix_connection(  # type: ignore[override]
        self, factory: Callable[[], Any], path: str, **options: Any
    ) -> tuple[Any, Any]:
        """A connection to the server of the world."""
        protocol = factory()
        return self.connect(protocol), protocol

    def add_signal_handler(self, number: int, handler: Callable[..., Any], *given: Any) -> None:
        self.handlers[number] = lambda: handler(*given)

    def remove_signal_handler(self, number: int) -> bool:
        return self.handlers.pop(number, None) is not None

    def _run_once(self) -> None:
        self.rounds += 1
        if self.rounds > ROUNDS:
            raise Stuck("the loop goes round for ever")
        self.now += WORK * self.draw.random()
        ready = self._ready
        places = [place for place, one in enumerate(ready) if _wakes_task(one)]
        if len(places) > 1:
            woken = [ready[place] for place in places]
            self.draw.shuffle(woken)
            for place, one in zip(places, woken, strict=True):
                ready[place] = one
        super()._run_once()

    def _jump(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise Stuck("no task will ever wake")
        self.now += timeout
        return self._select(0)


def _wakes_task(handle: asyncio.Handle) -> bool:
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)


class Clock:
    """Stands for `harness.base.clock` where code takes the time without a loop."""

    def __init__(self) -> None:
        self.loop: SimulatedLoop | None = None
        self.now = 0.0

    def seconds(self) -> float:
        return self.now if self.loop is None else self.loop.now

    def utc(self) -> datetime:
        return BEGAN + timedelta(seconds=self.seconds())

    def block(self, seconds: float) -> None:
        if self.loop is None:
            self.now += seconds
        else:
            self.loop.now += seconds
