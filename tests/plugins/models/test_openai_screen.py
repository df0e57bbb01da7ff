"""What a server sends never brings a secret into a record, nor costs more than its own item."""

import gzip
import json
import tracemalloc
from base64 import b64encode
from urllib.parse import quote

import pytest
from harness_models.openai import make
from harness_models.openai_screen import Screen
from harness_models.openai_wire import read_reply

from harness.base.errors import UsageError
from harness.contracts.model import CallError, Message, ModelSettings, Request, Sampling, Usage
from harness.testing import Fault, FaultyServer
from harness.testing.faults import status

KEY = "topsecret9f8e7d6c5b4a/With+Signs=="
REQUEST = Request(messages=(Message("user", "hello"),), sampling=Sampling(), seed=9)


async def asked(**args):
    """The reply or the CallError to one request, and the model."""
    model = make(ModelSettings(args={"model": "m", **args}))
    await model.open()
    try:
        return await model.ask(REQUEST), model
    except CallError as error:
        return error, model
    finally:
        await model.close()


async def outcome(*faults, url="", **args):
    """The reply or the CallError of a server with these faults, and the model's report."""
    with FaultyServer(faults=list(faults)) as server:
        found, model = await asked(base_url=url.format(port=server.port) or server.url, **args)
    return found, model.report()


