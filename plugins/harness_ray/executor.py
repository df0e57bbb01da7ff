"""Has the workers of a run live on a Ray cluster, as actors that Ray starts again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from harness.base import clock
from harness.base.errors import HarnessError, ModelError
from harness.base.threads import in_thread
from harness.contracts.executor import Executor, ExecutorSettings, Worker, WorkerDied
from harness.contracts.finding import Finding, good
from harness.contracts.model import Model
from harness_ray.cluster import ADDRESS, Cluster, nodes, ray_package
from harness_ray.places import said_of, workers_of

RETRIES = 2
"""How often a call is repeated whose worker died."""

AGAIN_SECONDS = 0.2
"""How often a worker that died is asked whether it was started again."""

AWAITED_SECONDS = 30.0
"""How long a worker may be awaited until a line says so, and again after twice as long."""

ENDING_SECONDS = 20.0
"""How long this process waits for Ray to leave the cluster."""

LOOK_SECONDS, HEADLESS_SECONDS = 2.0, 20.0
"""How often it is looked whether the head of the cluster is there, and how long it may be away, as
if it starts again: after a minute, Ray ends this process."""

AT_ONCE = 1_000
"""The most calls of a worker's methods at a time: shards, news, and what it is told."""

LONGEST_REASON = 200
"""Characters of Ray's account of a death that are shown."""


class RayExecutor(Executor):
    """Each worker is an actor with a CPU, and with the GPUs of its engine."""

    def __init__(self, settings: ExecutorSettings) -> None:
        self._settings = settings
        self._cluster = Cluster(settings.address)
        self._gpus = 0
        self._actors: list[Any] = []
        self._workers: list[RayWorker] = []
        self._watch: asyncio.Task[None] | None = None

    def check(self) -> Iterable[Finding]:
        """What `harness doctor` says of the cluster; ClusterError if no run could use it."""
        version = ray_package().__version__
        address = self._settings.address
        if address is None:
            return [
                good("ray", f"Ray {version}; without --ray_address a run uses this machine alone")
            ]
        with self._cluster:
            return [good("ray", f"Ray {version}; {address}: {said_of(nodes())}")]

    def join(self, models: Sequence[Model]) -> int:
        """Join the cluster, or start a Ray on this machine; the workers that it holds."""
        self._cluster.join()
        count, self._gpus = workers_of(
            models, nodes(), workers=self._settings.workers, engines=self._settings.engines
        )
        return count

    async def open(self, kind: type, given: Sequence[tuple[Any, ...]]) -> list[Worker]:
        """Actors, which Ray starts where there is room, and again where they die.

        Ray keeps their arguments in memory: what is in them is in no file, name or log.
        """
        remote = (
            ray_package()
            .remote(kind)
            .options(
                num_cpus=1,
                num_gpus=self._gpus,
                max_restarts=-1,
                max_concurrency=AT_ONCE,
                scheduling_strategy="SPREAD",
            )
        )
        self._actors = [remote.remote(*each) for each in given]
        self._watch = asyncio.create_task(until_headless(self._settings.address))
        self._workers = [
            RayWorker(actor, number, self._watch, self.show)
            for number, actor in enumerate(self._actors, 1)
        ]
        for one in self._workers:
            one.expect()
        return [*self._workers]

    async def close(self) -> None:
        """Kill the actors and leave the cluster; a Ray that `join` started ends."""
        headless = self._watch is not None and self._watch.done()
        if self._watch is not None:
            self._watch.cancel()
        for one in self._workers:
            one.forget()
        actors, self._actors = self._actors, []

        def leave() -> None:
            for actor in () if headless else actors:
                ray_package().kill(actor)
            self._cluster.leave()

        with suppress(TimeoutError):  # without a head, Ray may take its time
            await asyncio.wait_for(in_thread(leave), ENDING_SECONDS)


