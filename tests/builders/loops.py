"""The event loop of a test, and one whose time passes without waiting."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def all_wait() -> None:
    """Let the event loop run until each task waits for an event or for time."""
    for _ in range(200):
        await asyncio.sleep(0)


class Clock:
    """Seconds that go on when they are told to."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer; it counts the timers, and stops at `most`."""

    def __init__(self, most: int = 1_000_000) -> None:
        super().__init__()
        self.now = 0.0
        self.timers = 0
        self.most = most
        self._select = self._selector.select
        self._selector.select = self._jump

    def time(self) -> float:
        return self.now

    def call_at(self, *args: Any, **more: Any) -> asyncio.TimerHandle:
        self.timers += 1
        assert self.timers < self.most, "the loop spins"
        return super().call_at(*args, **more)

    def _jump(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return self._select(0)


def in_virtual_time(work: Coroutine[Any, Any, Any]) -> tuple[Any, VirtualLoop]:
    """The result of a coroutine that no clock delays, and the loop that ran it."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        return runner.run(work), loop