@pytest.mark.parametrize("key", ["x", "1", "EMPTY", "fifteen-letters"])
async def test_a_short_key_is_not_looked_for_in_what_a_model_said(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    said = f"Extreme EMPTY 1 fifteen-letters {key}"
    message = {"role": "assistant", "content": said, "reasoning": said}
    reply, report = await outcome(Fault(choice={"message": message}))
    assert (reply.text, reply.reasoning, report) == (said, said, {})


async def test_a_long_key_in_an_answer_is_redacted_once_it_is_read_and_counted(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    message = json.dumps({"content": f"a {KEY} and {KEY}", "reasoning": KEY})
    escaped = message.replace("/", "\\/").replace("+", "\\u002B")
    said = Fault(body=f'{{"choices": [{{"message": {escaped}, "finish_reason": "stop"}}]}}')
    with FaultyServer(faults=lambda asked: said) as server:
        model = make(ModelSettings(args={"model": "m", "base_url": server.url}))
        for _ in range(2):  # counts go on after it is opened again
            await model.open()
            reply = await model.ask(REQUEST)
            await model.close()
            assert (reply.text, reply.reasoning) == ("a *** and ***", "***")
    assert model.report() == {"keys_redacted": 6}


async def test_a_key_in_pieces_among_the_tokens_takes_their_probabilities_away(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    tokens = [{"token": part, "logprob": -1.0} for part in ("topsecret9f8e", KEY[13:])]
    fault = Fault(choice={"logprobs": {"content": tokens}})
    reply, report = await outcome(fault, logprobs="true")
    assert reply.logprobs is None
    assert report == {"replies_without_logprobs": 1}


@pytest.mark.parametrize("how", ["JSON", "text"])
async def test_an_error_shows_no_form_of_the_key(monkeypatch, how):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    said = f"the key <{b64encode(f'Bearer {KEY}'.encode()).decode()}> is not {KEY[:12]}"
    for code in (200, 401):
        body = {"error": {"message": said}} if how == "JSON" else said
        error, _ = await outcome(Fault(status=code, body=body))
        assert isinstance(error, CallError)
        assert "the key <" in error.detail and "***" in error.detail
        assert "VhcmVyIHRvcHN" not in error.detail and "topsecret9f8" not in error.detail


@pytest.mark.parametrize(
    ("variables", "url", "fault", "shown"),
    [
        # Half a key is a secret: it is redacted before a text is shortened.
        ({"OPENAI_API_KEY": KEY}, "", status(400, message="x" * 495 + KEY), f"{'x' * 495}***"),
        (
            {}, "http://bob:hunter%2F2@127.0.0.1:{port}/v1",
            status(401, message="no bob:hunter/2 and no hunter%2F2"), "no bob:*** and no ***",
        ),
        (
            {"OPENAI_CUSTOM_HEADERS": "X-Gateway-Key: gateway-secret\nCookie: a=b; "
             "session=abcdef123\nAccept: text/html"}, "",
            status(400, message="gateway-secret abcdef123 text/html"),
            "HTTP 400: *** *** text/html",
        ),
        # What an error means is read before.
        (
            {"OPENAI_API_KEY": "context length"}, "",
            status(400, message="maximum context length exceeded"), "maximum *** exceeded",
        ),
    ],
    ids=["long", "password", "headers", "meaning"],
)  # fmt: skip
async def test_no_secret_is_shown_in_an_error(monkeypatch, variables, url, fault, shown):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    error, _ = await outcome(fault, url=url)
    assert shown in error.detail and "tops" not in error.detail
    assert (error.cause == "overflow") == ("maximum" in shown)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("azure", [False, True])
async def test_no_redirect_is_followed(monkeypatch, code, azure):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway-Key: gateway-secret")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    with FaultyServer() as other:
        place = f"http://bob:{quote(KEY, safe='')}@127.0.0.1:{other.port}/v1?key={KEY}"
        moved = Fault(status=code, headers={"location": place}, body={})
        with FaultyServer(faults=lambda asked: moved, models=moved) as server:
            bare = server.url.removesuffix("/v1")
            address = {"azure_endpoint": bare} if azure else {"base_url": server.url}
            error, model = await asked(**address)
            found = (await model.check())[-1]
        assert other.count == 0
    assert (error.cause, error.fatal) == ("not_found", True)
    for text in (error.detail, found.says):
        assert f"the server points to http://127.0.0.1:{other.port}, and no" in text
        assert KEY not in text and "bob" not in text
    assert found.state == "bad"


@pytest.mark.parametrize(
    ("name", "value", "where"),
    [
        ("OPENAI_API_KEY", "two\nlines-of-a-key", "OPENAI_API_KEY"),
        ("OPENAI_API_KEY", "a-tab\tinside-lines-of", "OPENAI_API_KEY"),
        ("OPENAI_API_KEY", "a-null\x1b[0m-lines-of", "OPENAI_API_KEY"),
        ("OPENAI_CUSTOM_HEADERS", "X-Key: one\rtwo-lines-of", "OPENAI_CUSTOM_HEADERS, X-Key"),
    ],
)
async def test_what_no_header_can_hold_is_an_error_of_the_user(monkeypatch, name, value, where):
    monkeypatch.setenv(name, value)
    model = make(ModelSettings(args={"model": "m", "base_url": "http://127.0.0.1:9/v1"}))
    with pytest.raises(UsageError) as caught:
        model.require()
    said = [str(caught.value)]
    if name == "OPENAI_API_KEY":
        said += [f"{found.says} {found.to_do}" for found in await model.check()]
        assert len(said) == 2
    for text in said:
        assert f"{where}: a line break or another control character" in text
        assert value not in text and "lines-of" not in text


USAGE = {"prompt_tokens": 3, "completion_tokens": 2}


@pytest.mark.parametrize(
    ("given", "usage", "counted"),
    [
        *(
            ({**USAGE, **more}, None, {"replies_with_unusable_usage": 1})
            for wrong in (True, 2.5, "3", -1, [], 10**12)
            for more in (
                {"prompt_tokens": wrong},
                {"completion_tokens": wrong},
                {"prompt_tokens_details": {"cached_tokens": wrong}},
            )
        ),
        (None, None, {}),
        ({"prompt_tokens": None}, None, {}),
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": None}}, Usage(**USAGE), {}),
    ],
)
def test_a_usage_that_is_no_whole_number_is_null_and_counted(given, usage, counted):
    choices, screen = [{"message": {"content": "hi"}, "finish_reason": "stop"}], Screen()
    reply = read_reply({"choices": choices, "usage": given}, screen)
    assert (reply.text, reply.usage, screen.report()) == ("hi", usage, counted)


@pytest.mark.parametrize("depth", [970, 5_000])
@pytest.mark.parametrize(
    "body",
    ['{"error": {"message": %s}}', '{"error": {"code": %s}}', "%s", '{"choices": [{"message": '
     '{"content": "x"}, "finish_reason": %s}]}', '{"choices": [{"message": {"content": "x"}, '
     '"logprobs": {"content": %s}}]}'],
)  # fmt: skip
async def test_deep_json_costs_a_typed_error_at_most(body, depth):
    for code in (200, 400):
        found, _ = await outcome(Fault(status=code, body=body % ("[" * depth + "]" * depth)))
        assert isinstance(found, CallError) or found.text == "x"


@pytest.mark.parametrize("code", [200, 400])
async def test_half_a_surrogate_in_an_error_or_an_id_can_be_written(code):
    error, _ = await outcome(Fault(status=code, body='{"error": {"message": "an \\ud800 emoji"}}'))
    assert isinstance(error, CallError)
    assert error.detail.encode()
    body = '{"id": "\\ud800", "choices": [{"message": {"content": "cut \\ud83d"}}]}'
    reply, _ = await outcome(Fault(body=body))
    assert (reply.text, reply.id) == ("cut \ufffd", "\ufffd")


@pytest.mark.parametrize(
    "logprobs",
    [{"content": ["x"]}, {"content": [{"token": "a", "logprob": -1, "top_logprobs": ["x"]}]},
     {"content": [{"token": "a", "logprob": 10**400}]}, {"content": [{"token": "o"}]},
     {"content": [{"token": "o", "logprob": None}]}, {"content": None}, [],
     {"tokens": ["o", "k"], "token_logprobs": [-0.5]},
     {"tokens": ["a"], "token_logprobs": [-1.0], "top_logprobs": ["x"]}],
)  # fmt: skip
def test_logprobs_that_are_none_are_left_out(logprobs):
    choice = {"message": {"content": "hi"}, "logprobs": logprobs}
    reply = read_reply({"choices": [choice]})
    assert (reply.text, reply.logprobs) == ("hi", None)


class Packed(str):
    """A body whose bytes are a small file that unpacks to a hundred megabytes."""

    PACKED = gzip.compress(b"0" * 100_000_000)

    def encode(self):
        return self.PACKED


async def test_a_compressed_bomb_costs_little_memory_and_one_item():
    bomb = Fault(body=Packed(), headers={"content-encoding": "gzip"})
    with FaultyServer(faults=[bomb], models=bomb) as server:
        tracemalloc.start()
        try:
            error, model = await asked(base_url=server.url, max_answer_bytes="1000000")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        found = (await model.check())[-1]
    assert (error.cause, error.retryable) == ("bad_response", False)
    assert error.detail == "HTTP 200: the answer has more than max_answer_bytes=1000000"
    assert peak < 10_000_000
    assert "more than max_answer_bytes=1000000" in found.says


async def test_a_body_of_the_largest_size_is_read():
    body = json.dumps({"choices": [{"message": {"content": "hi"}}]})
    for size, whole in ((len(body), True), (len(body) - 1, False)):
        found, _ = await outcome(Fault(body=body), max_answer_bytes=str(size))
        assert isinstance(found, CallError) is not whole


async def test_a_key_that_is_withheld_is_a_finding_only_where_it_is_set(monkeypatch):
    args = {"model": "m", "base_url": "http://far.invalid/v1"}
    settings = ModelSettings(args=args, given_hosts=frozenset())
    key, _ = await make(settings).check()
    assert (key.state, key.says) == ("good", "OPENAI_API_KEY is not set: requests carry no key")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    key, _ = await make(settings).check()
    assert key.state == "doubtful"
    assert key.says == "OPENAI_API_KEY is not sent to far.invalid, which only a file names"


async def test_a_line_of_a_batch_is_read_without_the_key_of_a_file(tmp_path):
    (tmp_path / "key").write_text(KEY)
    args = {"model": "m", "base_url": "http://h/v1", "api_key_file": str(tmp_path / "key")}
    model = make(ModelSettings(args=args))
    body = {"choices": [{"message": {"content": f"it is {KEY}"}}]}
    assert model.read_batch(200, body).text == "it is ***"
    with pytest.raises(CallError) as caught:
        model.read_batch(400, {"error": {"message": f"no {KEY[:20]}"}})
    assert caught.value.detail == "HTTP 400: no ***"


async def test_a_proxy_that_refuses_is_named_without_its_password(monkeypatch):
    with FaultyServer(faults=lambda asked: Fault(status=407, body={})) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://bob:pw1@127.0.0.1:{proxy.port}")
        error, _ = await asked(base_url="https://far.invalid/v1")
    assert error.detail.startswith("https://far.invalid/v1: the proxy answers ")
    assert "pw1" not in error.detail