class RayWorker:
    """A worker that is an actor."""

    def __init__(
        self, actor: Any, number: int, headless: asyncio.Task[None], show: Callable[[str], None]
    ) -> None:
        self._actor = actor
        self._number = number
        self._headless = headless
        self._show = show
        self._coming: asyncio.Task[None] | None = None

    async def call(self, method: str, *given: Any) -> Any:
        """What this method of the worker returns; WorkerDied once it died three times meanwhile,
        ModelError once there is no head any more, without which Ray would wait."""
        called = asyncio.ensure_future(self._call(method, *given))
        try:
            await asyncio.wait({called, self._headless}, return_when=asyncio.FIRST_COMPLETED)
            if called.done():
                return called.result()
        finally:
            called.cancel()
        raise ModelError(
            "the head of the cluster does not answer any more",
            where=f"worker {self._number}",
            expected=f"an answer within {HEADLESS_SECONDS:.0f} s",
            hint="start the cluster again; the same command continues the run",
        )

    async def _call(self, method: str, *given: Any) -> Any:
        """What this method of the worker returns, as long as there is a head.

        Ray itself would repeat the call before it has noticed the death, and count that as another
        one.
        """
        from ray.exceptions import ActorUnavailableError, RayActorError, RayError, RayTaskError

        deaths = 0
        while True:
            if self._coming is not None:
                await asyncio.shield(self._coming)  # a call before that would be another death
            try:
                return await getattr(self._actor, method).remote(*given)
            except ActorUnavailableError as error:
                if self._coming is None or self._coming.done():  # all calls hear of one death
                    self._show(
                        f"worker {self._number} cannot be reached ({reason_of(error)}): Ray starts "
                        "it again if it died"
                    )
                    self.expect()
                deaths += 1
                if deaths > RETRIES:
                    raise WorkerDied(
                        f"worker {self._number} died {deaths} times",
                        where=f"worker {self._number}",
                        found=reason_of(error),
                        expected="a worker that survives its items",
                        hint="look at the memory of the machines, and at Ray's log of the worker; "
                        "the same command continues the run",
                    ) from error
            except RayTaskError as error:
                raise HarnessError(
                    "the harness itself failed in a worker",
                    where=f"worker {self._number}",
                    found="\n".join(str(error).splitlines()[-4:]),
                ) from error
            except RayError as error:
                what = "a worker" if isinstance(error, RayActorError) else "the Ray cluster"
                raise ModelError(
                    f"{what} cannot be reached any more",
                    where=f"worker {self._number}",
                    found=reason_of(error),
                    hint="see that the cluster runs, or start it again; the same command continues "
                    "the run",
                ) from error

    def expect(self) -> None:
        """Have calls wait until Ray has started the worker, or says that it will not."""
        self._coming = asyncio.create_task(self._come())

    def forget(self) -> None:
        """Expect the worker no longer."""
        if self._coming is not None:
            self._coming.cancel()

    async def _come(self) -> None:
        there = asyncio.create_task(self._there())
        since, seconds = clock.utc(), AWAITED_SECONDS
        try:
            while not (await asyncio.wait({there}, timeout=seconds))[0]:
                self._show(
                    f"worker {self._number} is awaited since {since:%H:%M:%S} UTC: Ray has not "
                    f"started it; {await in_thread(room)}"
                )
                seconds *= 2
        finally:
            there.cancel()

    async def _there(self) -> None:
        from ray.exceptions import ActorUnavailableError, RayError

        while True:
            try:
                await self._actor.__ray_ready__.remote()
            except ActorUnavailableError:
                await asyncio.sleep(AGAIN_SECONDS)
            except RayError:
                return  # the next call says what it is
            else:
                return


async def until_headless(address: str | None) -> None:
    """Return once the head of the cluster has not answered for long; never from outside, where
    nothing shows it."""
    found = ADDRESS.fullmatch(ray_package().get_runtime_context().gcs_address)
    if found is None or (address or "").startswith("ray://"):
        await asyncio.Event().wait()
        return
    place = found["host"].strip("[]"), int(found["port"])
    answered = clock.seconds()
    while clock.seconds() - answered < HEADLESS_SECONDS:
        try:
            await in_thread(lambda: socket.create_connection(place, timeout=LOOK_SECONDS).close())
            answered = clock.seconds()
        except OSError:
            pass
        await asyncio.sleep(LOOK_SECONDS)


def room() -> str:
    """The nodes of the cluster, and what is free on them."""
    try:
        free = ray_package().available_resources()
    except Exception as error:  # as one without a head
        return f"the cluster does not say what it has: {error}"
    return f"{said_of(nodes())}; free: {free.get('CPU', 0):g} CPUs, {free.get('GPU', 0):g} GPUs"


def reason_of(error: Exception) -> str:
    """Why a call failed, in a line."""
    text = " ".join(str(error).split())
    for before in ("The actor is dead because ", "The actor is temporarily unavailable: "):
        text = text.rpartition(before)[2]
    text = text.partition(". The task may or may not")[0]
    if "rpc_code: 14" in text:  # gRPC's UNAVAILABLE, in many words
        return "its connection closed, as when its process is killed or its machine is gone"
    if "Worker unexpectedly exits with a connection error code" in text:
        return "its process was killed, as by a machine without memory to spare, or crashed"
    if len(text) > LONGEST_REASON:
        text = text[:LONGEST_REASON].rpartition(" ")[0] + " …"
    return text
