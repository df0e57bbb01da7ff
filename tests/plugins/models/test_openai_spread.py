"""One model behind two servers: who is asked, and what happens when one is away."""

import asyncio

import pytest
from builders.requests import make_request
from harness_models import openai_spread
from harness_models.openai import make

from harness.contracts.embedder import vectors_in
from harness.contracts.model import CallError, Message, ModelSettings, Request, Sampling
from harness.pipeline.settings import hosts_in
from harness.registry import load_plugins
from harness.testing import FaultyServer
from harness.testing.faults import SILENCE, status


@pytest.fixture
def two():
    """Two servers, the second of which answers with its number."""
    with FaultyServer(lambda body: "one") as one, FaultyServer(lambda body: "two") as two:
        yield one, two


@pytest.fixture
async def spread():
    """Makes models over servers or addresses, which are open; all are closed after the test."""
    made = []

    async def opened(*servers, embeds=False, ceiling=None, **given):
        urls = [getattr(server, "url", server) for server in servers]
        args = {"model": "m", "base_url": ";".join(urls), **given}
        settings = ModelSettings(args=args, embeds=embeds, concurrency=ceiling)
        model = load_plugins().model("openai").factory(settings)
        made.append(model)
        await model.open()
        return model

    yield opened
    for model in made:
        await model.close()


@pytest.fixture
async def model(two, spread):
    return await spread(*two)


def described(*urls, **given):
    return make(ModelSettings(args={"model": "m", "base_url": ";".join(urls), **given})).identity


async def test_requests_go_to_the_server_with_the_fewest_in_flight(two, model):
    one, other = two
    one.faults = (SILENCE,)
    slow = asyncio.ensure_future(model.ask(make_request("first")))
    while not one.count:  # noqa: ASYNC110 - a thread counts
        await asyncio.sleep(0.01)
    assert [(await model.ask(make_request(f"{n}"))).text for n in range(5)] == ["two"] * 5
    assert (one.count, other.count, slow.done()) == (1, 5, False)
    slow.cancel()


async def test_requests_in_flight_are_added_up_and_shared_evenly(two, model, spread):
    await asyncio.gather(*(model.ask(make_request(f"{n}")) for n in range(40)))
    assert [server.count for server in two] == [20, 20]
    for n in range(4):
        await model.ask(make_request(f"later {n}"))
    assert [server.count for server in two] == [22, 22]
    assert model.concurrency == 128
    assert (await spread(*two, ceiling=9, concurrency="5")).concurrency == 5
    assert (await spread(*two, ceiling=9)).concurrency == 9


async def test_a_server_that_is_away_is_replaced_by_another_and_said_once(two, model, tmp_path):
    one, other = two
    shown = []
    model.attach_log(tmp_path, shown.append)
    one.die()
    replies = [await model.ask(make_request(f"{n}")) for n in range(6)]
    assert [reply.text for reply in replies] == ["two"] * 6
    assert other.count == 6
    (line,) = shown
    assert line.startswith(f"openai:m: {one.url}: ")
    assert line.endswith("; the other servers are asked")
    # It rests after its failure, so that not every second request tries it.
    assert model.report() == {"unreached": {one.url: 1}}


async def test_a_server_is_asked_again_after_its_rest(two, model, monkeypatch):
    monkeypatch.setattr(openai_spread, "REST_SECONDS", 0.2)
    one, _ = two
    one.die(0.3)
    assert (await model.ask(make_request("first"))).text == "two"
    while (await model.ask(make_request("again"))).text != "one":  # noqa: ASYNC110 - a thread opens it
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("code", "cause", "fatal"), [(503, "server_error", False), (401, "auth", True)]
)
async def test_a_failure_is_not_asked_elsewhere_nor_draws_all(two, model, code, cause, fatal):
    one, other = two
    one.faults = [status(code)] * 50
    with pytest.raises(CallError) as caught:
        await model.ask(make_request())
    assert (caught.value.cause, caught.value.fatal, other.count) == (cause, fatal, 0)
    assert caught.value.retryable is not fatal
    if not fatal:
        assert [(await model.ask(make_request(f"{n}"))).text for n in range(9)] == ["two"] * 9
        assert (one.count, other.count) == (1, 9)


def test_the_identity_knows_no_order_and_with_a_pin_no_address():
    a, b = "http://a:1/v1", "http://b:2/v1"
    assert described(a, b) == described(b, a)
    assert described(a, b).details == {"host": ["a:1", "b:2"]}
    assert described(a).details == described(f"{a}/x", f"{a}/y").details == {"host": "a:1"}
    for pin in ("revision", "identity"):
        assert described(a, b, **{pin: "r"}) == described(a, **{pin: "r"})
    named = hosts_in(["base_url=http://a:1;http://b/v1;https://me:pw@c.d:3/v1,model=m"])
    assert named == {"a:1", "b", "c.d:3"}


async def test_texts_are_embedded_at_both(two, spread):
    model = await spread(*two, embeds=True)
    texts = make_request("a")
    replies = await asyncio.gather(*(model.ask(texts) for _ in range(4)))
    assert [vectors_in(reply.text).shape[0] for reply in replies] == [1] * 4
    assert [server.count for server in two] == [2, 2]
    assert (model.takes_batches, model.asked_if_thinking, model.thinks()) == (False, False, False)


async def test_a_server_that_is_away_is_a_doubt_and_all_are_a_typed_error(two, model):
    assert {one.state for one in await model.check()} == {"good"}
    assert model.batch_line(make_request())["url"] == "/v1/chat/completions"
    two[0].die()
    states = [(one.about, one.state) for one in await model.check()]
    assert states == [("key", "good"), ("server", "doubtful"), ("server", "good")]
    two[1].die()
    states = [(one.about, one.state) for one in await model.check()]
    assert states == [("key", "good"), ("server", "bad"), ("server", "bad")]
    await model.open()
    for _ in range(2):
        with pytest.raises(CallError) as caught:
            await model.ask(make_request())
        assert (caught.value.cause, caught.value.retryable) == ("connection", True)
    assert model.report() == {"unreached": {server.url: 2 for server in two}}


async def test_what_a_server_cannot_do_is_learnt_for_each(two, spread):
    for server in two:
        server.faults = lambda asked: (
            status(400, message="system role not supported")
            if asked.body["messages"][0]["role"] == "system"
            else None
        )
    model = await spread(*two, system_role="auto")
    messages = (Message("system", "s"), Message("user", "u"))
    for _ in range(4):
        await model.ask(Request(messages=messages, sampling=Sampling(), seed=0))
    assert model.report() == {"system_role": False}
