import asyncio
from itertools import pairwise

import pytest
from builders.loops import Clock, all_wait, in_virtual_time

from harness.base.errors import Interrupted, ModelError, UsageError
from harness.calls import engines
from harness.calls.engines import KEPT_CHANGES, EngineGate, Limiter, SharedEngines
from harness.contracts.identity import RECORDED, Identity
from harness.contracts.model import Model


class Engine(Model):
    def __init__(self, name, events, *, occupies="gpu", fails_to_close=None):
        self.identity = Identity(kind="fake", name=name)
        self.occupies = occupies
        self.concurrency = 4
        self.events = events
        self.fails_to_close = fails_to_close
        self.closing = asyncio.Event()

    async def open(self):
        self.events.append(f"open {self.identity.name}")
        await asyncio.sleep(0.01)

    async def close(self):
        self.events.append(f"close {self.identity.name}")
        self.closing.set()
        await asyncio.sleep(0.01)
        if self.fails_to_close:
            raise self.fails_to_close

    async def ask(self, request):
        raise AssertionError("calls are noted, not made")


async def call(room, engine):
    async with room.enter(engine):
        engine.events.append(f"call {engine.identity.name}")
        await asyncio.sleep(0.005)


@pytest.fixture
def events():
    return []


@pytest.fixture
def one(events):
    return Engine("one", events)


@pytest.fixture
def two(events):
    return Engine("two", events)


@pytest.fixture
async def room_for():
    """Makes gates, which are closed at the end."""
    rooms = []

    def make(**options):
        rooms.append(EngineGate(announce=lambda text: None, **options))
        return rooms[-1]

    yield make
    for room in rooms:
        await room.close()


@pytest.fixture
def room(room_for):
    return room_for()


async def test_a_model_that_keeps_a_log_is_told_its_place_before_it_opens(tmp_path, events):
    engine = Engine("a", events)
    room = EngineGate(announce=events.append, logs=tmp_path / "engines")
    async with room.enter(engine):
        assert engine.log_folder == tmp_path / "engines"
        engine.show("here")
    assert events == ["open a", "here"]


async def test_two_engines_of_one_resource_are_never_open_together(one, two, room, events):
    await asyncio.gather(call(room, one), call(room, two), call(room, one))
    await room.close()
    assert events == [
        "open one", "call one", "call one", "close one", "open two", "call two", "close two",
    ]  # fmt: skip


async def test_workers_that_ask_two_engines_in_a_loop_go_in_rounds(one, two, room, events):
    async def worker():
        for _ in range(2):
            await call(room, one)
            await call(room, two)

    await asyncio.gather(*(worker() for _ in range(5)))
    opened = [event for event in events if event.startswith("open")]
    assert opened == ["open one", "open two", "open one", "open two"]
    assert events.count("call one") == events.count("call two") == 10


async def test_models_without_a_resource_stand_beside_each_other_unless_told(room_for, events):
    one, two = Engine("one", events, occupies=None), Engine("two", events, occupies=None)
    await asyncio.gather(*(call(room, e) for room in [room_for()] for e in (one, two)))
    assert "close one" not in events
    events.clear()
    room = room_for(one_at_a_time=True)
    await asyncio.gather(call(room, one), call(room, two))
    assert events == ["open one", "call one", "close one", "open two", "call two"]


async def test_a_patient_model_stays_open_though_one_engine_at_a_time_does(room_for, events):
    patient, other = Engine("patient", events), Engine("other", events)
    patient.patient = True
    room = room_for(one_at_a_time=True)
    await call(room, patient)  # its calls are in flight after they have left
    await asyncio.wait_for(call(room, other), 5)
    assert "close patient" not in events


async def test_an_engine_that_cannot_be_closed_is_an_error_for_all_who_wait(room, events):
    one, two = Engine("one", events, fails_to_close=RuntimeError("60 GB")), Engine("two", events)
    await call(room, one)
    with pytest.raises(ModelError, match="an engine could not be closed") as caught:
        await asyncio.wait_for(call(room, two), 60)
    assert (caught.value.where, caught.value.found) == ("fake:one", "RuntimeError: 60 GB")
    assert "open two" not in events


