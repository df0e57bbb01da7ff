import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from builders.loops import all_wait
from builders.requests import make_request
from harness_models.openai_wire import read_response
from msgspec.structs import replace

from harness.base.errors import Interrupted, ModelError, UsageUnreported
from harness.calls.budget import Budget, Meter, Use
from harness.calls.client import (
    ANYONE,
    AT_A_TIME,
    LARGEST_SEED,
    Answer,
    Client,
    OwnAnswers,
    Turns,
    call_key,
    call_seed,
)
from harness.calls.pricing import Price, PriceTable
from harness.calls.retry import Patience
from harness.calls.store import Store
from harness.contracts.identity import Identity
from harness.contracts.model import (
    CallError,
    Message,
    Model,
    Reply,
    Request,
    Sampling,
    Topic,
    Usage,
)
from harness.contracts.outcomes import CallFailed

QUICK = Patience(attempts=3, first_delay=0.001, longest_delay=0.002)


class Script(Model):
    """A model in this process that does what it is told, in the order of the requests."""

    def __init__(self, *steps: Any, identity: Identity | None = None, concurrency: int = 8) -> None:
        self.identity = identity or Identity(kind="script", name="m")
        self.concurrency = concurrency
        self.steps = list(steps)
        self.requests: list[Request] = []

    async def ask(self, request: Request) -> Reply:
        self.requests.append(request)
        step = self.steps.pop(0) if self.steps else Reply(text="ok")
        if callable(step):
            step = await step()
        if isinstance(step, Exception):
            raise step
        return step


def after(event: asyncio.Event, step: Reply | Exception) -> Callable[[], Any]:
    async def wait() -> Reply | Exception:
        await event.wait()
        return step

    return wait


def retryable(cause: str, **more: Any) -> CallError:
    return CallError(cause, "for now", retryable=True, **more)


def client(store: Store | None = None, **options: Any) -> Client:
    return Client(store=store, **{"run_id": "r1", "patience": QUICK, **options})


async def ask(to: Client, model: Script, what: Request | None = None, **more: Any) -> Answer:
    return await to.ask(model, what or make_request(), role="candidate", stage="extract", **more)


async def test_a_second_ask_is_answered_by_the_store(store):
    model = Script(Reply(text="one", usage=Usage(prompt_tokens=3, completion_tokens=1), id="x"))
    first = await ask(client(store), model)
    again = client(store)
    second = await ask(again, model)
    assert first.reply == second.reply
    assert (first.source, first.attempts, first.failure) == ("model", 1, None)
    assert (second.source, second.attempts) == ("store", 0)
    assert first.key == second.key
    assert len(model.requests) == 1
    use = Use(calls=1, from_store=1, saved_prompt_tokens=3, saved_completion_tokens=1)
    assert again.usage.totals == {("extract", "candidate"): use}


async def test_a_repeated_question_that_a_kill_left_without_a_record_is_not_paid_twice(store):
    model = Script(Reply(text="old"), Reply(text="new"), Reply(text="newest"))

    async def session(number: int, asker: str, **more: Any) -> str:
        to = client(own=OwnAnswers(store, session=number))
        answer = await ask(to, model, asker=asker, **more)
        assert answer.reply is not None
        return answer.reply.text

    assert await session(1, "item") == "old"
    assert await session(2, "item that failed", refresh=True) == "new"
    assert await session(3, "item that failed", refresh=True) == "new"
    assert await session(4, "item that failed again", refresh=True) == "newest"
    assert len(model.requests) == 3


