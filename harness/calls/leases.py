"""Hands out a budget that several workers share: each gets a lease, and asks for more in time.

A worker's meter (`harness.calls.budget`) counts what it uses and keeps within its lease. Leases
hold totals, not additions, and are numbered: a message that is lost, repeated or late spends
nothing twice.
"""

from __future__ import annotations

import asyncio
import math
import operator
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from harness.base.errors import HarnessError
from harness.calls.policy import Budget

Unit = Literal["calls", "tokens", "cost"]
UNITS: tuple[Unit, ...] = ("calls", "tokens", "cost")

PARTS = 4
"""Into how many portions per worker the rest of a budget is divided; the last ones are small."""

MOST_ATTEMPTS = 64
"""The most attempts that one portion pays for: a worker that dies takes no more with it."""


class WorkerGivenUp(HarnessError):
    """A worker was given up: it records nothing more, as others do its work."""


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts, tokens and money that were used, or would be."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """How much one worker may use in all; a lease of a higher number replaces those before."""

    number: int = 0
    bound: Budget

    def lacks(self, wanted: Used) -> Unit | None:
        """The first unit of which more is wanted than leased; None if all is covered."""
        bound = self.bound
        if bound.calls is not None and wanted.calls > bound.calls:
            return "calls"
        if bound.tokens is not None and wanted.tokens > bound.tokens:
            return "tokens"
        if bound.cost is not None and wanted.cost > bound.cost:
            return "cost"
        return None

    def lowered(self, kept: Budget) -> Lease:
        """The lease without what is beyond `kept`."""
        ours = self.bound
        bound = {
            unit: min(getattr(ours, unit), getattr(kept, unit))
            for unit in UNITS
            if getattr(ours, unit) is not None
        }
        return Lease(number=self.number, bound=Budget(**bound))


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """The refusal of a lease: too little of one unit is left, and nothing will come back.

    `used` is what all workers used together; `withheld` counts as used because workers that were
    lost held it. As much as `wanted`, or more, is refused.
    """

    unit: Unit
    wanted: Used
    used: Used
    withheld: Used = Used()


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has: its lease, what it used, and the attempts that have money reserved."""

    lease: Lease
    used: Used
    claims: int = 0


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """A worker is asked to give back what it does not use of its lease `number`.

    `settled`: it answers when it has something to give back, or reserves no money any more.
    """

    number: int
    settled: bool


@dataclass(kw_only=True)
class _Worker:
    """What the owner knows of a worker; nothing is leased to one that is gone."""

    lease: Lease
    used: Used = field(default_factory=Used)
    claims: int = 0
    gone: bool = False

    def counted(self, unit: Unit) -> Any:
        """How much of the budget the worker takes: its lease, or what it used beyond it."""
        return max(getattr(self.lease.bound, unit) or 0, getattr(self.used, unit))

    def withheld(self) -> Used:
        """How much it takes that it did not report as used."""
        known = Used(
            calls=self.counted("calls"), tokens=self.counted("tokens"), cost=self.counted("cost")
        )
        return _each(operator.sub, known, self.used)

    def unused(self, unit: Unit) -> bool:
        """Whether the worker may give back some of this unit."""
        return not self.gone and bool(self.counted(unit) > getattr(self.used, unit))


