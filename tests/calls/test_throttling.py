"""Calls through client, limiter and retries to servers that refuse some, in virtual time."""

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest
from builders.loops import in_virtual_time
from builders.requests import make_request

from harness.calls.client import Client
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Model, Reply, Request

PLACES = 300
CALLERS = 337  # a lane for 300 places has so many workers
SECONDS = 3.0


def refused(retry_after: float | None) -> CallError:
    return CallError("rate_limited", "later", retryable=True, retry_after=retry_after)


class Server(Model):
    """A model of 300 places that answers after three seconds, and notes when it was asked."""

    def __init__(self, retry_after: float | None) -> None:
        self.identity = Identity(kind="server", name="m")
        self.concurrency = PLACES
        self.retry_after = retry_after
        self.asked: list[float] = []

    async def ask(self, request: Request) -> Reply:
        self.asked.append(asyncio.get_running_loop().time())
        if error := self.error():
            await asyncio.sleep(0.05 if error.cause == "rate_limited" else SECONDS)
            raise error
        await asyncio.sleep(SECONDS)
        return Reply(text="ok")

    def error(self) -> CallError | None:
        """The error that the next answer is, if it is one."""
        raise NotImplementedError


class Unsteady(Server):
    """Refuses a share of the requests by chance, and fails at others."""

    def __init__(self, limited: float, troubled: float, retry_after: float | None) -> None:
        super().__init__(retry_after)
        self.shares = limited, limited + troubled
        self.draw = Random(0)

    def error(self) -> CallError | None:
        drawn = self.draw.random()
        if drawn < self.shares[0]:
            return refused(self.retry_after)
        failed = drawn < self.shares[1]
        return CallError("server_error", "oh", retryable=True) if failed else None


class Bucket(Server):
    """Lets twenty requests a second through, and at most those of one second at once."""

    tokens, at = 20.0, 0.0

    def error(self) -> CallError | None:
        now = self.asked[-1]
        self.tokens, self.at = min(20.0, self.tokens + 20 * (now - self.at)), now
        if self.tokens < 1:
            return refused(self.retry_after)
        self.tokens -= 1
        return None


def answered(server: Server, requests: int) -> tuple[float, dict[str, Any], int]:
    """The seconds that so many calls take, the report on the limiter, and the timers set."""

    async def work() -> dict[str, Any]:
        client = Client(store=None, run_id="r")
        left = iter(range(requests))

        async def worker() -> None:
            for one in left:
                request = make_request(str(one))
                answer = await client.ask(server, request, role="candidate", stage="s")
                assert answer.failure is None

        await asyncio.gather(*[worker() for _ in range(CALLERS)])
        return client.limits()["server:m"]

    report, loop = in_virtual_time(work())
    return loop.now, report, loop.timers


@pytest.mark.parametrize(
    ("limited", "troubled", "retry_after", "least"),
    [(0.003, 0.017, None, 90), (0.01, 0.01, 1.0, 80)],
)
def test_a_few_errors_cost_few_places(limited, troubled, retry_after, least):
    seconds, report, _ = answered(Unsteady(limited, troubled, retry_after), 6000)
    assert 6000 / seconds >= least  # without errors, there would be 100 a second
    assert (report["lowest"], report["throttled"]) == (PLACES, None)


@pytest.mark.parametrize("retry_after", [None, 1.0])
def test_a_server_that_takes_less_is_asked_about_as_much_as_it_takes(retry_after):
    server = Bucket(retry_after)
    seconds, report, timers = answered(server, 4000)
    assert seconds <= 1.1 * (4000 - 20) / 20 + SECONDS
    assert len(server.asked) <= 40 * seconds
    each = Counter(int(at) for at in server.asked)
    assert max(count for second, count in each.items() if second >= 6 * SECONDS) <= 40
    assert timers <= 10 * len(server.asked)
    assert report["throttled"].endswith("were HTTP 429")


def test_a_pause_sets_few_timers():
    class Closing(Bucket):
        def error(self) -> CallError | None:
            return refused(60.0) if self.asked[-1] < 60.0 else None

    server = Closing(60.0)
    seconds, report, timers = answered(server, 400)
    assert report["pauses"] == 1
    assert timers <= 10 * len(server.asked)
    assert seconds >= 60.0
