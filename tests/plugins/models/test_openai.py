"""The adapter against a real server, one request at a time: headers, proxies, certificates."""

import asyncio
import logging
import shutil
import ssl
import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace

import aiohttp
import pytest
import trustme
import truststore
from aiohttp import web
from aiohttp.test_utils import TestServer
from builders.requests import make_request
from harness_models import openai
from harness_models.openai import connection_error, make
from harness_models.openai_wire import headers_with
from openai import AsyncOpenAI

from harness.contracts.model import CallError, ModelSettings
from harness.testing import Fault
from harness.testing.faults import BROKEN_JSON, OTHER_TYPE, RESET, RESET_IN_BODY, SILENCE, status

REQUEST = make_request(seed=9, temperature=0.5)


@pytest.fixture
async def open_model(server):
    """Opens models of the server; all are closed after the test."""
    made = []

    async def opened(attempt_timeout=60.0, **args):
        args = {"model": "m", "base_url": server.url, **args}
        made.append(make(ModelSettings(args=args, attempt_timeout=attempt_timeout)))
        await made[-1].open()
        return made[-1]

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
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n"
    monkeypatch.setattr("harness.testing.server._head", lambda *_: head + b'"\xff')
    server.faults = [Fault(body="{}")]
    assert (await failure(model)).cause == "bad_response"


@pytest.mark.parametrize(
    "late", [aiohttp.ConnectionTimeoutError("to"), aiohttp.ClientOSError(110, "timed out")]
)
def test_who_waits_in_vain_to_connect_lost_a_connection(late):
    found = connection_error(late)
    assert (found.cause, found.retryable) == ("connection", True)


async def test_requests_go_through_the_proxy_of_the_environment(open_model, server, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
    model = await open_model(base_url="http://far-away.invalid/v1")
    assert (await model.ask(REQUEST)).text == "ok"
    monkeypatch.setenv("no_proxy", "far-away.invalid")
    model = await open_model(base_url="http://far-away.invalid/v1")
    assert (await failure(model)).cause == "connection"


@pytest.mark.parametrize(
    ("fault", "cause"), [(RESET, "connection"), (RESET_IN_BODY, "connection"), (SILENCE, "timeout")]
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


async def test_a_refused_key_ends_the_run_and_is_named(open_model, server, monkeypatch, caplog):
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
    server.faults = lambda asked: status(401)
    error = await failure(await open_model())
    assert "OPENAI_API_KEY is not set" in error.detail
    assert server.asked[-1].headers["authorization"] == "Bearer not-needed"


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


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1"},
        {"OPENAI_ORG_ID": ""},
        {"OPENAI_CUSTOM_HEADERS": "X-Team: red\nno header\nX-Time: 10:30 "},
        {"OPENAI_CUSTOM_HEADERS": "Authorization: Bearer other\nUser-Agent: mine"},
    ],
)
def test_the_headers_are_those_of_the_official_client_from_our_user_agent(monkeypatch, given):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    client = AsyncOpenAI(api_key="sk-1")
    theirs = {**client.default_headers, **client.auth_headers}
    if "mine" not in given.get("OPENAI_CUSTOM_HEADERS", ""):
        theirs["User-Agent"] = f"user-understanding-harness/{version('user-understanding-harness')}"
    assert headers_with("sk-1") == {
        name: value
        for name, value in theirs.items()
        if isinstance(value, str) and not name.startswith("X-Stainless-")
    }


@pytest.mark.parametrize("named", [True, False])
async def test_a_host_that_only_a_file_names_gets_no_headers_of_the_environment(monkeypatch, named):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway-Key: gateway-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("THEIR_KEY", "a-key-of-their-own")
    args = {"model": "m", "base_url": "http://far.invalid/v1", "api_key_env": "THEIR_KEY"}
    hosts = frozenset({"far.invalid"} if named else ())
    seen = []
    monkeypatch.setattr("aiohttp.ClientSession", lambda **given: seen.append(given["headers"]))
    await make(ModelSettings(args=args, given_hosts=hosts)).open()
    assert ("X-Gateway-Key" in seen[0], "OpenAI-Project" in seen[0]) == (named, named)
    assert seen[0]["Authorization"] == "Bearer a-key-of-their-own"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def authority(tmp_path):
    """A certificate authority that nobody knows, in `authority.pem`."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    return made


async def asked(authority):
    """What a server with a certificate of this authority answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    app = web.Application()

    async def answer(request):
        return web.json_response({"choices": [{"message": {"content": "ok"}}]})

    app.router.add_post("/v1/chat/completions", answer)
    server = TestServer(app, host="localhost")
    await server.start_server(ssl=context)
    url = f"https://localhost:{server.port}/v1"
    model = openai.make(ModelSettings(args={"model": "m", "base_url": url}))
    await model.open()
    try:
        return (await model.ask(REQUEST)).text
    finally:
        await model.close()
        await server.close()


def name_by_openssl(pem):
    """The name under which OpenSSL looks for a certificate in a folder."""
    if shutil.which("openssl") is None:
        pytest.skip("only openssl tells that name")
    command = ["openssl", "x509", "-noout", "-hash", "-in", str(pem)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


async def test_an_authority_is_refused_unless_a_variable_names_it(authority, tmp_path, monkeypatch):
    with pytest.raises(CallError, match="certificate verify failed") as caught:
        await asked(authority)
    assert (caught.value.cause, caught.value.retryable) == ("connection", False)
    pem, certs = tmp_path / "authority.pem", tmp_path / "certs"
    with monkeypatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(pem))
        assert await asked(authority) == "ok"
    certs.mkdir()
    name = await asyncio.to_thread(name_by_openssl, pem)
    shutil.copy(pem, certs / f"{name}.0")
    monkeypatch.setenv("SSL_CERT_DIR", str(certs))
    assert await asked(authority) == "ok"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system has no such file")
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_a_variable_replaces_system_authorities(authority, tmp_path, monkeypatch, variable):
    system(monkeypatch, tmp_path / "authority.pem")
    assert await asked(authority) == "ok"
    (tmp_path / "others").mkdir()
    other = tmp_path / "others" / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    monkeypatch.setenv(variable, str(other if variable == "SSL_CERT_FILE" else other.parent))
    with pytest.raises(CallError, match="certificate verify failed"):
        await asked(authority)


def test_where_openssl_knows_no_file_the_system_is_asked(monkeypatch):
    system(monkeypatch, None)
    assert isinstance(openai.trust(), truststore.SSLContext)


def system(monkeypatch, file):
    """Have the system's store be one file, or none."""
    found = SimpleNamespace(cafile=file and str(file), capath=None)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: found)