@pytest.mark.parametrize("seconds", [0.01, 0.3], ids=["short calls", "long calls"])
async def test_an_idle_resource_changes_hands_beside_a_model_that_is_always_busy(
    monkeypatch, seconds, one, two, room
):
    monkeypatch.setattr(engines, "QUIET_WHILE_OTHERS_ANSWER", 0.15)
    api = Engine("api", [], occupies=None)

    async def keep_busy():
        while True:
            async with room.enter(api):
                await asyncio.sleep(seconds)

    busy = [asyncio.ensure_future(keep_busy()) for _ in range(2)]
    await call(room, one)
    await asyncio.wait_for(call(room, two), 60)
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
    await room.close()
    assert one.events == [
        "open one", "call one", "close one", "open two", "call two", "close two",
    ]  # fmt: skip


async def test_workers_that_ask_another_model_between_two_calls_do_not_lose_their_engine(
    one, two, room, events
):
    api = Engine("api", [], occupies=None)

    async def ask_one_and_the_api():
        await call(room, one)
        async with room.enter(api):
            await asyncio.sleep(4 * engines.QUIET)
        await call(room, one)

    await asyncio.gather(ask_one_and_the_api(), call(room, two))
    await room.close()
    assert events == [
        "open one", "call one", "call one", "close one", "open two", "call two", "close two",
    ]  # fmt: skip


async def test_stopping_wakes_those_who_wait_for_a_turn_and_opens_nothing(one, two, room, events):
    inside, leave = asyncio.Event(), asyncio.Event()

    async def hold():
        async with room.enter(one):
            inside.set()
            await leave.wait()

    holder = asyncio.ensure_future(hold())
    await inside.wait()
    waiting = [asyncio.ensure_future(call(room, two)) for _ in range(3)]
    await asyncio.sleep(0.01)
    room.stop(Interrupted("enough"))
    told = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 60)
    assert [str(error) for error in told] == ["enough"] * 3
    assert not holder.done()
    leave.set()
    await holder
    await asyncio.sleep(3 * engines.QUIET)
    with pytest.raises(Interrupted):
        await call(room, Engine("three", events, occupies=None))
    await room.close()
    assert events == ["open one", "close one"]


async def test_stopping_while_engines_change_opens_nothing(one, two, room, events):
    await call(room, one)
    waiting = asyncio.ensure_future(call(room, two))
    await one.closing.wait()
    room.stop(Interrupted("enough"))
    with pytest.raises(Interrupted):
        await asyncio.wait_for(waiting, 60)
    await room.close()
    assert events == ["open one", "call one", "close one"]


async def test_closing_waits_for_a_change_of_engines_under_way(room, events):
    class Slow(Engine):
        async def close(self):
            await super().close()
            await asyncio.sleep(0.1)
            self.events.append(f"closed {self.identity.name}")

    one, two = Slow("one", events), Slow("two", events)
    await call(room, one)
    waiting = asyncio.ensure_future(call(room, two))
    await one.closing.wait()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.wait_for(room.close(), 60)
    assert events == ["open one", "call one", "close one", "closed one"]


async def test_what_cannot_be_opened_is_not_opened_for_the_next_one_either(room, events):
    class Shut(Engine):
        async def open(self):
            await super().open()
            raise OSError("no such device")

    engine = Shut("one", events)
    calls = [call(room, engine) for _ in range(3)]
    told = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 60)
    assert {(type(one), one.problem, one.where, one.found) for one in told} == {
        (ModelError, "the model cannot be opened", "fake:one", "OSError: no such device")
    }
    await room.close()
    assert events == ["open one"]


class Keyless(Engine):
    def require(self):
        self.events.append(f"require {self.identity.name}")
        raise UsageError("no key")