async def test_an_answer_that_two_items_shared_before_a_kill_is_paid_once(store):
    model = Script(Reply(text="old", finish="length"), Reply(text="new"))
    before = client(own=OwnAnswers(store, session=1))
    await asyncio.gather(ask(before, model, asker="one"), ask(before, model, asker="other"))
    after = client(own=OwnAnswers(store, session=2))
    given = [await ask(after, model, asker=asker) for asker in ("one", "other", "one")]
    assert [one.source for one in given] == ["model", "shared", "shared"]
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "outcome",
    [
        Reply(text="cut", finish="length"),
        Reply(text="no", finish="refused"),
        CallError("bad_request", "no"),
    ],
)
async def test_only_replies_that_ended_by_themselves_are_stored(store, outcome):
    model = Script(outcome, Reply(text="now"))
    to = client(store)
    await ask(to, model)
    second = await ask(to, model)
    assert second.reply == Reply(text="now")
    assert second.source == "model"


async def test_stored_bytes_that_are_no_reply_are_asked_again(store):
    model = Script(Reply(text="now"))
    to = client(store)
    key = bytes.fromhex(to.key(model.identity, make_request()))
    store.put(key, b"\xff\x00")
    assert (await ask(to, model)).reply == Reply(text="now")
    assert (await ask(to, model)).source == "store"


async def test_a_model_bound_to_its_run_is_asked_once_a_run_and_one_by_rule_every_time(store):
    bound = Script(identity=Identity(kind="openai", name="m", scope="run"))
    pinned = Script(identity=Identity(kind="openai", name="m", details={"revision": "a"}))
    ruled = Script(identity=Identity(kind="rule", name="m", scope="call"))
    for run_id in ("r1", "r2", "r1"):
        to = client(store, run_id=run_id)
        for model in (bound, pinned, ruled, ruled):
            assert (await ask(to, model)).reply == Reply(text="ok")
    assert [len(model.requests) for model in (bound, pinned, ruled)] == [2, 1, 6]


async def test_identical_requests_in_flight_are_made_once():
    landed = asyncio.Event()
    model = Script(after(landed, Reply(text="one", usage=Usage(prompt_tokens=5))))
    to = client()
    asks = [asyncio.create_task(ask(to, model)) for _ in range(3)]
    await all_wait()
    landed.set()
    answers = await asyncio.gather(*asks)
    assert [answer.source for answer in answers] == ["model", "shared", "shared"]
    assert [answer.attempts for answer in answers] == [1, 0, 0]
    assert {answer.reply.text for answer in answers} == {"one"}
    assert len(model.requests) == 1
    use = to.usage.of("extract", "candidate")
    assert use == Use(
        calls=3, asked=1, shared=2, attempts=1, prompt_tokens=5, saved_prompt_tokens=10
    )


async def test_who_shares_a_call_shares_what_it_raised():
    landed = asyncio.Event()
    model = Script(after(landed, ZeroDivisionError("a fault of the model's code")))
    to = client()
    asks = [asyncio.create_task(ask(to, model)) for _ in range(2)]
    await all_wait()
    landed.set()
    results = await asyncio.gather(*asks, return_exceptions=True)
    assert [type(result) for result in results] == [ZeroDivisionError] * 2


async def test_an_answer_is_kept_though_its_asker_gives_up_while_others_go_first(store):
    answered, never = asyncio.Event(), asyncio.Event()
    model = Script(after(answered, Reply(text="one")), after(never, Reply(text="two")))
    to = client(store)
    asking = asyncio.create_task(ask(to, model, make_request("first")))
    other = asyncio.create_task(ask(to, model, make_request("other")))
    await all_wait()
    to._turns.wait = never.wait  # others go first for ever
    answered.set()
    await all_wait()
    assert not asking.done()
    for task in (asking, other):
        task.cancel()
    await asyncio.gather(asking, other, return_exceptions=True)
    assert (await ask(client(store), model, make_request("first"))).source == "store"


async def test_each_kind_of_trouble_is_reported_once():
    said: list[str] = []
    model = Script(retryable("timeout"), retryable("timeout"), Reply(text="ok"))
    to = client(announce=said.append)
    assert (await ask(to, model)).reply == Reply(text="ok")
    model.steps = [retryable("server_error"), retryable("timeout")]
    await ask(to, model, make_request("another"))
    assert [line.partition(": ")[2] for line in said] == ["for now; retrying"] * 2


