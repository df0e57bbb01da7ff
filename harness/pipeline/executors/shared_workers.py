"""What the runs of a suite share on a cluster: room side by side, and workers with open engines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from harness.base.errors import HarnessError
from harness.calls.engines import SharedEngines
from harness.contracts.model import Model
from harness.pipeline.executors.cluster import engines_that_fit, nodes, workers_of
from harness.pipeline.settings import RunSettings

ENDING_SECONDS = 60.0
"""How long a worker may take to end, with its engines; then it is killed."""


@dataclass(kw_only=True)
class SuiteRoom:
    """The room on a cluster that runs side by side have taken.

    After `stopped` is set, no run gets room any more.
    """

    taken: list[SharedWorkers] = field(default_factory=list)
    stopped: HarnessError | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, taker: SharedWorkers, announce: Callable[[str], None]) -> None:
        """Wait until a run has room next to the others, which a run alone always has.

        Ray places the workers: where others use the cluster, they wait for Ray.
        """
        waits = False
        while self.stopped is None and not self._fits(taker):
            if not waits:
                announce("waits until runs before it leave room on the cluster")
            waits = True
            self._changed.clear()
            await self._changed.wait()
        self.check()
        self.taken.append(taker)

    def leave(self, taker: SharedWorkers) -> None:
        """Give room back."""
        if taker in self.taken:
            self.taken.remove(taker)
        self._changed.set()

    def check(self) -> None:
        """Raise why no run gets room any more, if none does."""
        if self.stopped is not None:
            raise self.stopped.with_traceback(None)

    def stop(self, error: HarnessError) -> None:
        """Give no run room any more."""
        self.stopped = self.stopped or error
        self._changed.set()

    def _fits(self, taker: SharedWorkers) -> bool:
        same = [one.share for one in self.taken if bool(one.gpus) == bool(taker.gpus)]
        return not same or sum(same) + taker.share <= 1


@dataclass(kw_only=True, eq=False)
class SharedWorkers(SharedEngines):
    """The workers of runs that follow each other, each with the engines that it has opened.

    So many models share the cluster as `among` says. `count` is the number of workers that have
    room, `gpus` the GPUs of each, and `share` their share of the cluster.
    """

    suite: SuiteRoom
    among: int = 1
    apart: bool = True
    idle: list[Any] = field(default_factory=list)
    granted: asyncio.Event = field(default_factory=asyncio.Event)
    count: int = 0
    gpus: int = 0
    share: Fraction = Fraction(0)

    async def room(
        self, models: Sequence[Model], settings: RunSettings, announce: Callable[[str], None]
    ) -> tuple[int, int]:
        """The number of workers of a run with these models and the GPUs of each, once there is
        room for them."""
        self.suite.check()
        found = [replace(node, gpus_free=node.gpus, cpus_free=node.cpus) for node in nodes()]
        count, gpus = workers_of(models, settings, found, among=self.among)
        if self not in self.suite.taken or gpus > self.gpus:
            await self.close()
            on_engines = any(model.occupies is not None for model in models)
            most = len(found) if on_engines else int(sum(node.cpus for node in found))
            most = engines_that_fit(found, gpus) if gpus else most
            self.count, self.gpus, self.share = count, gpus, Fraction(count, max(1, most))
            await self.suite.take(self, announce)
        self.granted.set()
        return min(count, self.count), self.gpus

    async def close(self) -> None:
        """End the workers with their engines, and give their room back; raises the first error."""
        idle, self.idle = self.idle, []
        try:
            errors = await asyncio.gather(*map(_ended, idle))
        finally:
            self.suite.leave(self)
        for error in errors:
            if error is not None:
                raise error


async def _ended(actor: Any) -> HarnessError | None:
    """End a worker with the engines that it kept; its error, if it has one."""
    import ray
    from ray.exceptions import RayError

    try:
        async with asyncio.timeout(ENDING_SECONDS):
            error: HarnessError | None = await actor.end.remote()
        return error
    except (TimeoutError, RayError):
        return None
    finally:
        ray.kill(actor)