async def test_nothing_opens_that_costs_while_another_model_lacks_its_key(room_for, events):
    candidate, judge = Engine("a", events), Keyless("b", events)
    room = room_for(models=[candidate, judge])
    for _ in range(2):
        with pytest.raises(UsageError, match="no key"):
            await call(room, candidate)
    assert events == ["require b"]


@pytest.mark.parametrize(
    "free",
    [
        Identity(kind="baseline", name="a", scope="call"),
        Identity(kind="fake", name="a", details={RECORDED: "d"}),
    ],
)
async def test_what_answers_for_nothing_opens_though_another_model_lacks_its_key(
    free, room_for, events
):
    engine = Engine("a", events)
    engine.identity = free
    room = room_for(models=[engine, Keyless("b", events)])
    await call(room, engine)
    assert events == ["open a", "call a"]


@pytest.mark.parametrize(
    ("one", "two", "together"),
    [
        ("gpu:0,1", "gpu:2,3", True),
        ("gpu:0,1", "gpu:1,2", False),
        ("gpu:0", "gpu", False),
        ("gpu:0", "tpu:0", True),
        ("gpu", "gpu", False),
    ],
)
async def test_engines_on_different_parts_of_a_resource_are_open_side_by_side(
    one, two, together, room_for, events
):
    models = [Engine("one", events, occupies=one), Engine("two", events, occupies=two)]
    room = room_for(models=models)
    await asyncio.gather(*(call(room, model) for model in models))
    assert ("close one" not in events) == together


async def test_a_start_ends_with_the_run(room, events):
    """One Ctrl-C: nothing is in flight yet, so there is nothing to wait for."""
    engine = Engine("a", events)
    started, ended = asyncio.Event(), asyncio.Event()

    async def starts_for_ever():
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    engine.open = starts_for_ever
    calls = [asyncio.create_task(call(room, engine)) for _ in range(2)]
    await started.wait()
    room.stop(Interrupted("interrupted"))
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(each) for each in results] == ["interrupted", "interrupted"]
    assert ended.is_set()
    await room.close()
    assert events == []


async def test_a_caller_that_is_cancelled_during_a_start_is_cancelled(room, events):
    engine = Engine("a", events)
    engine.open = asyncio.Event().wait
    calling = asyncio.create_task(call(room, engine))
    await asyncio.sleep(0.01)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling


async def test_one_look_before_the_first_model_that_costs_may_prevent_that_any_opens(
    room_for, events
):
    found = []

    async def look():
        events.append("look")
        await asyncio.sleep(0.01)
        if found:
            raise ModelError(*found)

    free, one, two = Engine("free", events), Engine("a", events), Engine("b", events, occupies=None)
    free.identity = Identity(kind="baseline", name="free", scope="call")
    free.occupies = None
    room = room_for(look=look)
    await call(room, free)
    await asyncio.gather(call(room, one), call(room, two))
    assert events[:3] == ["open free", "call free", "look"]
    assert sorted(events[3:]) == ["call a", "call b", "open a", "open b"]
    events.clear()
    found.append("no server")
    room = room_for(look=look)
    for name in ("a", "b"):
        with pytest.raises(ModelError, match="no server"):
            await call(room, Engine(name, events, occupies=None))
    assert events == ["look"]


async def test_shared_engines_stay_open_from_gate_to_gate_until_others_need_their_place(
    one, two, room_for, events
):
    beside, free = Engine("beside", events, occupies="port"), Engine("free", events, occupies=None)
    shared = SharedEngines()

    async def session(*models):
        await shared.make_room([one, two, beside, free], models)
        room = room_for(shared=shared, models=models)
        for model in models:
            await call(room, model)
        await room.close()

    await session(one, beside, free)
    await session(one, beside)
    await session(two)
    assert shared.open == [two]
    await shared.close()
    assert shared.open == []
    assert [event for event in events if not event.startswith("call")] == [
        "open one", "open beside", "open free", "close free", "close one", "close beside",
        "open two", "close two",
    ]  # fmt: skip


