"""An executor: where the workers of a run live, if that is not the command's own process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from harness.base.errors import ModelError
from harness.contracts.finding import Finding
from harness.contracts.model import Model


class ExecutorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the command says of an executor: `address` of its machines, and how many `workers`, or
    `engines` with a worker each, it is to open; None for as many as it finds useful."""

    address: str | None = None
    workers: int | None = None
    engines: int | None = None


class WorkerDied(ModelError):
    """The process of a worker died, again and again, during one call."""


class Worker(Protocol):
    """A worker in another process, as the command sees it."""

    async def call(self, method: str, *given: Any) -> Any:
        """What this method of the worker returns.

        If the worker's process dies meanwhile, it is started again and called again, up to twice.
        WorkerDied after the third death, ModelError if there is no way to a worker any more.
        """


class Executor(ABC):
    """Has the workers of a run live in other processes, as on other machines.

    The harness cuts the items of each stage into shards, hands them to workers by `call`, and
    collects the records. A worker is made of the harness's own class, which takes care of models,
    retries, records and budget; all that an executor knows of it is how to make it and call it.

        class Threads(Executor):
            def join(self, models): return 4
            async def open(self, kind, given): return [Thread(kind, *each) for each in given]
            async def close(self): ...
    """

    show: Callable[[str], None]
    """Shows the user a line, as that a worker died and is awaited; set before `open`."""

    def check(self) -> Iterable[Finding]:
        """What `harness doctor` says of the machines; HarnessError where no run could use them."""
        return ()

    @abstractmethod
    def join(self, models: Sequence[Model]) -> int:
        """Reach the machines before anything is paid, and return the number of workers of a run
        that asks these models.

        A model that `occupies` something needs a worker with `model.gpus` GPUs. HarnessError if the
        machines cannot be reached, or do not hold what the command asks for.
        """

    @abstractmethod
    async def open(self, kind: type, given: Sequence[tuple[Any, ...]]) -> list[Worker]:
        """A worker `kind(*each)` for each element of `given`, as `join` counted them.

        It need not have started yet: the first call waits for it. Its methods are coroutines, and
        several are called at a time. Arguments hold keys, which belong in no file or log.
        """

    @abstractmethod
    async def close(self) -> None:
        """End the workers and leave the machines; safe to call more than once, and before `open`.

        The harness has had them close their engines, where they could be reached.
        """
