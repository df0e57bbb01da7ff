"""Places the workers of a run on the cluster that Ray is connected to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from harness.base import clock
from harness.base.errors import HarnessError, ModelError
from harness.calls.leases import Used
from harness.calls.policy import Budget
from harness.pipeline.executors.cluster import LOOK_SECONDS, head_problem, nodes, without_room
from harness.pipeline.executors.node_check import WorkOrder, encoded
from harness.pipeline.executors.ray_keeper import GONE, HarnessKeeper, HarnessPurse
from harness.pipeline.executors.ray_worker import HarnessWorker, not_shared, seen_file
from harness.pipeline.executors.run_keys import RunKeys
from harness.pipeline.executors.shared_workers import SharedWorkers

T = TypeVar("T")

ROOM_SECONDS = 30.0
"""How long a worker may take to begin, or wait for room on the cluster, before a line says so."""

BEGIN_SECONDS = 600.0
"""How long a worker that has room may take to begin, as if its process hangs; then it is killed."""

AT_ONCE = 1_000_000
"""The most calls of a worker's methods at a time: more than others may ask of what it owns."""


@dataclass(eq=False, kw_only=True)
class Workers:
    """Opens workers for one run, each with so many GPUs, and what they share.

    The keys are sent as arguments, which Ray holds in memory: they are in no name, environment or
    log of Ray's. `used` is what the run's budget has paid for before. Workers are
    `shared` with other runs of a suite, or end with the run. `checked` is set once so many workers
    as the run has were found able to work on it, or wait for room: nothing is asked before.
    """

    order: WorkOrder
    keys: RunKeys
    gpus: int
    used: Used
    announce: Callable[..., None]
    shared: SharedWorkers | None = None
    checked: asyncio.Event = field(default_factory=asyncio.Event)
    _keeper: Any = None
    _purse: Any = None
    _living: dict[str, Any] = field(default_factory=dict)
    _late: set[str] = field(default_factory=set)
    _waiting: set[str] = field(default_factory=set)
    _announced: set[str] = field(default_factory=set)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open(self, name: str) -> Any:
        """A worker that is ready to work; HarnessError if its node cannot work on this run."""
        idle = [] if self.shared is None else self.shared.idle
        again = bool(idle)
        actor = idle.pop(0) if again else self._new()
        try:
            async with self._opening:
                await self._open_shared()
            begun = actor.begin.remote(
                name, encoded(self.order), self.keys, self._keeper, self._purse
            )
            node, error = await self._answer(begun, name, actor)
        except BaseException as failure:
            self._leave(actor, keep=again and not isinstance(failure, GONE))
            raise
        try:
            if error is None:
                error = self._unseen(name, node)
            if error is not None:
                raise error
            if self._purse is not None:
                self._purse.know.remote(name, actor)
            async with self._opening:
                await self._introduce(name, actor)
        except BaseException:
            ray.kill(actor)
            raise
        self._count_checked()
        return actor

    def kill(self, name: str) -> None:
        """Kill a worker; whoever waits for it learns that it died."""
        ray.kill(self._living[name])

    def lost(self, name: str) -> None:
        """Forget a worker that died."""
        ray.kill(self._living.pop(name))
        if self._purse is not None:
            self._purse.lost.remote(name)
        for actor in self._living.values():
            actor.know.remote(self._living)

    @property
    def keeps(self) -> bool:
        """Whether workers stay for another run, with the engines that they have opened."""
        return self.shared is not None

    def ended(self, name: str, *, well: bool) -> None:
        """Forget a worker that has closed, well or with an error."""
        self._leave(self._living.pop(name), keep=well)

    def close(self) -> None:
        """End what the workers share."""
        for shared in (self._keeper, self._purse):
            if shared is not None:
                ray.kill(shared)

    def _new(self) -> Any:
        kind: Any = ray.remote(HarnessWorker)
        placed = kind.options(
            num_cpus=1,
            num_gpus=self.gpus,
            max_concurrency=AT_ONCE,
            scheduling_strategy="SPREAD",
        )
        return placed.remote()

    async def _answer(self, asked: Awaitable[T], name: str, actor: Any) -> T:
        """What a new worker answers; one that has room and does not answer for long is killed."""
        answer = asyncio.ensure_future(asked)
        answer.add_done_callback(_retrieve)
        since = placed = clock.seconds()
        try:
            while not answer.done():
                await asyncio.wait({answer}, timeout=LOOK_SECONDS)
                if not answer.done():
                    # In a thread, as the head of the cluster may be slow to answer.
                    without = await asyncio.to_thread(self._look_at_cluster, name)
                    now = clock.seconds()
                    if now - since >= ROOM_SECONDS:
                        self._note_late(name, without)
                    if name in self._waiting:
                        placed = now
                    elif now - placed >= BEGIN_SECONDS:
                        ray.kill(actor)
                    self._count_checked()
        finally:
            self._late.discard(name)
            self._waiting.discard(name)
        return answer.result()

    def _leave(self, actor: Any, *, keep: bool) -> None:
        if self.shared is not None and keep:
            self.shared.idle.append(actor)
        else:
            ray.kill(actor)

    def _count_checked(self) -> None:
        if len(self._living.keys() | self._waiting) >= self.order.workers:
            self.checked.set()

    async def _introduce(self, name: str, actor: Any) -> None:
        """Let all workers know a new one, before it is asked anything or asks itself."""
        before = dict(self._living)
        self._living[name] = actor
        try:
            known = [each.know.remote(self._living) for each in before.values()]
            found = await asyncio.gather(*known, return_exceptions=True)
            owned = [each for each, asked in zip(before, found, strict=True) if asked is True]
            await self._answer(actor.join.remote(before, owned), name, actor)
        except BaseException:
            self.lost(name)
            raise

    async def _open_shared(self) -> None:
        if self._keeper is not None:
            return
        order, settings = self.order, self.order.settings
        # Through ray:// this is the head of the cluster.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        kind: Any = ray.remote(HarnessKeeper)
        keeper = kind.options(num_cpus=0, scheduling_strategy=here).remote()
        try:
            begun = keeper.begin.remote(order.run_folder, order.lock, settings.store_file)
            if error := await begun:
                raise error
        except BaseException:
            ray.kill(keeper)
            raise
        self._keeper = keeper
        if settings.budget != Budget():
            purse: Any = ray.remote(HarnessPurse)
            placed = purse.options(num_cpus=0, scheduling_strategy=here)
            self._purse = placed.remote(settings.budget, order.workers, self.used)

    def _look_at_cluster(self, name: str) -> int:
        """The number of workers like this one that wait for room.

        ModelError if the node of this process has died: Ray then ends all workers of the run, and
        starts no others.
        """
        if head_problem() is not None:
            return 0  # it ends the run, if it lasts
        living = nodes()
        if not any(node.here for node in living):
            raise ModelError(
                "the node of the cluster that this process belongs to has died"
                if living
                else "the cluster has no living node any more",
                where=f"worker {name}",
                hint="start Ray again; the same command continues the run",
            )
        return without_room(self.gpus)

    def _note_late(self, name: str, without: int) -> None:
        """Say once of each worker that it is late: it waits for room, if so many do as are late.

        Where fewer do, a node starts one of them slowly, and Ray does not say which.
        """
        self._late.add(name)
        self._waiting = {*self._late} if without >= len(self._late) else set()
        needs = f"1 CPU and {self.gpus} GPUs" if self.gpus else "1 CPU"
        waits = (
            f"waits for a node with {needs} to spare: see `ray status`"
            if self._waiting
            else "has not begun yet, and the others wait for it: its node starts it slowly"
        )
        for each in sorted(self._late - self._announced):
            self.announce(f"worker {each} {waits}", problem=True)
        self._announced |= self._late

    def _unseen(self, name: str, node: str) -> HarnessError | None:
        """The error for a worker whose files do not arrive in the run folder here."""
        if self.order.settings.run_storage == "local":
            return None
        try:
            seen_file(self.order.run_folder, name).unlink()
        except FileNotFoundError:
            return not_shared(self.order.folder, node)
        return None


def _retrieve(answer: asyncio.Future[Any]) -> None:
    """Take the error of a worker that was left, which asyncio would print."""
    if not answer.cancelled():
        answer.exception()