class Purse:
    """Holds what is left of a budget, and leases it to workers by name; lives in one event loop.

    A worker gets what its next attempt needs, and on top of it a portion: what is left, divided by
    four times the number of workers, but no more than 64 such attempts need. When too little is
    left, the others are asked by `recall` for what they do not use; only if that is too little too,
    the lease is refused. So every attempt that the budget pays for is sent, whichever worker asks.

    A worker that is lost, or whose `recall` raises, keeps its lease: as it cannot be known what the
    worker did with it, all of it counts as used, until its `end` is reported after all.

    `workers`: how many are expected. `used`: what was used before there were workers.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        recall: Callable[[str, Recall], Awaitable[Account]],
        workers: int = 1,
        used: Used | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        self._budget = budget
        self._recall = recall
        self._workers = workers
        self._before = used or Used()
        self._announce = announce
        self._named: dict[str, _Worker] = {}
        self._turn = asyncio.Lock()
        self._recalls: dict[tuple[str, bool], asyncio.Task[None]] = {}

    async def more(self, worker: str, account: Account, wanted: Used) -> Lease | Spent:
        """A lease that covers `wanted`, the worker's total with its next attempt.

        Waits while attempts of other workers reserve the money. Raises WorkerGivenUp for a worker
        that was given up.
        """
        self.report(worker, account)
        known = self._named[worker]
        if account.lease.number < known.lease.number and not known.gone:
            return known.lease  # the answer with it was lost, and others may wait for this worker
        async with self._turn:
            return await self._serve(worker, wanted)

    def report(self, worker: str, account: Account) -> None:
        """Take a worker's account; any worker may send it at any time."""
        known = self._named.setdefault(worker, _Worker(lease=none_of(self._budget)))
        known.used = _each(max, known.used, account.used)
        if account.lease.number == known.lease.number:  # else a later lease is on its way
            known.lease = known.lease.lowered(account.lease.bound)
        known.claims = account.claims

    def end(self, worker: str, account: Account) -> None:
        """Take the last account of a worker that uses nothing more: its lease comes back."""
        self.report(worker, account)
        known = self._named[worker]
        known.lease = none_of(self._budget, number=known.lease.number + 1)
        self._part(worker)

    def lost(self, worker: str) -> None:
        """Give a worker up: it gets no further lease, and the one that it holds counts as used."""
        self._named.setdefault(worker, _Worker(lease=none_of(self._budget)))
        self._part(worker)

    def used(self) -> Used:
        """What all workers used together, as far as they reported."""
        return _sum([self._before, *(one.used for one in self._named.values())])

    def withheld(self) -> Used:
        """What counts as used because workers that were lost held it."""
        return _sum(one.withheld() for one in self._named.values() if one.gone)

    def close(self) -> None:
        """Ask for nothing back any more."""
        for task in self._recalls.values():
            task.cancel()

    async def _serve(self, worker: str, wanted: Used) -> Lease | Spent:
        asker = self._named[worker]
        heard: set[str] = set()
        while not asker.gone:
            unit = self._short(worker, wanted)
            if unit is None:
                return self._lease(worker, wanted)
            owing = {name for name, other in self._named.items() if other.unused(unit)}
            owing.discard(worker)
            unheard = owing - heard
            if not unheard:
                if unit == "cost":
                    self._announce_waiting()
                if unit != "cost" or not owing:
                    return Spent(
                        unit=unit, wanted=wanted, used=self.used(), withheld=self.withheld()
                    )
            recalls = {self._recalled(name, settled=not unheard): name for name in unheard or owing}
            done, _ = await asyncio.wait(recalls, return_when=asyncio.FIRST_COMPLETED)
            heard.update(recalls[task] for task in done)
        raise WorkerGivenUp("the worker was given up, as it did not answer", where=worker)

    def _short(self, worker: str, wanted: Used) -> Unit | None:
        """The first unit of which less is left than the worker's lease lacks."""
        held = self._named[worker].lease.bound
        for unit in UNITS:
            bound, want = getattr(self._budget, unit), getattr(wanted, unit)
            if bound is None or want <= getattr(held, unit):
                continue
            if want + self._others(worker, unit) > bound:
                return unit
        return None

    def _lease(self, worker: str, wanted: Used) -> Lease:
        asker = self._named[worker]
        workers = max(self._workers, sum(not one.gone for one in self._named.values()))
        raised = {}
        for unit in UNITS:
            bound, held = getattr(self._budget, unit), getattr(asker.lease.bound, unit)
            want = getattr(wanted, unit)
            if bound is None or want <= held:
                continue
            counted = asker.counted(unit)
            left = bound - self._others(worker, unit) - counted
            portion = left / (PARTS * workers)
            if unit != "tokens":  # the tokens of an attempt are not known in advance
                portion = min(portion, MOST_ATTEMPTS * (want - counted))
            raised[unit] = max(want, counted + (portion if unit == "cost" else int(portion)))
        asker.lease = Lease(
            number=asker.lease.number + 1,
            bound=msgspec.structs.replace(asker.lease.bound, **raised),
        )
        return asker.lease

    def _others(self, worker: str, unit: Unit) -> Any:
        """How much of a unit is used by, or leased to, everybody else."""
        counted = [one.counted(unit) for name, one in self._named.items() if name != worker]
        counted.append(getattr(self._before, unit))
        return math.fsum(counted) if unit == "cost" else sum(counted)

    def _recalled(self, worker: str, *, settled: bool) -> asyncio.Task[None]:
        """The question to a worker for what it does not use; it is asked once at a time."""
        place = (worker, settled)
        if place not in self._recalls:
            number = self._named[worker].lease.number
            recall = Recall(number=number, settled=settled)
            self._recalls[place] = asyncio.ensure_future(self._take_back(worker, recall))
        return self._recalls[place]

    async def _take_back(self, worker: str, recall: Recall) -> None:
        try:
            account = await self._recall(worker, recall)
        except Exception:
            account = None
        finally:
            del self._recalls[worker, recall.settled]
        if account is None:
            self.lost(worker)
        else:
            self.report(worker, account)

    def _part(self, worker: str) -> None:
        """Lease nothing more to a worker, and ask it for nothing."""
        self._named[worker].gone = True
        for settled in (False, True):
            if task := self._recalls.get((worker, settled)):
                task.cancel()

    def _announce_waiting(self) -> None:
        claims = sum(one.claims for one in self._named.values() if not one.gone)
        if claims and self._announce is not None:
            self._announce(pays_for(claims))
            self._announce = None


def none_of(budget: Budget, *, number: int = 0) -> Lease:
    """A lease of nothing of what a budget bounds."""
    bound = {unit: 0 for unit in UNITS if getattr(budget, unit) is not None}
    return Lease(number=number, bound=Budget(**bound))


def pays_for(claims: int) -> str:
    """The line for the user when attempts wait until others release money."""
    return (
        f"what is left of --max_cost pays for {claims} {'call' if claims == 1 else 'calls'}"
        " at the highest possible cost: no more are sent at a time"
    )


def _each(combine: Callable[[Any, Any], Any], one: Used, other: Used) -> Used:
    return Used(**{unit: combine(getattr(one, unit), getattr(other, unit)) for unit in UNITS})


def _sum(parts: Iterable[Used]) -> Used:
    parts = list(parts)
    return Used(
        calls=sum(one.calls for one in parts),
        tokens=sum(one.tokens for one in parts),
        cost=math.fsum(one.cost for one in parts),
    )
