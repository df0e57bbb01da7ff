"""Leases of a budget: portions, what comes back, workers that die; every number by hand."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from builders.loops import all_wait
from builders.requests import make_request
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import BudgetSpent
from harness.calls.budget import Claim, Meter
from harness.calls.leases import Account, Lease, Purse, Recall, Spent, Used, WorkerGivenUp, none_of
from harness.calls.policy import Budget
from harness.calls.pricing import Price, PriceTable
from harness.contracts.identity import Identity
from harness.contracts.model import Reply, Usage

MODEL = Identity(kind="openai", name="m")
ASKED = make_request("hällo", max_tokens=100)
PRICES = PriceTable(models={"openai:m": Price(input=2.0, output=10.0)})
DEAREST = 0.001444
"""200 tokens for the template, 16 for the message and 6 bytes of it are 222 at 2, and 100 at 10."""


async def nobody(worker: str, recall: Recall) -> Account:
    raise AssertionError(f"{worker} is asked to give back {recall}")


def account(budget: Budget, *, lease: Lease | None = None, claims: int = 0, **used: Any) -> Account:
    return Account(lease=lease or none_of(budget), used=Used(**used), claims=claims)


# The owner


async def test_a_portion_is_what_is_left_divided_by_four_times_the_workers():
    budget = Budget(calls=80)
    purse = Purse(budget, workers=2, recall=nobody)
    # 80 / 8 for the first, (80 - 10) / 8 for the second, and then (80 - 18) / 8 on top of 10.
    first = await purse.more("a", account(budget), Used(calls=1))
    assert first == Lease(number=1, bound=Budget(calls=10))
    second = await purse.more("b", account(budget), Used(calls=1))
    assert second == Lease(number=1, bound=Budget(calls=8))
    again = await purse.more("a", account(budget, lease=first, calls=10), Used(calls=11))
    assert again == Lease(number=2, bound=Budget(calls=17))


async def test_a_portion_pays_for_at_least_one_attempt_and_at_most_64():
    budget = Budget(calls=3)
    few = Purse(budget, recall=nobody)
    assert await few.more("a", account(budget), Used(calls=1)) == Lease(
        number=1, bound=Budget(calls=1)
    )
    budget = Budget(calls=100_000, cost=1000.0)
    many = Purse(budget, recall=nobody)
    assert await many.more("a", account(budget), Used(calls=1, cost=0.5)) == Lease(
        number=1, bound=Budget(calls=64, cost=32.0)
    )


async def test_what_was_used_before_there_were_workers_counts():
    budget = Budget(calls=9)
    purse = Purse(budget, recall=nobody, used=Used(calls=8, tokens=70))
    first = await purse.more("a", account(budget), Used(calls=1))
    assert first == Lease(number=1, bound=Budget(calls=1))
    refused = await purse.more("a", account(budget, lease=first, calls=1), Used(calls=2))
    assert refused == Spent(unit="calls", wanted=Used(calls=2), used=Used(calls=9, tokens=70))


async def test_what_a_worker_did_not_use_comes_back_when_it_ends():
    budget = Budget(calls=4)
    purse = Purse(budget, recall=nobody)
    first = await purse.more("a", account(budget), Used(calls=4))
    assert first == Lease(number=1, bound=Budget(calls=4))
    purse.end("a", account(budget, lease=first, calls=1))
    assert await purse.more("b", account(budget), Used(calls=3)) == Lease(
        number=1, bound=Budget(calls=3)
    )
    with pytest.raises(WorkerGivenUp, match="a: the worker was given up"):
        await purse.more("a", account(budget, lease=first, calls=1), Used(calls=2))


async def test_the_lease_of_a_worker_that_is_lost_counts_as_used_until_its_end_is_known():
    budget = Budget(calls=10)
    purse = Purse(budget, recall=nobody)
    lease = await purse.more("a", account(budget), Used(calls=6))
    purse.report("a", account(budget, lease=lease, calls=2))
    purse.lost("a")
    refused = await purse.more("b", account(budget), Used(calls=5))
    assert refused == Spent(
        unit="calls", wanted=Used(calls=5), used=Used(calls=2), withheld=Used(calls=4)
    )
    purse.end("a", account(budget, lease=lease, calls=3))
    assert (purse.used(), purse.withheld()) == (Used(calls=3), Used())
    assert await purse.more("b", account(budget), Used(calls=7)) == Lease(
        number=1, bound=Budget(calls=7)
    )


async def test_an_account_that_is_late_gives_nothing_back_twice():
    budget = Budget(calls=4, cost=4.0)
    purse = Purse(budget, recall=nobody)
    lease = await purse.more("a", account(budget), Used(calls=4))
    kept = lease.lowered(Budget(calls=1, cost=0.0))
    purse.report("a", account(budget, lease=kept, calls=1))
    got = await purse.more("b", account(budget), Used(calls=3))
    assert got == Lease(number=1, bound=Budget(calls=3, cost=0.0))
    # Sent before the worker gave its lease back, and read after that.
    money = await purse.more("a", account(budget, lease=lease, calls=1), Used(calls=1, cost=1.0))
    assert money == Lease(number=2, bound=Budget(calls=1, cost=1.0))
    # Sent before the last lease was read.
    purse.report("a", account(budget, lease=kept, calls=1))
    assert isinstance(await purse.more("b", account(budget, lease=got), Used(cost=3.5)), Spent)


async def test_a_worker_that_did_not_get_its_lease_gets_the_same_while_others_wait_for_it():
    repeated = asyncio.Event()
    budget = Budget(calls=4)

    async def recall(worker: str, recall: Recall) -> Account:
        assert (worker, recall.number) == ("a", 1)
        await repeated.wait()  # it waits itself until the lease is there
        return account(budget, lease=first.lowered(Budget(calls=1)), calls=1)

    purse = Purse(budget, recall=recall)
    first = await purse.more("a", account(budget), Used(calls=3))
    waits = asyncio.create_task(purse.more("b", account(budget), Used(calls=3)))
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        again = await purse.more("a", account(budget), Used(calls=3))
        assert again == first == Lease(number=1, bound=Budget(calls=3))
        repeated.set()
        assert await waits == Lease(number=1, bound=Budget(calls=3))


# The worker's side, with the owner


@dataclass
class House:
    """An owner with workers in this process; messages take some turns of the event loop."""

    budget: Budget
    names: str = "abc"
    prices: PriceTable | None = None
    delay: Callable[[], int] = lambda: 0
    said: list[str] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)
    asked: int = 0

    def __post_init__(self) -> None:
        self.purse = Purse(
            self.budget, workers=len(self.names), recall=self.recall, announce=self.said.append
        )
        self.meters = {
            name: Meter(self.budget, self.prices, more=self.way_to_owner(name))
            for name in self.names
        }
        self.sent = dict.fromkeys(self.names, 0)

    def way_to_owner(self, name: str) -> Callable[[Account, Used], Awaitable[Lease | Spent]]:
        async def more(held: Account, wanted: Used) -> Lease | Spent:
            self.asked += 1
            await self.travel()
            # The owner works on, even if the worker dies.
            served = asyncio.ensure_future(self.purse.more(name, held, wanted))
            served.add_done_callback(lambda done: done.cancelled() or done.exception())
            answer = await asyncio.shield(served)
            await self.travel()
            return answer

        return more

    async def recall(self, name: str, recall: Recall) -> Account:
        await self.travel()
        if name in self.dead:
            raise ConnectionError(name)
        held = await self.meters[name].give_back(recall)
        await self.travel()
        if name in self.dead:
            raise ConnectionError(name)
        return held

    async def travel(self) -> None:
        for _ in range(self.delay()):
            await asyncio.sleep(0)

    async def claim(self, name: str) -> Claim:
        meter = self.meters[name]
        while (claim := meter.claim(MODEL, ASKED)) is None:
            await meter.freed()
            meter.check()
        self.sent[name] += 1
        return claim

    async def attempt(self, name: str, usage: Usage | None = None) -> None:
        claim = await self.claim(name)
        await self.travel()
        self.meters[name].settle(claim, Reply(text="a", usage=usage or Usage()))


async def test_without_a_budget_nothing_is_asked_of_the_owner():
    house = House(Budget())
    for _ in range(1000):
        house.meters["a"].check()
        await house.attempt("a", Usage(prompt_tokens=10**9))
    assert (house.asked, house.sent["a"]) == (0, 1000)


async def test_money_that_others_have_in_flight_is_waited_for():
    house = House(Budget(cost=2.5 * DEAREST), names="ab", prices=PRICES)
    one, two = await house.claim("a"), await house.claim("b")
    third = asyncio.create_task(house.claim("b"))
    await all_wait()
    assert not third.done()
    assert house.said == [
        "what is left of --max_cost pays for 2 calls at the highest possible cost: no more are "
        "sent at a time"
    ]
    house.meters["a"].settle(one, Reply(text="a", usage=Usage(prompt_tokens=100)))
    claim = await asyncio.wait_for(third, 60)
    for each in (two, claim):
        house.meters["b"].settle(each, Reply(text="a", usage=Usage(prompt_tokens=700)))
    # 0.00361 less 0.0002 less twice 0.0014 is less than 0.001444.
    with pytest.raises(BudgetSpent, match="budget of money") as caught:
        await house.attempt("a")
    assert "0.003 USD spent, and the next call may cost 0.001444" in str(caught.value)
    assert "at most 0.00361 USD" in str(caught.value)


async def test_the_error_says_what_counts_as_used_because_workers_were_lost():
    house = House(Budget(calls=32), names="ab")
    await house.attempt("a")  # it holds 32 / 8, and nobody will know of the three
    house.dead.add("a")
    with pytest.raises(BudgetSpent) as caught:
        for _ in range(32):
            await house.attempt("b")
    assert house.sent == {"a": 1, "b": 28}
    assert "28 calls used; 4 calls more count as used" in str(caught.value)


async def test_an_owner_that_is_gone_ends_the_waits():
    async def gone(held: Account, wanted: Used) -> Lease:
        raise ConnectionError("the owner is gone")

    meter = Meter(Budget(calls=1), more=gone)
    assert meter.claim(MODEL, ASKED) is None
    await meter.freed()
    with pytest.raises(ConnectionError):
        meter.claim(MODEL, ASKED)


async def test_a_lease_on_its_way_comes_back_only_after_who_asked_for_it_took_a_call():
    leased = asyncio.get_running_loop().create_future()

    async def more(held: Account, wanted: Used) -> Lease:
        return await leased

    meter = Meter(Budget(calls=9), more=more)
    gives = asyncio.create_task(meter.give_back(Recall(number=1, settled=False)))
    await asyncio.sleep(0)

    async def attempt() -> Claim | None:
        assert meter.claim(MODEL, ASKED) is None
        await meter.freed()
        return meter.claim(MODEL, ASKED)

    asks = asyncio.create_task(attempt())
    for _ in range(9):
        await asyncio.sleep(0)
    assert not gives.done()
    leased.set_result(Lease(number=1, bound=Budget(calls=3)))
    assert await asks is not None
    assert (await gives).lease == Lease(number=1, bound=Budget(calls=1))


async def test_a_meter_that_is_closed_waits_for_no_lease():
    asked = asyncio.Event()

    async def never(held: Account, wanted: Used) -> Lease:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    meter = Meter(Budget(calls=1), more=never)
    assert meter.claim(MODEL, ASKED) is None
    await asked.wait()
    waits = asyncio.create_task(meter.freed())
    await asyncio.sleep(0)
    meter.close()
    await asyncio.wait_for(waits, 60)


# With clients


# Any workers, any order


@dataclass(frozen=True)
class Scene:
    """How many attempts each worker would make, how many at once, and who dies after how many."""

    attempts: list[int]
    at_once: list[int]
    dies_after: list[int | None]
    seed: int

    @property
    def names(self) -> str:
        return "abcdef"[: len(self.attempts)]


@st.composite
def scenes(draw: st.DrawFn, *, deaths: bool) -> Scene:
    count = draw(st.integers(1, 5))
    numbers = st.integers(1, 9) if deaths else st.none()
    return Scene(
        attempts=draw(st.lists(st.integers(0, 40), min_size=count, max_size=count)),
        at_once=draw(st.lists(st.integers(1, 6), min_size=count, max_size=count)),
        dies_after=[None, *draw(st.lists(numbers, min_size=count - 1, max_size=count - 1))],
        seed=draw(st.integers(0, 2**32)),
    )


def play(scene: Scene, budget: Budget, usage: Callable[[Random], Usage]) -> House:
    """The house after everybody made its attempts, or was refused."""
    return asyncio.run(asyncio.wait_for(_play(scene, budget, usage), 60))


async def _play(scene: Scene, budget: Budget, usage: Callable[[Random], Usage]) -> House:
    rng = Random(scene.seed)
    house = House(budget, names=scene.names, prices=PRICES, delay=lambda: rng.randrange(4))
    left = dict(zip(scene.names, scene.attempts, strict=True))
    dies_after = dict(zip(scene.names, scene.dies_after, strict=True))
    flying: dict[str, list[asyncio.Task[None]]] = {}
    deaths: list[asyncio.Task[None]] = []

    async def slot(name: str) -> None:
        while left[name] and name not in house.dead:
            left[name] -= 1
            await house.attempt(name, usage(rng))
            if house.sent[name] == dies_after[name]:
                deaths.append(asyncio.create_task(die(name)))

    async def die(name: str) -> None:
        house.dead.add(name)
        house.meters[name].close()
        for task in flying[name]:
            task.cancel()
        for _ in range(rng.randrange(30)):
            await asyncio.sleep(0)
        house.purse.lost(name)

    for name, at_once in zip(scene.names, scene.at_once, strict=True):
        flying[name] = [asyncio.create_task(slot(name)) for _ in range(at_once)]
    tasks = [task for each in flying.values() for task in each]
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(end) for end in ends} <= {type(None), BudgetSpent, asyncio.CancelledError}
    await asyncio.gather(*deaths)
    house.purse.close()
    return house


def no_usage(rng: Random) -> Usage:
    return Usage()


@given(scenes(deaths=False), st.integers(0, 120))
def test_exactly_as_many_calls_are_sent_as_the_budget_allows(scene, calls):
    house = play(scene, Budget(calls=calls), no_usage)
    assert sum(house.sent.values()) == min(calls, sum(scene.attempts))


@given(scenes(deaths=True), st.integers(0, 120))
def test_workers_that_die_take_their_leases_with_them_and_no_more(scene, calls):
    house = play(scene, Budget(calls=calls), no_usage)
    sent = sum(house.sent.values())
    assert sent <= calls
    alive = [name for name in scene.names if name not in house.dead]
    wanted = sum(
        count for name, count in zip(scene.names, scene.attempts, strict=True) if name in alive
    )
    if sum(house.sent[name] for name in alive) < wanted:  # somebody was refused
        counted = house.purse.used().calls + house.purse.withheld().calls
        known = sum(house.meters[name].calls for name in alive)
        assert known == sum(house.sent[name] for name in alive)
        assert counted == calls


@given(scenes(deaths=True), st.integers(0, 3000))
def test_tokens_exceed_their_bound_only_by_what_is_in_flight(scene, tokens):
    house = play(scene, Budget(tokens=tokens), lambda rng: Usage(prompt_tokens=rng.randrange(100)))
    used = sum(meter.tokens for meter in house.meters.values())
    assert used <= tokens + 99 * sum(scene.at_once)


def dear(rng: Random) -> Usage:
    return Usage(prompt_tokens=rng.randrange(723))


@given(scenes(deaths=False), st.integers(0, 40))
def test_money_is_never_overspent_and_spent_until_no_call_can_be_paid(scene, attempts):
    limit = attempts * DEAREST / 3
    house = play(scene, Budget(cost=limit), dear)
    spent = sum(meter.spent for meter in house.meters.values())
    assert spent <= limit + 1e-9
    if sum(house.sent.values()) < sum(scene.attempts):
        assert spent + DEAREST > limit - 1e-9


@given(scenes(deaths=True), st.integers(0, 40))
def test_money_is_never_overspent_though_workers_die(scene, attempts):
    limit = attempts * DEAREST / 3
    house = play(scene, Budget(cost=limit, calls=attempts), dear)
    reserved = sum(meter.spent + meter._set_aside for meter in house.meters.values())
    assert reserved <= limit + 1e-9
    assert sum(house.sent.values()) <= attempts
