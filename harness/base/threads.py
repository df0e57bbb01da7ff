"""Work in threads. All of it goes through the event loop, which may do it at once instead."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

T = TypeVar("T")


class _Daemons(Executor):
    """A thread for each work, which does not delay the end of the command."""

    def submit(self, work: Callable[..., T], /, *args: Any, **more: Any) -> Future[T]:
        result: Future[T] = Future()
        result.set_running_or_notify_cancel()

        def run() -> None:
            try:
                result.set_result(work(*args, **more))
            except BaseException as error:
                result.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return result


_DAEMONS = _Daemons()


async def in_thread(work: Callable[[], T]) -> T:
    """The result of the work, done in a thread that does not delay the end of the command."""
    return await asyncio.get_running_loop().run_in_executor(_DAEMONS, work)