async def test_what_cannot_be_mended_is_asked_once():
    model = Script(CallError("bad_request", "HTTP 400: no"))
    to = client()
    assert (await ask(to, model)).failure == CallFailed("bad_request", "HTTP 400: no")
    assert len(model.requests) == 1
    assert (await ask(to, model, make_request("other"))).reply == Reply(text="ok")


async def test_a_fatal_error_ends_every_later_ask_unsent():
    model = Script(CallError("auth", "HTTP 401: wrong key", fatal=True), concurrency=1)
    to = client()
    asks = [ask(to, model, make_request(str(number))) for number in range(5)]
    results = await asyncio.gather(*asks, return_exceptions=True)
    assert [type(result) for result in results] == [ModelError] * 5
    assert len(model.requests) == 1


async def test_a_fatal_error_ends_the_waits_of_others():
    landed = asyncio.Event()
    model = Script(
        after(landed, CallError("auth", "no", fatal=True)),
        *[retryable("rate_limited", retry_after=500.0)] * 2,
        concurrency=2,
    )
    to = client(patience=Patience())
    asks = [asyncio.create_task(ask(to, model, make_request(text))) for text in ("a", "b", "c")]
    await all_wait()
    landed.set()
    async with asyncio.timeout(60):
        for task in asks:
            with pytest.raises(ModelError):
                await task


async def test_a_model_that_cannot_be_reached_ends_the_run_unless_it_was_reached_before():
    gone = [retryable("connection")] * 3
    with pytest.raises(ModelError, match="start the server"):
        await ask(client(), Script(*gone))
    to, model = client(), Script(Reply(text="ok"), *gone)
    await ask(to, model)
    answer = await ask(to, model, make_request("other"))
    assert answer.failure == CallFailed("connection", "for now")


async def test_the_total_timeout_bounds_waits_and_cuts_an_attempt_short():
    model = Script(*[retryable("rate_limited", retry_after=30.0)] * 3)
    answer = await ask(client(patience=Patience(total_timeout=5.0)), model)
    assert answer.failure == CallFailed("rate_limited", "for now")
    assert len(model.requests) == 1
    model = Script(after(asyncio.Event(), Reply(text="never")))
    answer = await ask(client(patience=Patience(attempts=1, total_timeout=0.2)), model)
    assert answer.failure == CallFailed("timeout", "no answer within 0.2 s")


async def test_a_rate_limit_is_learnt_before_the_place_is_passed_on():
    model = Script(*[retryable("rate_limited")] * 3, concurrency=3)
    to = client()
    asks = [asyncio.create_task(ask(to, model, make_request(str(one)))) for one in range(8)]
    await all_wait()
    assert len(model.requests) == 3 + 1  # one more begins a part of a round trip
    await asyncio.gather(*asks)
    assert to.limits()["script:m"]["lowest"] == 2


class Patient(Script):
    """A model of batches, the first of which has ended; the others go on when the session ends."""

    patient = True
    sends = False

    def holds(self, key: str) -> bool:
        return len(self.requests) > 0

    async def ask(self, request: Request) -> Reply:
        first = await super().ask(request)
        self.place = asyncio.get_running_loop().create_future()
        return first if len(self.requests) == 1 else await self.place

    def leave(self, reason: Exception, *, send: bool) -> None:
        self.sends = send
        self.place.set_exception(reason)


async def test_at_the_end_nothing_waits_for_what_an_earlier_session_sent():
    to, model = client(), Patient()
    await ask(to, model, make_request("one"))
    to.stop(Interrupted("enough"))
    with pytest.raises(Interrupted):
        await asyncio.wait_for(ask(to, model, make_request("two")), 5)
    assert not model.sends


