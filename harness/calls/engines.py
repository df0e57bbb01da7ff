"""When a model is asked: it has a limit of requests in flight, which adapts to its rate limits.

It is opened at its first call, and only one at a time of those that share a resource.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness.base.errors import HarnessError, ModelError
from harness.contracts.model import CallError, Model

Ending = Literal["success", "rate limit", "trouble"]
"""How a request ended; "trouble" is a server error, a lost connection or a timeout."""

LEAST_ANSWERS = 50
"""A share is one of at least so many answers."""

BEARABLE = 0.05
"""Up to this share of answers, 429s and troubles concern only the requests that met them."""

KEPT_CHANGES = 200


class Limiter:
    """Admits at most `limit` requests at once, first come first served.

    The limit starts at the ceiling. When more than 5% of the answers of the last two rounds are
    429s, it falls to 0.7 of itself, and again only after a request that was sent since succeeded,
    or was sent a round trip later: once a round trip. A round of successes, as many as are admitted
    at once, raises it by a tenth up to the last cut, and then by one; with more than 5% of troubles
    it does not grow. A Retry-After holds up all requests only above these shares. Requests that
    were sent before a cut do not test the new limit, so they do not count. Below the ceiling,
    requests are spread over a round trip, which counts as a second until one succeeds: servers
    limit what comes at once.
    """

    def __init__(self, ceiling: int, *, clock: Callable[[], float] | None = None) -> None:
        self.ceiling = max(1, ceiling)
        self.limit = float(self.ceiling)
        self.busy = 0
        self._clock = clock or asyncio.get_running_loop().time
        self._began = self._clock()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._dismissed: Exception | None = None
        self._endings: deque[Ending] = deque()
        self._counts: Counter[Ending] = Counter()
        self._last_cut = self._opens = self._paused_until = float("-inf")
        self._round_trip: float | None = None
        self._cut_from = self.limit
        self._tested = True
        self._cuts = self._pauses = 0
        self._lowest = self.ceiling
        self._cause: str | None = None
        self._changes: list[dict[str, Any]] = []
        self._unlisted = 0

    async def acquire(self) -> None:
        """Wait for a slot; return it with `release`."""
        if self._dismissed is not None:
            raise self._dismissed.with_traceback(None)  # else it grows with every raise
        if not self._waiting and self._free():
            self._enter()
            return
        slot = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
        self._admit()
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled() and slot.exception() is None:
                self.release()
            raise

    def release(self) -> None:
        """Return a slot."""
        self.busy -= 1
        if self._waiting:
            self._admit()

    def dismiss(self, error: Exception) -> None:
        """Give out no more slots: requests that wait, and all later ones, raise the error."""
        self._dismissed = error
        while self._waiting:
            slot = self._waiting.popleft()
            if not slot.done():
                slot.set_exception(error)

    def learn(self, ending: Ending, *, sent: float, pause: float = 0.0) -> None:
        """Adapt to how a request ended that was sent at `sent` (clock time).

        `pause` is the Retry-After of the answer, in seconds.
        """
        if sent < self._last_cut:
            return
        if ending == "success" or sent >= self._last_cut + (self._round_trip or 1.0):
            self._tested = True
        self._endings.append(ending)
        self._counts[ending] += 1
        if len(self._endings) > max(LEAST_ANSWERS, 2 * self.limit):
            self._counts[self._endings.popleft()] -= 1
        if ending == "success":
            seconds = self._clock() - sent
            mean = seconds if self._round_trip is None else self._round_trip
            self._round_trip = mean + (seconds - mean) / 16
            if self.limit < self.ceiling and not (
                self._too_many("rate limit") or self._too_many("trouble")
            ):
                self._grow()
        elif self._too_many(ending):
            if ending == "rate limit" and self._tested and self.limit > 1:
                self._cut()
            if pause:
                until, already = self._clock() + pause, self._paused()
                self._paused_until = max(until, self._paused_until)
                self._opens = max(self._opens, until)
                if not already:
                    self._pauses += 1
                    self._note("paused")

    def report(self) -> dict[str, Any]:
        """The limiter's history as JSON values; `at` is seconds since the first call."""
        return {
            "ceiling": self.ceiling,
            "limit": int(self.limit),
            "lowest": self._lowest,
            "throttled": "it asked for a pause (Retry-After)" if self._paused() else self._cause,
            "cuts": self._cuts,
            "pauses": self._pauses,
            "changes": list(self._changes),
            "changes_unlisted": self._unlisted,
        }

    def _too_many(self, ending: Ending) -> bool:
        # Refusals come before answers: those in flight count where there are more of them.
        return self._counts[ending] > BEARABLE * max(LEAST_ANSWERS, len(self._endings), self.busy)

    def _grow(self) -> None:
        part = 0.1 if self.limit < self._cut_from else 0.0
        self.limit = min(float(self.ceiling), self.limit + max(part, 1.0 / self.limit))
        if self.limit > self.ceiling - 0.01:
            self.limit = float(self.ceiling)
            self._cause = None
            self._note("recovered")
        self._admit()

    def _cut(self) -> None:
        limited, of = self._counts["rate limit"], len(self._endings)
        self._cause = f"{limited:,} of its last {of:,} answers were HTTP 429"
        self._cut_from = self.limit
        self.limit = max(1.0, 0.7 * self.limit)
        self._lowest = min(self._lowest, int(self.limit))
        self._cuts += 1
        self._last_cut = self._clock()
        self._tested = False
        self._endings.clear()
        self._counts.clear()
        self._note("rate limited")

    def _paused(self) -> bool:
        return self._clock() < self._paused_until

    def _free(self) -> bool:
        return self.busy < int(self.limit) and self._clock() >= self._opens

    def _admit(self) -> None:
        while self._waiting and self._free():
            slot = self._waiting.popleft()
            if not slot.done():
                self._enter()
                slot.set_result(None)
        wait = self._opens - self._clock()
        if self._waiting and self._timer is None and wait > 0:
            self._timer = asyncio.get_running_loop().call_later(wait, self._open)

    def _enter(self) -> None:
        """Take a place; below the ceiling, the next is taken a part of a round trip later."""
        self.busy += 1
        if self.limit < self.ceiling:
            self._opens = self._clock() + (self._round_trip or 1.0) / self.limit

    def _open(self) -> None:
        self._timer = None
        self._admit()

    def _note(self, why: str) -> None:
        if len(self._changes) >= KEPT_CHANGES:
            self._unlisted += 1
            return
        at = round(self._clock() - self._began, 3)
        change: dict[str, Any] = {"at": at, "limit": int(self.limit), "why": why}
        if why == "paused":
            change["seconds"] = round(self._paused_until - self._clock(), 3)
        self._changes.append(change)


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
        unwanted = [model for model in self.open if model not in kept]
        await _close_each(unwanted, self.open.remove)

    async def close(self) -> None:
        """Close every open engine, then raise the first error, if any."""
        await _close_each([*self.open], self.open.remove)


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

        def forget(model: Model) -> None:
            self._engines[model].open = False

        await _close_each(still_open, forget)

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


async def _close_each(models: Iterable[Model], forget: Callable[[Model], None]) -> None:
    """Close these models, each forgotten before, then raise the first error, if any."""
    first: HarnessError | None = None
    for model in models:
        forget(model)
        try:
            await model.close()
        except Exception as error:
            first = first or _close_error(model.identity.label, error)
    if first is not None:
        raise first


def _close_error(name: str, error: Exception) -> HarnessError:
    """The error for an engine that failed to close: its own if that is a HarnessError."""
    if isinstance(error, HarnessError):
        return error
    found = f"{type(error).__name__}: {error}"
    failed = ModelError("an engine could not be closed", where=name, found=found)
    failed.__cause__ = error
    return failed