async def test_a_shared_engine_gives_way_to_one_that_needs_its_place_before_that_opens(events):
    one, both = Engine("one", events, occupies="gpu:0"), Engine("both", events, occupies="gpu:0,1")
    shared = SharedEngines(open=[one])
    await shared.make_room([one, both], [one, both])
    assert (shared.open, events) == ([], ["close one"])


async def test_a_shared_engine_that_fails_to_close_says_so_after_the_others_are_closed(events):
    bad = Engine("bad", events, fails_to_close=RuntimeError("stuck"))
    shared = SharedEngines(open=[bad, Engine("good", events, occupies="port")])
    with pytest.raises(ModelError, match="could not be closed") as caught:
        await shared.close()
    assert (shared.open, caught.value.where, events[-1]) == ([], "fake:bad", "close good")


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


@pytest.mark.parametrize(
    ("ceiling", "learnt"),
    [
        # Up to a twentieth of the answers may be refused.
        (20, [(OK * 48 + LIMITED * 2, 20), (LIMITED, 14)]),
        # Only the answers of the last two rounds count: the first of 201 is forgotten, then the
        # second, so that nine of 200 are left.
        (100, [(LIMITED * 2 + OK * 199, 100), (LIMITED * 9, 100), (LIMITED * 2, 70)]),
        # A round grows by a tenth up to the last cut, which came at 70.4, and then by one.
        (
            100,
            [
                (LIMITED * 3, 70), (OK * 4 + LIMITED * 3, 49.28), (OK * 49, 54.18),
                (OK * 163, 70.48), (OK * 70, 71.47), (OK * 5000, 100),
            ],
        ),
        (4, [(LIMITED * 3, 2.8), (OK * 3, 2.8 + 1 / 2.8 + 1 / 3.157 + 1 / 3.474)]),
        # More than a twentieth of trouble holds growth up, and cuts nothing: of 140 answers, seven
        # may be trouble, as before the last nine here.
        (100, [(LIMITED * 3, 70), (TROUBLE * 60 + OK, 70), (OK * 140, 70.9)]),
        (1, [(LIMITED * 3, 1)]),
    ],
    ids=["a twentieth", "two rounds", "growth", "a small limit", "trouble", "one"],
)  # fmt: skip
async def test_a_limit_follows_what_is_learnt(clock, ceiling, learnt):
    limiter = Limiter(ceiling, clock=clock)
    for endings, limit in learnt:
        learn(limiter, *endings)
        assert limiter.limit == pytest.approx(limit, abs=0.01)
    assert limiter.report()["cuts"] == sum(
        after < before for (_, before), (_, after) in pairwise([([], ceiling), *learnt])
    )


async def test_refusals_count_by_what_is_in_flight_once_a_round_trip_and_not_if_sent_before(clock):
    limiter = Limiter(300, clock=clock)
    await waiting(limiter, 300)
    learn(limiter, *LIMITED * 15)
    assert limiter.limit == 300
    learn(limiter, *LIMITED)
    assert limiter.limit == 210
    limiter = Limiter(100, clock=clock)
    learn(limiter, *LIMITED * 60)
    assert limiter.limit == 70
    clock.now = 101.0
    learn(limiter, *OK, *LIMITED * 60, sent=99.0)
    assert limiter.limit == 70
    learn(limiter, *OK, *LIMITED, sent=100.5)
    assert limiter.limit == pytest.approx(49)


async def test_growth_admits_those_who_wait(clock):
    limiter = Limiter(2, clock=clock)
    learn(limiter, *LIMITED * 3)
    tasks = await waiting(limiter, 2)
    assert granted(tasks) == [True, False]
    clock.now = 102.0
    learn(limiter, *OK)
    await all_wait()
    assert granted(tasks) == [True, True]


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
    gone, stays = await waiting(limiter, 2)
    limiter.dismiss(ValueError("over"))
    gone.cancel()  # just dismissed, it gives no place back
    with pytest.raises(ValueError, match="over"):
        await stays
    await all_wait()
    assert limiter.busy == 1
    limiter.release()
    with pytest.raises(ValueError, match="over"):
        await limiter.acquire()
    assert limiter.busy == 0


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