async def test_what_was_gathered_is_sent_where_the_session_ends_with_files(monkeypatch):
    class Files:
        def write(self, model: Model, key: str, request: Request) -> bool:
            return model is candidate

        def finish(self) -> Interrupted:
            return Interrupted("the questions are in files")

    monkeypatch.setattr("harness.calls.client.QUIET", 0.01)
    candidate, judge = Script(), Patient()
    to = client(outbox=Files())
    await ask(to, judge, make_request("one"))
    asks = (ask(to, model, make_request("two")) for model in (judge, candidate))
    ended = await asyncio.wait_for(asyncio.gather(*asks, return_exceptions=True), 5)
    assert [type(one) for one in ended] == [Interrupted] * 2
    assert judge.sends
    assert to.usage.of("extract", "candidate").calls == 2, "only those that are asked here count"


async def test_bodies_that_cannot_be_read_are_not_kept_while_their_calls_wait():
    class Garbled(Script):
        async def ask(self, request: Request) -> Reply:
            body = bytearray(b"[" + b"1" * 2_000_000)
            return read_response(200, {}, bytes(body), content_type="application/json")

    to = client(patience=Patience(first_delay=60.0))
    tracemalloc.start()
    try:
        model = Garbled()
        asks = [asyncio.create_task(ask(to, model, make_request(str(one)))) for one in range(5)]
        await all_wait()
        gc.collect()
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for one in asks:
        one.cancel()
    await asyncio.gather(*asks, return_exceptions=True)
    assert most > 2_000_000
    assert held < 1_000_000


PRICES = PriceTable(models={"script:m": Price(input=2.0, output=10.0)})
USAGE = Usage(prompt_tokens=100, completion_tokens=10, cached_tokens=30, reasoning_tokens=4)


async def test_a_reply_without_usage_is_kept_and_ends_a_run_with_a_budget_of_money(store):
    model = Script(Reply(text="a"))
    to = client(store, meter=Meter(Budget(cost=1.0), PRICES))
    assert (await ask(to, model)).reply == Reply(text="a")
    with pytest.raises(UsageUnreported, match="reports no usage"):
        await ask(to, model, make_request("b"))
    assert (await ask(to, model)).source == "store"
    assert len(model.requests) == 1


async def test_the_cost_of_attempts_that_brought_nothing_is_reported():
    model = Script(
        retryable("no_content", usage=USAGE),
        retryable("timeout"),
        retryable("rate_limited"),
        Reply(text="a", usage=USAGE),
    )
    to = client(patience=Patience(attempts=5, first_delay=0.001, longest_delay=0.002))
    answer = await ask(to, model)
    assert (answer.attempts, answer.wasted, answer.unreported) == (4, USAGE, 1)
    assert to.usage.of("extract", "candidate") == Use(
        calls=1, asked=1, attempts=4, untold=1, prompt_tokens=200, completion_tokens=20,
        cached_tokens=60, reasoning_tokens=8,
    )  # fmt: skip


async def test_an_answer_that_came_in_a_file_was_asked_once_and_counts_what_it_cost(store):
    model = Script()
    to = client(own=OwnAnswers(store, session=2))
    keys = [to.key(model.identity, make_request(text)) for text in ("hello", "other")]
    for key, usage in zip(keys, (USAGE, None), strict=True):
        answer = Answer(reply=Reply(text=key, usage=usage), key=key, source="model", attempts=1)
        OwnAnswers(store, session=0).keep(ANYONE, answer)
    assert (await ask(to, model, asker="a")).source == "model"
    assert (await ask(to, model, asker="b")).source == "shared"
    assert (await ask(to, model, make_request("other"))).unreported == 1
    assert model.requests == []
    assert to.usage.of("extract", "candidate") == Use(
        calls=3, asked=2, shared=1, untold=1, prompt_tokens=100, completion_tokens=10,
        cached_tokens=30, reasoning_tokens=4, saved_prompt_tokens=100, saved_completion_tokens=10,
        saved_cached_tokens=30,
    )  # fmt: skip


