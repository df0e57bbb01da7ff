"""Opens models at their first call, and only one at a time of those that share a resource."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.base.errors import HarnessError, ModelError
from harness.contracts.model import CallError, Model

QUIET = 0.05
"""Seconds without any call in flight after which no more calls to the open engine are expected.

Workers do nothing slow between two calls, so after such a pause all of them wait. A switch that
comes too early costs time, never a result.
"""

QUIET_WHILE_OTHERS_ANSWER = 5.0
"""The same while models outside the resource are answering: workers that wait for them may return
to the open engine, but the callers of other engines must not wait forever."""


def overlap(first: Model, second: Model) -> bool:
    """Whether two models occupy the same resource, or the same part of it.

    The parts stand after the resource's name, as in "gpu:0,1"; without them, it is all of it.
    """
    names, parts = zip(*(_parts(model.occupies) for model in (first, second)), strict=True)
    if names[0] is None or names[0] != names[1]:
        return False
    return not all(parts) or not parts[0].isdisjoint(parts[1])


def resources_of(models: Iterable[Model]) -> dict[Model, str]:
    """The resource that each model shares with those that overlap it, and with no others."""
    groups: list[list[Model]] = []
    for model in models:
        if model.occupies is not None:
            touched = [group for group in groups if any(overlap(model, one) for one in group)]
            groups = [group for group in groups if group not in touched]
            groups.append([*(one for group in touched for one in group), model])
    return {
        model: " ".join(dict.fromkeys(str(one.occupies) for one in group))
        for group in groups
        for model in group
    }


def _parts(occupied: str | None) -> tuple[str | None, frozenset[str]]:
    name, _, parts = (occupied or "").partition(":")
    return name or None, frozenset(part for part in parts.split(",") if part)


@dataclass(kw_only=True, eq=False)
class SharedEngines:
    """The engines of runs that follow each other in one process, so that each opens once.

    `made` holds the models with an engine by the digest of their spec, and `open` those whose
    engine is open between two runs. With `judge_later`, a run leaves stages to its next session if
    their engines cannot run next to the candidate's.
    """

    made: dict[str, Model] = field(default_factory=dict)
    open: list[Model] = field(default_factory=list)
    judge_later: bool = False

    async def make_room(self, asked: Iterable[Model], wanted: Collection[Model]) -> None:
        """Close the engines that a run with the models `asked` does not want now, and those that
        cannot stay open next to the wanted ones."""
        names = resources_of(asked)
        kept: list[Model] = []
        for model in [*self.open]:
            starting = (one for one in wanted if one not in self.open)
            if (
                model in wanted
                and not any(overlap(model, one) for one in starting)
                and not any(names.get(model) == names.get(one) for one in kept)
            ):
                kept.append(model)
        await self._close([model for model in self.open if model not in kept])

    async def close(self) -> None:
        """Close every open engine, then raise the first error, if any."""
        await self._close([*self.open])

    async def _close(self, models: Iterable[Model]) -> None:
        first: HarnessError | None = None
        for model in models:
            self.open.remove(model)
            try:
                await model.close()
            except Exception as error:
                first = first or _close_error(model.identity.label, error)
        if first is not None:
            raise first


@dataclass(eq=False)
class _Engine:
    model: Model
    active: int = 0
    open: bool = False
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    turn: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    fault: HarnessError | CallError | None = None
    start: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self.model.identity.label


@dataclass(eq=False)
class _Resource:
    """A resource that one open engine holds at a time; no holder during a switch."""

    holder: _Engine | None = None
    engines: set[_Engine] = field(default_factory=set)
    quiet: asyncio.TimerHandle | None = None
    idle_since: float | None = None
    switch: asyncio.Task[None] | None = None

    def stop_waiting(self) -> None:
        if self.quiet is not None:
            self.quiet.cancel()
            self.quiet = None


class EngineGate:
    """Holds models open for their calls.

    A model that occupies no resource is opened once and stays open. Of the models that occupy the
    same resource, or the same part of it, one is open at a time: callers of the others wait until
    no call to it is in flight, then the engine with the most waiting callers is opened. A stage
    that asks two such roles in a loop therefore proceeds in rounds, one engine after the other.

    `logs` (a folder that need not exist yet) and `announce` are passed to the models. `models` are
    all models that may be asked: all their keys are checked before the first paid call. Engines
    that are `shared` may be open already, and stay open when the gate closes.
    """

    def __init__(
        self,
        *,
        one_at_a_time: bool = False,
        announce: Callable[[str], None] | None = None,
        logs: Path | None = None,
        models: Iterable[Model] = (),
        look: Callable[[], Awaitable[object]] | None = None,
        shared: SharedEngines | None = None,
    ) -> None:
        self._unchecked = list(models)
        self._names = resources_of(self._unchecked)
        self._look = look
        self._looking = asyncio.Lock()
        self._one_at_a_time = one_at_a_time
        self._announce = announce or (lambda text: None)
        self._logs = logs
        self._engines: dict[Model, _Engine] = {}
        self._resources: dict[str, _Resource] = {}
        self._stopped: HarnessError | None = None
        self._last_end = 0.0
        self._shared = shared
        for model in shared.open if shared is not None else ():
            engine = self._engines[model] = _Engine(model, open=True)
            if (name := self.resource(model)) is not None:
                self._resources[name] = _Resource(holder=engine, engines={engine})

    def resource(self, model: Model) -> str | None:
        """The resource that the model occupies while it is open."""
        one = self._one_at_a_time and not model.patient  # calls in flight do not hold it open
        return "engine" if one else self._names.get(model, model.occupies)

    @property
    def running(self) -> int:
        """The number of engines that are open."""
        engines = self._engines.values()
        return sum(one.open and one.model.occupies is not None for one in engines)

    @asynccontextmanager
    async def enter(self, model: Model) -> AsyncIterator[None]:
        """Hold the model open for one call."""
        engine = self._engines.get(model)
        if engine is None:
            engine = self._engines[model] = _Engine(model)
        name = self.resource(model)
        if name is not None:
            resource = self._resources.setdefault(name, _Resource())
            await self._wait_for_turn(engine, resource)
            resource.idle_since = None
        engine.active += 1
        try:
            if not engine.open:
                await self._open(engine)
            yield
        finally:
            engine.active -= 1
            self._last_end = asyncio.get_running_loop().time()
            for resource in self._resources.values():
                self._look_for_quiet(resource)

    def stop(self, reason: HarnessError) -> None:
        """Open no more models: callers that wait for one raise the reason, and starts are ended."""
        self._stopped = self._stopped or reason
        for engine in self._engines.values():
            engine.turn.set()
            if engine.start is not None:
                engine.start.cancel()

    async def close(self) -> None:
        """Close every open model except shared engines, then raise the first error, if any."""
        for resource in self._resources.values():
            resource.stop_waiting()
        switches = [one.switch for one in self._resources.values() if one.switch is not None]
        await asyncio.gather(*switches, return_exceptions=True)
        still_open = [engine.model for engine in self._engines.values() if engine.open]
        if self._shared is not None:
            self._shared.open = [model for model in still_open if model.occupies is not None]
            still_open = [model for model in still_open if model.occupies is None]
        first: HarnessError | None = None
        for model in still_open:
            self._engines[model].open = False
            try:
                await model.close()
            except Exception as error:
                first = first or _close_error(model.identity.label, error)
        if first is not None:
            raise first

    async def _wait_for_turn(self, engine: _Engine, resource: _Resource) -> None:
        resource.engines.add(engine)
        if resource.holder is None and resource.switch is None:
            resource.holder = engine
        while resource.holder is not engine:
            if self._stopped is not None:
                raise self._stopped.with_traceback(None)
            engine.waiting += 1
            self._look_for_quiet(resource)
            try:
                await engine.turn.wait()
            finally:
                engine.waiting -= 1

    async def _open(self, engine: _Engine) -> None:
        async with engine.opening:
            if self._stopped is not None:
                raise self._stopped.with_traceback(None)
            if engine.fault is not None:
                raise engine.fault.with_traceback(None)
            if engine.open:
                return
            if self._logs is not None:
                engine.model.attach_log(self._logs, self._announce)
            try:
                await self._require(engine.model)
                await self._start(engine)
            except (HarnessError, CallError) as error:
                engine.fault = error
                raise
            except Exception as error:
                engine.fault = ModelError(
                    "the model cannot be opened",
                    where=engine.name,
                    found=f"{type(error).__name__}: {error}",
                )
                raise engine.fault from error
            engine.open = True

    async def _start(self, engine: _Engine) -> None:
        """Open a model, until that is done or the gate is stopped."""
        engine.start = asyncio.get_running_loop().create_task(engine.model.open())
        try:
            await engine.start
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._stopped is None or (task is not None and task.cancelling()):
                raise
            raise self._stopped.with_traceback(None) from None
        finally:
            engine.start = None

    async def _require(self, opening: Model) -> None:
        """Check and look at all models if the opening model is the first that may cost money.

        Models that answer by rule or from a recording cost nothing.
        """
        if opening.identity.scope == "call" or opening.identity.recorded:
            return
        async with self._looking:
            for model in self._unchecked:
                model.require()
            self._unchecked.clear()
            if self._stopped is None and self._look is not None:
                look, self._look = self._look, None
                try:
                    await look()
                except HarnessError as error:
                    self.stop(error)
        if self._stopped is not None:
            raise self._stopped.with_traceback(None)

    def _look_for_quiet(self, resource: _Resource) -> None:
        """Schedule a check whether the resource can be switched, while callers wait for it."""
        if not self._idle(resource):
            resource.idle_since = None
            resource.stop_waiting()
            return
        loop = asyncio.get_running_loop()
        if resource.idle_since is None:
            resource.idle_since = loop.time()
        if resource.quiet is None:
            resource.quiet = loop.call_later(QUIET, self._switch_if_quiet, resource)

    def _idle(self, resource: _Resource) -> bool:
        """Whether callers wait for a resource that its holder does not use."""
        holder = resource.holder
        return (
            self._stopped is None
            and resource.switch is None
            and holder is not None
            and not holder.active
            and any(engine.waiting for engine in resource.engines)
        )

    def _switch_if_quiet(self, resource: _Resource) -> None:
        resource.quiet = None
        if self._idle(resource) and resource.idle_since is not None:
            loop = asyncio.get_running_loop()
            others = any(engine.active for engine in self._engines.values())
            all_wait = not others and loop.time() - self._last_end >= QUIET
            if all_wait or loop.time() - resource.idle_since >= QUIET_WHILE_OTHERS_ANSWER:
                resource.idle_since = None
                resource.switch = loop.create_task(self._switch(resource))
                return
        self._look_for_quiet(resource)

    async def _switch(self, resource: _Resource) -> None:
        chosen = max(resource.engines, key=lambda engine: engine.waiting)
        holder, resource.holder = resource.holder, None  # no call may enter while an engine closes
        if holder is not None:
            holder.turn.clear()
            if holder.open:
                await self._close_for(chosen, holder)
        resource.holder = chosen
        resource.switch = None
        chosen.turn.set()

    async def _close_for(self, chosen: _Engine, holder: _Engine) -> None:
        holder.open = False
        self._announce(f"closing {holder.name} for {chosen.name}")
        try:
            await holder.model.close()
        except Exception as error:
            self.stop(_close_error(holder.name, error))


def _close_error(name: str, error: Exception) -> HarnessError:
    """The error for an engine that failed to close: its own if that is a HarnessError."""
    if isinstance(error, HarnessError):
        return error
    found = f"{type(error).__name__}: {error}"
    failed = ModelError("an engine could not be closed", where=name, found=found)
    failed.__cause__ = error
    return failed
