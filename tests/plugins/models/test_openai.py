"""The adapter against a real server, one request at a time."""

import asyncio
import logging

import aiohttp
import pytest
from builders.requests import make_request
from harness_models.openai import connection_error, make

from harness.contracts.model import CallError, ModelSettings
from harness.testing import Fault
from harness.testing.faults import (
    BROKEN_JSON,
    OTHER_TYPE,
    RESET,
    RESET_IN_BODY,
    SILENCE,
    status,
)

REQUEST = make_request(seed=9, temperature=0.5)


@pytest.fixture
async def open_model(server):
    """Opens models of the server; all are closed after the test."""
    made = []

    async def opened(attempt_timeout=60.0, **args):
        args = {"model": "m", "base_url": server.url, **args}
        model = make(ModelSettings(args=args, attempt_timeout=attempt_timeout))
        made.append(model)
        await model.open()
        return model

    yield opened
    for model in made:
        await model.close()


@pytest.fixture
async def model(open_model):
    return await open_model()


async def failure(model):
    with pytest.raises(CallError) as caught:
        await model.ask(REQUEST)
    return caught.value


@pytest.mark.parametrize(
    "broken", [OTHER_TYPE, BROKEN_JSON, Fault(body="[" * 200_000), Fault(body="")]
)
async def test_a_page_and_broken_json_are_typed_errors(model, server, broken):
    server.faults = [broken]
    error = await failure(model)
    assert (error.cause, error.retryable) == ("bad_response", True)
    assert ("the proxy is tired" in error.detail) == (broken is OTHER_TYPE)


async def test_bytes_that_are_no_text_are_a_typed_error(model, server, monkeypatch):
    monkeypatch.setattr("harness.testing.server._head", _head_of_latin)
    server.faults = [Fault(body="{}")]
    assert (await failure(model)).cause == "bad_response"


def _head_of_latin(*_):
    return b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n"\xff'


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (aiohttp.ConnectionTimeoutError("to host"), "connection"),
        (aiohttp.SocketTimeoutError("reading"), "timeout"),
        (aiohttp.ServerDisconnectedError(), "connection"),
        (aiohttp.ClientOSError(110, "Connection timed out"), "connection"),
        (aiohttp.ClientPayloadError("half"), "connection"),
    ],
)
def test_timeouts_are_distinguished_from_lost_connections(error, cause):
    found = connection_error(error)
    assert (found.cause, found.retryable) == (cause, True)


async def test_requests_go_through_the_proxy_that_the_environment_names(
    open_model, server, monkeypatch
):
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
    model = await open_model(base_url="http://far-away.invalid/v1")
    assert (await model.ask(REQUEST)).text == "ok"
    monkeypatch.setenv("no_proxy", "far-away.invalid")
    model = await open_model(base_url="http://far-away.invalid/v1")
    assert (await failure(model)).cause == "connection"


@pytest.mark.parametrize(
    ("fault", "cause"),
    [(RESET, "connection"), (RESET_IN_BODY, "connection"), (SILENCE, "timeout")],
)
async def test_a_lost_connection_is_no_timeout_and_silence_is_one(open_model, server, fault, cause):
    server.faults = [fault]
    error = await failure(await open_model(attempt_timeout=0.5))
    assert (error.cause, error.retryable) == (cause, True)


async def test_one_attempt_is_one_request_and_its_error_carries_status_and_wait(model, server):
    server.faults = [status(429, headers={"Retry-After": "3"}), status(503, message="busy")]
    limited, busy = await failure(model), await failure(model)
    assert (limited.cause, limited.status, limited.retry_after) == ("rate_limited", 429, 3.0)
    assert (busy.cause, busy.detail, busy.retry_after) == ("server_error", "HTTP 503: busy", None)
    assert server.count == 2


async def test_a_refused_key_ends_the_run_and_names_the_variable(
    open_model, server, monkeypatch, caplog
):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    server.faults = [status(401, message="Incorrect API key: sk-very-secret")]
    model = await open_model(api_key_env="MY_KEY")
    error = await failure(model)
    await model.ask(REQUEST)
    assert (error.cause, error.fatal) == ("auth", True)
    assert "MY_KEY" in error.detail
    assert server.asked[0].headers["authorization"] == "Bearer sk-very-secret"
    seen = [str(error), repr(error), repr(model), repr(vars(model)), str(model.identity)]
    assert not any("sk-very-secret" in text for text in [*seen, caplog.text])


async def test_without_a_key_a_dummy_is_sent_and_a_refusal_says_so(model, server):
    server.faults = [status(401)]
    error = await failure(model)
    assert "OPENAI_API_KEY is not set" in error.detail
    assert server.asked[0].headers["authorization"] == "Bearer not-needed"


async def test_the_pool_is_as_wide_as_the_concurrency(open_model, server):
    server.faults = lambda asked: SILENCE
    model = await open_model(concurrency="150")
    asks = asyncio.gather(*[model.ask(REQUEST) for _ in range(150)])
    while server.most_in_flight < 150:  # noqa: ASYNC110 - a thread counts
        await asyncio.sleep(0.01)
    asks.cancel()


async def test_it_opens_again_after_it_was_closed(model):
    await model.close()
    with pytest.raises(RuntimeError, match="before open"):
        await model.ask(REQUEST)
    await model.open()
    await model.open()
    assert (await model.ask(REQUEST)).text == "ok"
