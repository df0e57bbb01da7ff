import asyncio

import pytest
from builders.loops import all_wait

from harness.calls.limiter import KEPT_CHANGES, Limiter, limits_of_workers


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


async def waiting(limiter: Limiter, count: int) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(limiter.acquire()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


def granted(tasks: list[asyncio.Task[None]]) -> list[bool]:
    return [task.done() for task in tasks]


async def test_no_more_than_the_ceiling_and_first_come_first_served(clock):
    limiter = Limiter(2, clock=clock)
    tasks = await waiting(limiter, 4)
    assert granted(tasks) == [True, True, False, False]
    limiter.release()
    await all_wait()
    assert granted(tasks) == [True, True, True, False]
    limiter.release()
    await all_wait()
    assert granted(tasks) == [True] * 4
    assert limiter.busy == 2


async def test_a_rate_limit_halves_and_old_requests_do_not_halve_again(clock):
    limiter = Limiter(64, clock=clock)
    limiter.rate_limited(sent=100.0)
    assert limiter.limit == 32
    clock.now = 105.0
    limiter.rate_limited(sent=99.9)
    assert limiter.limit == 32
    limiter.rate_limited(sent=104.0)
    assert limiter.limit == 16


async def test_at_most_one_cut_a_window(clock):
    limiter = Limiter(64, window=1.0, clock=clock)
    limiter.rate_limited(sent=100.0)
    clock.now = 100.9
    limiter.rate_limited(sent=100.5)
    assert limiter.limit == 32
    clock.now = 101.0
    limiter.rate_limited(sent=100.5)
    assert limiter.limit == 16


async def test_the_limit_never_falls_below_one(clock):
    limiter = Limiter(3, clock=clock)
    for _ in range(4):
        limiter.rate_limited(sent=clock.now)
        clock.now += 2
    assert limiter.limit == 1
    await limiter.acquire()


async def test_it_grows_back_by_about_one_a_round_and_not_above_the_ceiling(clock):
    limiter = Limiter(4, window=1.0, clock=clock)
    limiter.rate_limited(sent=100.0)
    assert limiter.limit == 2
    limiter.succeeded()
    assert limiter.limit == 2  # a cut a moment ago
    clock.now = 101.0
    limiter.succeeded()
    assert limiter.limit == 2.5
    limiter.succeeded()
    assert limiter.limit == 2.9
    for _ in range(20):
        limiter.succeeded()
    assert limiter.limit == 4


async def test_growth_admits_those_who_wait(clock):
    limiter = Limiter(2, clock=clock)
    limiter.rate_limited(sent=100.0)
    tasks = await waiting(limiter, 2)
    assert granted(tasks) == [True, False]
    clock.now = 102.0
    limiter.succeeded()
    await all_wait()
    assert granted(tasks) == [True, True]


async def test_other_trouble_only_holds_growth_up(clock):
    limiter = Limiter(4, window=1.0, quiet=5.0, clock=clock)
    limiter.rate_limited(sent=100.0)
    clock.now = 102.0
    limiter.troubled()
    limiter.succeeded()
    assert limiter.limit == 2
    clock.now = 107.0
    limiter.succeeded()
    assert limiter.limit == 2.5


async def test_retry_after_holds_every_start_up():
    limiter = Limiter(8)
    await limiter.acquire()
    limiter.rate_limited(sent=0.0, retry_after=0.15)
    limiter.release()
    tasks = await waiting(limiter, 2)
    await asyncio.sleep(0.05)
    assert granted(tasks) == [False, False]
    await asyncio.sleep(0.2)
    assert granted(tasks) == [True, True]


async def test_a_longer_pause_replaces_a_shorter():
    limiter = Limiter(8)
    limiter.troubled(retry_after=0.05)
    tasks = await waiting(limiter, 1)
    limiter.troubled(retry_after=0.25)
    await asyncio.sleep(0.12)
    assert granted(tasks) == [False]
    await asyncio.sleep(0.25)
    assert granted(tasks) == [True]


async def test_a_shorter_pause_does_not_end_a_longer():
    limiter = Limiter(8)
    limiter.troubled(retry_after=0.3)
    limiter.troubled(retry_after=0.02)
    tasks = await waiting(limiter, 1)
    await asyncio.sleep(0.1)
    assert granted(tasks) == [False]
    await asyncio.sleep(0.35)
    assert granted(tasks) == [True]


async def test_who_is_cancelled_while_waiting_takes_no_place(clock):
    limiter = Limiter(1, clock=clock)
    await limiter.acquire()
    first, second = await waiting(limiter, 2)
    first.cancel()
    await all_wait()
    limiter.release()
    await all_wait()
    assert second.done()
    assert limiter.busy == 1


async def test_who_is_cancelled_with_a_place_just_granted_gives_it_back(clock):
    limiter = Limiter(1, clock=clock)
    await limiter.acquire()
    first, second = await waiting(limiter, 2)
    limiter.release()  # grants the place to the first, which has not run yet
    first.cancel()
    await all_wait()
    assert first.cancelled()
    assert second.done()
    assert limiter.busy == 1


async def test_dismissing_sends_away_who_waits(clock):
    limiter = Limiter(1, clock=clock)
    await limiter.acquire()
    (task,) = await waiting(limiter, 1)
    limiter.dismiss(ValueError("over"))
    with pytest.raises(ValueError, match="over"):
        await task
    limiter.release()
    with pytest.raises(ValueError, match="over"):
        await limiter.acquire()
    assert limiter.busy == 0


async def test_who_is_cancelled_when_just_dismissed_gives_no_place_back(clock):
    limiter = Limiter(1, clock=clock)
    await limiter.acquire()
    (task,) = await waiting(limiter, 1)
    limiter.dismiss(ValueError("over"))
    task.cancel()
    await all_wait()
    assert limiter.busy == 1


async def test_the_report_tells_what_happened_and_stays_short(clock):
    limiter = Limiter(64, clock=clock)
    clock.now = 101.5
    limiter.rate_limited(sent=101.0, retry_after=2.0)
    limiter.rate_limited(sent=101.0, retry_after=3.0)
    assert limiter.report() == {
        "ceiling": 64,
        "limit": 32,
        "lowest": 32,
        "cuts": 1,
        "pauses": 1,
        "changes": [
            {"at": 1.5, "limit": 32, "why": "rate limited"},
            {"at": 1.5, "limit": 32, "why": "paused", "seconds": 2.0},
        ],
        "changes_unlisted": 0,
    }
    for _ in range(KEPT_CHANGES):
        clock.now += 10
        limiter.rate_limited(sent=clock.now)
    assert len(limiter.report()["changes"]) == KEPT_CHANGES
    assert limiter.report()["changes_unlisted"] == 2


def test_the_limits_of_workers_are_told_apart():
    limits = {"w1": {"openai:m": {"cuts": 1}, "openai:m #2": {"cuts": 2}}, "w2": {"openai:m": {}}}
    assert limits_of_workers(limits) == {
        "openai:m on w1": {"cuts": 1},
        "openai:m #2 on w1": {"cuts": 2},
        "openai:m on w2": {},
    }
    assert limits_of_workers({}) == {}
