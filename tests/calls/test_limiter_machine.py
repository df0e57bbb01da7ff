"""Calls to two models under one budget: never above a limit, and every number as counted by hand.

Calls begin, attempts are answered, fail or are refused, time passes and callers give up. What is in
flight and what it costs is counted at the server's side; the client must agree with it.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from builders.machines import run_machine
from builders.requests import make_request
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from simulated.loop import SimulatedLoop

from harness.base.errors import BudgetSpent, Interrupted
from harness.calls.budget import Budget, Meter
from harness.calls.client import Answer, Client
from harness.calls.pricing import Price, PriceTable
from harness.calls.retry import Patience
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Model, Reply, Request, Usage

PRICES = PriceTable(models={"script:*": Price(input=2.0, output=10.0)})
DEAREST = 0.001434
"""200 tokens for the template, 16 for the message and 1 byte of it at 2, and 100 at 10."""
NAMES = st.sampled_from(["one", "two"])
TROUBLES = {"server_error": 0.0, "connection": DEAREST, "timeout": DEAREST}
"""What an attempt that ends so counts as: lost ones may have been billed."""


@dataclass
class Attempt:
    number: int
    ends: asyncio.Future[Reply]


@dataclass
class Scripted(Model):
    """A model whose attempts end when the machine says so."""

    name: str
    concurrency: int
    flying: list[Attempt] = field(default_factory=list)
    sent: int = 0
    most: int = 0
    lost: int = 0

    def __post_init__(self) -> None:
        self.identity = Identity(kind="script", name=self.name)

    __hash__ = object.__hash__

    async def ask(self, request: Request) -> Reply:
        self.sent += 1
        one = Attempt(self.sent, asyncio.get_running_loop().create_future())
        self.flying.append(one)
        self.most = max(self.most, len(self.flying))
        try:
            return await one.ends
        except asyncio.CancelledError:
            self.lost += 1
            raise
        finally:
            self.flying.remove(one)


class Calls(RuleBasedStateMachine):
    """The model: attempts sent, money counted and tokens used, all from what the server did."""

    @initialize(
        ceilings=st.tuples(st.integers(1, 4), st.integers(1, 4)),
        calls=st.none() | st.integers(0, 12), tokens=st.none() | st.integers(0, 1500),
        attempts=st.none() | st.integers(0, 20), seed=st.integers(0, 9),
    )  # fmt: skip
    def begin(
        self, ceilings: Any, calls: int | None, tokens: int | None, attempts: int | None, seed: int
    ) -> None:
        self.loop = SimulatedLoop(Random(seed))
        self.budget = Budget(
            calls=calls, tokens=tokens, cost=None if attempts is None else attempts * DEAREST / 3
        )
        self.models = {
            name: Scripted(name, ceiling)
            for name, ceiling in zip(("one", "two"), ceilings, strict=True)
        }
        self.spent, self.tokens, self.most_tokens = 0.0, 0, 0
        self.answered, self.asked = Counter[str](), 0
        self.tasks: list[asyncio.Task[Answer]] = []
        self.stopped = False
        patience = Patience(attempts=3, first_delay=1.0, longest_delay=4.0, attempt_timeout=1e6)

        async def made() -> Client:
            client = Client(
                store=None, run_id="r", patience=patience, meter=Meter(self.budget, PRICES)
            )
            client._rng = Random(seed)
            return client

        self.client = self.loop.run_until_complete(made())

    def teardown(self) -> None:
        for _ in range(1000):
            if not any(one.flying for one in self.models.values()):
                if all(task.done() for task in self.tasks):
                    break
                self.pause(60.0)
            for model in self.models.values():
                while model.flying:
                    self.ends(model, 0, Reply(text="ok", usage=Usage(prompt_tokens=10)), 0.00002)
        self.agrees()
        ends = [
            asyncio.CancelledError() if task.cancelled() else task.exception() or task.result()
            for task in self.tasks
        ]
        kinds = Answer, BudgetSpent, Interrupted, asyncio.CancelledError
        assert {type(end) for end in ends} <= set(kinds)
        assert self.client.meter.claims == 0
        if any(isinstance(end, BudgetSpent) for end in ends):
            budget = self.budget
            assert (
                self.sent == budget.calls
                or (budget.tokens is not None and self.tokens >= budget.tokens)
                or (budget.cost is not None and self.spent + DEAREST > budget.cost - 1e-9)
            )
        for line in self.client._states.values():
            assert line.limiter.busy == 0
        self.loop.close()

    @property
    def sent(self) -> int:
        return sum(one.sent for one in self.models.values())

    def pause(self, seconds: float = 0.0) -> None:
        """Let every task run until it waits, and time pass."""

        async def passes() -> None:
            for _ in range(30):
                await asyncio.sleep(0)
            if seconds:
                await asyncio.sleep(seconds)

        self.loop.run_until_complete(passes())

    @rule(name=NAMES, number=st.integers(0, 9))
    def ask(self, name: str, number: int) -> None:
        """A question, which may be in flight already: then it is not sent again."""
        request = make_request(chr(97 + number), max_tokens=100)
        work = self.client.ask(self.models[name], request, role="candidate", stage="s")
        self.tasks.append(self.loop.create_task(work))
        self.asked += 1
        self.pause()

    @rule(name=NAMES, count=st.integers(2, 8))
    def ask_many(self, name: str, count: int) -> None:
        for number in range(count):
            self.ask(name, 10 + number)

    def ends(self, model: Scripted, place: int, outcome: Reply | CallError, cost: float) -> None:
        one = model.flying[place % len(model.flying)]
        if isinstance(outcome, CallError):
            one.ends.set_exception(outcome)
        else:
            one.ends.set_result(outcome)
        if outcome.usage is not None:
            self.tokens += outcome.usage.prompt_tokens + outcome.usage.completion_tokens
        if self.budget.cost is not None:
            self.spent += cost
        self.pause()

    def flying(self, name: str) -> Scripted | None:
        return self.models[name] if self.models[name].flying else None

    @rule(name=NAMES, place=st.integers(0, 9), tokens=st.integers(0, 217), last=st.integers(0, 100))
    def answer(self, name: str, place: int, tokens: int, last: int) -> None:
        if model := self.flying(name):
            usage = Usage(prompt_tokens=tokens, completion_tokens=last)
            cost = (2 * tokens + 10 * last) / 1_000_000
            self.ends(model, place, Reply(text="ok", usage=usage), cost)

    @rule(name=NAMES, place=st.integers(0, 9), cause=st.sampled_from(sorted(TROUBLES)))
    def fail(self, name: str, place: int, cause: str) -> None:
        if model := self.flying(name):
            error = CallError(cause, "for now", retryable=True)
            self.client._states[model].reached = True  # else it ends the run
            self.ends(model, place, error, TROUBLES[cause])

    @rule(name=NAMES, place=st.integers(0, 9), tokens=st.integers(0, 217))
    def fail_with_a_bill(self, name: str, place: int, tokens: int) -> None:
        if model := self.flying(name):
            usage = Usage(prompt_tokens=tokens)
            error = CallError("no_content", "", retryable=True, usage=usage)
            self.ends(model, place, error, 2 * tokens / 1_000_000)

    @rule(name=NAMES, pause=st.none() | st.sampled_from([0.5, 30.0]), times=st.integers(1, 4))
    def refuse(self, name: str, pause: float | None, times: int) -> None:
        for _ in range(times):
            if model := self.flying(name):
                error = CallError("rate_limited", "later", retryable=True, retry_after=pause)
                self.ends(model, 0, error, 0.0)

    @precondition(lambda self: any(not task.done() for task in self.tasks))
    @rule(place=st.integers(0, 99))
    def give_up(self, place: int) -> None:
        """A caller is cancelled: an attempt of its own may have been billed."""
        waiting = [task for task in self.tasks if not task.done()]
        lost = sum(one.lost for one in self.models.values())
        waiting[place % len(waiting)].cancel()
        self.pause()
        lost = sum(one.lost for one in self.models.values()) - lost
        if self.budget.cost is not None:
            self.spent += lost * DEAREST

    @rule(seconds=st.sampled_from([0.1, 2.0, 40.0]))
    def time_passes(self, seconds: float) -> None:
        self.pause(seconds)

    @precondition(lambda self: not self.stopped and self.asked > 5)
    @rule(often=st.integers(0, 9))
    def stop(self, often: int) -> None:
        if often == 0:
            self.client.stop(Interrupted("enough"))
            self.stopped = True
            sent = self.sent
            self.pause(100.0)
            assert self.sent == sent

    @invariant()
    def agrees(self) -> None:
        meter, budget = self.client.meter, self.budget
        flying = {name: len(model.flying) for name, model in self.models.items()}
        assert (meter.calls, meter.tokens) == (self.sent, self.tokens)
        assert abs(meter.spent - self.spent) < 1e-9
        assert meter.claims == (sum(flying.values()) if budget.cost is not None else 0)
        if budget.calls is not None:
            assert self.sent <= budget.calls
        if budget.cost is not None:
            assert self.spent + DEAREST * sum(flying.values()) <= budget.cost + 1e-9
        if budget.tokens is not None:
            assert self.tokens <= budget.tokens + 317 * sum(
                one.most for one in self.models.values()
            )
        for name, model in self.models.items():
            assert model.most <= model.concurrency, name
        use = self.client.usage.of("s", "candidate")
        assert (use.calls, use.attempts) == (self.asked, self.sent)
        assert use.prompt_tokens + use.completion_tokens == self.tokens
        for report in self.client.limits().values():
            assert 1 <= report["lowest"] <= report["limit"] <= report["ceiling"]


def test_calls_keep_within_every_limit_and_are_counted_as_the_server_does() -> None:
    run_machine(Calls, examples=60, steps=25)