async def test_limits_names_two_models_of_one_name_apart():
    to = client()
    await ask(to, Script())
    second = Script(concurrency=3)
    await ask(to, second, make_request("other"))
    reports = to.limits()
    ceilings = {name: report["ceiling"] for name, report in reports.items()}
    assert ceilings == {"script:m": 8, "script:m #2": 3}
    msgspec.json.encode(reports)


async def test_a_few_go_on_in_a_round_of_the_loop_and_who_gave_up_keeps_nobody_waiting():
    turns, went_on, seen = Turns(), [], []

    async def one(number: int) -> None:
        await turns.wait()
        went_on.append(number)

    tasks = [asyncio.create_task(one(number)) for number in range(2 * AT_A_TIME + 1)]
    while len(went_on) < len(tasks):
        await asyncio.sleep(0)
        if not seen or seen[-1] != len(went_on):
            seen.append(len(went_on))
    assert went_on == list(range(2 * AT_A_TIME + 1))
    assert seen == [0, AT_A_TIME, 2 * AT_A_TIME, 2 * AT_A_TIME + 1]
    await asyncio.gather(*tasks)
    turns = Turns()
    gone, stays = (asyncio.create_task(turns.wait()) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait_for(stays, 60)
    await asyncio.wait_for(turns.wait(), 60)
    assert gone.cancelled()


class Gathering(Script):
    """A model that answers what it gathered at once; the first of its answers are failures."""

    patient = True

    def __init__(self) -> None:
        super().__init__()
        self.places: list[asyncio.Future[Reply]] = []
        self.sent: list[int] = []

    async def ask(self, request: Request) -> Reply:
        self.places.append(asyncio.get_running_loop().create_future())
        return await self.places[-1]

    def gathered(self, *, live: bool) -> None:
        for place in self.places:
            if self.sent:
                place.set_result(Reply(text="ok"))
            else:
                place.set_exception(retryable("expired"))
        self.sent += [len(self.places)] if self.places else []
        self.places = []


async def test_what_failed_together_is_gathered_again_together(monkeypatch):
    monkeypatch.setattr("harness.calls.client.QUIET", 0.01)
    waits = iter((0.0, 0.2))
    monkeypatch.setattr("harness.calls.client.delay_before_retry", lambda *_, **__: next(waits))
    to, model = client(), Gathering()
    answers = await asyncio.gather(*(ask(to, model, make_request(text)) for text in "ab"))
    assert [answer.reply.text for answer in answers] == ["ok", "ok"]
    assert model.sent == [2, 2]


IDENTITY = Identity(kind="openai", name="m", details={"revision": "a"})
REQUEST = Request(
    messages=(Message(role="system", content="be brief"), Message(role="user", content="hï")),
    sampling=Sampling(temperature=1e-05, max_tokens=8, stop=("\n",)),
    seed=3,
)


def key(request: Request = REQUEST, identity: Identity = IDENTITY, **other: object) -> str:
    return call_key(identity, request, **{"repeat": 0, "run_id": "r1", **other})


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 4},
        *(
            {"sampling": replace(REQUEST.sampling, **few)}
            for few in ({"reasoning_tokens": 9}, {"top_k": 0}, {"presence_penalty": 0})
        ),
    ],
)
def test_every_part_makes_another_key(other):
    """Also those that `test_golden_keys.py` does not name."""
    assert key(replace(REQUEST, **other)) != key()


def test_what_a_request_is_about_is_no_part_of_it():
    topic = Topic(benchmark="b", stage="s", role="r", prompt="p", variables={"x": 1})
    assert key(replace(REQUEST, topic=topic)) == key()


def test_each_repeat_is_drawn_with_a_seed_of_its_own_that_fits_32_bits():
    seeds = [call_seed(0, repeat) for repeat in range(100)]
    assert len(set(seeds)) == 100
    assert all(0 <= seed <= LARGEST_SEED for seed in seeds)
    assert call_seed(0, 7) == seeds[7]
    assert call_seed(1, 7) != seeds[7]
