import asyncio

import pytest
from builders.loops import Clock, all_wait, in_virtual_time

from harness.calls.engines import KEPT_CHANGES, Limiter


@pytest.fixture
def clock():
    return Clock(100.0)


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


def learn(limiter: Limiter, *endings: str, sent: float = 100.0) -> None:
    for ending in endings:
        limiter.learn(ending, sent=sent)  # type: ignore[arg-type]


OK, LIMITED, TROUBLE = ["success"], ["rate limit"], ["trouble"]


async def test_up_to_a_twentieth_of_the_answers_may_be_refused(clock):
    limiter = Limiter(20, clock=clock)
    learn(limiter, *OK * 48, *LIMITED * 2)
    assert limiter.limit == 20
    learn(limiter, *LIMITED)
    assert limiter.limit == 14


async def test_refusals_are_compared_with_what_is_in_flight(clock):
    limiter = Limiter(300, clock=clock)
    await waiting(limiter, 300)
    learn(limiter, *LIMITED * 15)
    assert limiter.limit == 300
    learn(limiter, *LIMITED)
    assert limiter.limit == 210


async def test_only_the_answers_of_the_last_two_rounds_count(clock):
    limiter = Limiter(100, clock=clock)
    learn(limiter, *LIMITED * 2, *OK * 199)  # 200 answers: the first is forgotten
    learn(limiter, *LIMITED * 9)  # the second is forgotten: 9 of 200
    assert limiter.limit == 100
    learn(limiter, *LIMITED * 2)
    assert limiter.limit == 70


async def test_requests_sent_before_a_cut_do_not_count(clock):
    limiter = Limiter(100, clock=clock)
    learn(limiter, *LIMITED * 3)
    assert limiter.limit == 70
    clock.now = 105.0
    learn(limiter, *OK, *LIMITED * 60, sent=99.0)
    assert limiter.limit == 70


async def test_a_round_trip_has_one_cut(clock):
    limiter = Limiter(100, clock=clock)
    learn(limiter, *LIMITED * 60)
    assert limiter.limit == 70
    clock.now = 101.0
    learn(limiter, *OK, sent=100.5)
    learn(limiter, *LIMITED, sent=100.5)
    assert limiter.limit == pytest.approx(49)


async def test_a_limit_of_one_is_not_cut(clock):
    limiter = Limiter(1, clock=clock)
    learn(limiter, *LIMITED * 3)
    assert (limiter.report()["cuts"], limiter.report()["throttled"]) == (0, None)


async def test_a_round_grows_by_a_tenth_up_to_the_last_cut_and_then_by_one(clock):
    limiter = Limiter(100, clock=clock)
    learn(limiter, *LIMITED * 3)
    learn(limiter, *OK * 4, *LIMITED * 3)
    assert limiter.limit == pytest.approx(49.28)  # 0.7 of 70.4, at which it was cut
    learn(limiter, *OK * 49)
    assert limiter.limit == pytest.approx(54.18)
    learn(limiter, *OK * 163)
    assert limiter.limit == pytest.approx(70.48)
    learn(limiter, *OK * 70)
    assert 71.4 < limiter.limit < 71.5
    learn(limiter, *OK * 5000)
    assert limiter.limit == 100


async def test_a_small_limit_grows_by_one_a_round(clock):
    limiter = Limiter(4, clock=clock)
    learn(limiter, *LIMITED * 3)
    learn(limiter, *OK * 3)
    assert limiter.limit == pytest.approx(2.8 + 1 / 2.8 + 1 / 3.157 + 1 / 3.474, abs=0.001)


async def test_growth_admits_those_who_wait(clock):
    limiter = Limiter(2, clock=clock)
    learn(limiter, *LIMITED * 3)
    tasks = await waiting(limiter, 2)
    assert granted(tasks) == [True, False]
    clock.now = 102.0
    learn(limiter, *OK)
    await all_wait()
    assert granted(tasks) == [True, True]


async def test_more_than_a_twentieth_of_trouble_holds_growth_up_and_cuts_nothing(clock):
    limiter = Limiter(100, clock=clock)
    learn(limiter, *LIMITED * 3)
    learn(limiter, *TROUBLE * 60)
    learn(limiter, *OK)
    assert limiter.limit == 70
    learn(limiter, *OK * 140)
    assert limiter.limit > 70
    assert limiter.report()["cuts"] == 1


@pytest.mark.parametrize("waits", [(30.0,), (10.0, 30.0), (30.0, 10.0)])
def test_many_hold_all_up_as_long_as_the_longest_wait(waits):
    async def work() -> None:
        limiter = Limiter(8)
        for wait in waits:
            for _ in range(3):
                limiter.learn("trouble", sent=0.0, pause=wait)
        await asyncio.gather(*[limiter.acquire() for _ in range(8)])

    assert in_virtual_time(work())[1].now == pytest.approx(30.0)


def test_below_the_ceiling_requests_are_spread_over_a_round_trip():
    async def work() -> None:
        limiter = Limiter(10)
        await asyncio.sleep(3.0)
        limiter.learn("success", sent=0.0)
        learn(limiter, *LIMITED * 3, sent=3.0)
        await asyncio.gather(*[limiter.acquire() for _ in range(7)])

    assert in_virtual_time(work())[1].now == pytest.approx(3.0 + 6 * 3.0 / 7)


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


async def test_the_report_says_what_happened_and_why_and_stays_short(clock):
    limiter = Limiter(64, clock=clock)
    clock.now = 101.5
    for _ in range(5):
        limiter.learn("rate limit", sent=101.0, pause=2.0)
    assert limiter.report() == {
        "ceiling": 64,
        "limit": 44,
        "lowest": 44,
        "throttled": "it asked for a pause (Retry-After)",
        "cuts": 1,
        "pauses": 1,
        "changes": [
            {"at": 1.5, "limit": 44, "why": "rate limited"},
            {"at": 1.5, "limit": 44, "why": "paused", "seconds": 2.0},
        ],
        "changes_unlisted": 0,
    }
    clock.now = 104.0
    assert limiter.report()["throttled"] == "3 of its last 3 answers were HTTP 429"
    for _ in range(KEPT_CHANGES):
        clock.now += 10
        for _ in range(3):
            limiter.learn("trouble", sent=clock.now, pause=1.0)
    assert len(limiter.report()["changes"]) == KEPT_CHANGES
    assert limiter.report()["changes_unlisted"] == 2
