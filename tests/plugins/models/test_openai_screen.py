"""What a server sends never brings a secret into a record, nor costs more than its own item."""

import gzip
import json
import tracemalloc
from base64 import b64encode
from urllib.parse import quote

import pytest
from harness_models import openai
from harness_models.openai import make
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


def saying(text, **message):
    return Fault(choice={"message": {"role": "assistant", "content": text, **message}})


@pytest.mark.parametrize("key", ["x", "1", "EMPTY", "fifteen-letters"])
async def test_a_short_key_is_not_looked_for_in_what_a_model_said(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    said = f"Extreme EMPTY 1 fifteen-letters {key}"
    reply, report = await outcome(saying(said, reasoning=said))
    assert (reply.text, reply.reasoning) == (said, said)
    assert report == {}


async def test_a_long_key_in_an_answer_is_redacted_and_counted(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sixteen-letters!")
    text = "a sixteen-letters! and sixteen-letters!"
    reply, report = await outcome(saying(text, reasoning="sixteen-letters!"))
    assert (reply.text, reply.reasoning) == ("a *** and ***", "***")
    assert report == {"keys_redacted": 3}


async def test_a_key_that_is_escaped_in_an_answer_is_redacted_once_it_is_read(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    message = json.dumps({"content": f"it is {KEY}"}).replace("/", "\\/").replace("+", "\\u002B")
    body = f'{{"choices": [{{"message": {message}, "finish_reason": "stop"}}]}}'
    reply, report = await outcome(Fault(body=body))
    assert reply.text == "it is ***"
    assert report == {"keys_redacted": 1}


async def test_a_key_in_pieces_among_the_tokens_takes_their_probabilities_away(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    tokens = [{"token": part, "logprob": -1.0} for part in ("topsecret9f8e", KEY[13:])]
    fault = Fault(choice={"logprobs": {"content": tokens}})
    reply, report = await outcome(fault, logprobs="true")
    assert reply.logprobs is None
    assert report == {"replies_without_logprobs": 1}


FORMS = {
    "as it is": KEY,
    "with escaped slashes": KEY.replace("/", "\\/").replace("+", "\\u002B"),
    "in an address": quote(KEY, safe=""),
    "in an address, twice": quote(quote(KEY, safe=""), safe="").lower(),
    "in HTML": "".join(f"&#{ord(sign)};" for sign in KEY),
    "in base64": b64encode(KEY.encode()).decode(),
    "in base64 of a header": b64encode(f"Bearer {KEY}".encode()).decode(),
    "in base64 of credentials": b64encode(f"someone:{KEY}".encode()).decode(),
    "cut after twelve signs": "topsecret9f8",
    "cut in the middle": "topsecret9f8e7d6c***",
}
"""How servers repeat a key: each form, once decoded, holds its first twelve signs."""

LEFT = ("topsecret9f8", "dG9wc2VjcmV0", "VhcmVyIHRvcHN", "b21lb25lOnRvcHNlY")
"""What a text would still hold of them: in base64, the key's own beginning."""


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("how", ["JSON", "text"])
async def test_an_error_shows_no_form_of_the_key(monkeypatch, form, how):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    said = f"the key <{form}> is wrong"
    for code in (200, 401):
        body = {"error": {"message": said}} if how == "JSON" else said
        error, _ = await outcome(Fault(status=code, body=body))
        assert isinstance(error, CallError)
        assert "the key <" in error.detail and "***" in error.detail
        assert not [left for left in LEFT if left in error.detail]


async def test_a_text_that_is_shortened_is_redacted_first(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    error, _ = await outcome(status(400, message="x" * 495 + KEY))
    assert "tops" not in error.detail


async def test_a_password_of_the_address_is_redacted_as_it_is_written_and_as_it_is_meant():
    url = "http://bob:hunter%2F2@127.0.0.1:{port}/v1"
    said = "no bob:hunter/2 and no hunter%2F2"
    error, _ = await outcome(status(401, message=said), url=url)
    assert "no bob:*** and no ***" in error.detail


async def test_values_of_the_user_s_headers_are_redacted(monkeypatch):
    headers = "X-Gateway-Key: gateway-secret\nCookie: a=b; session=abcdef123\nAccept: text/html"
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", headers)
    said = "gateway-secret abcdef123 text/html"
    error, _ = await outcome(status(400, message=said))
    assert error.detail == "HTTP 400: *** *** text/html"


async def test_what_an_error_means_is_read_before_keys_are_redacted(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "context length")
    error, _ = await outcome(status(400, message="maximum context length exceeded"))
    assert (error.cause, error.detail) == ("overflow", "HTTP 400: maximum *** exceeded")


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


@pytest.mark.parametrize("key", ["two\nlines-of-a-key", "a-tab\tinside", "a-null\x1b[0m-key"])
async def test_a_key_that_no_header_can_hold_is_an_error_of_the_user(monkeypatch, key):
    monkeypatch.setitem(openai.os.environ, "OPENAI_API_KEY", key)
    model = make(ModelSettings(args={"model": "m", "base_url": "http://127.0.0.1:9/v1"}))
    for attempt in (model.require, model.check):
        try:
            result = attempt()
            (found,) = await result
            text = f"{found.says} {found.to_do}"
        except UsageError as error:
            text = str(error)
        assert "OPENAI_API_KEY: a line break or another control character" in text
        assert key not in text and "lines-of" not in text


def test_a_header_of_the_user_that_cannot_be_sent_is_an_error_of_the_user(monkeypatch):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Key: one\rtwo-secret")
    model = make(ModelSettings(args={"model": "m", "base_url": "http://127.0.0.1:9/v1"}))
    with pytest.raises(UsageError, match="OPENAI_CUSTOM_HEADERS, X-Key") as caught:
        model.require()
    assert "secret" not in str(caught.value)


USAGE = {"prompt_tokens": 3, "completion_tokens": 2}


@pytest.mark.parametrize("wrong", [True, 2.5, "3", -1, [], 10**12])
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "cached_tokens"])
async def test_a_usage_that_is_no_whole_number_is_null_and_counted(name, wrong):
    usage = {**USAGE, name: wrong}
    if name == "cached_tokens":
        usage = {**USAGE, "prompt_tokens_details": {name: wrong}}
    choices = [{"message": {"content": "hi"}, "finish_reason": "stop"}]
    reply, report = await outcome(Fault(body={"choices": choices, "usage": usage}))
    assert (reply.text, reply.usage) == ("hi", None)
    assert report == {"replies_with_unusable_usage": 1}


async def test_a_usage_that_is_not_given_is_null_and_not_counted():
    choices = [{"message": {"content": "hi"}, "finish_reason": "stop"}]
    details = {"prompt_tokens_details": {"cached_tokens": None}}
    for usage, expected in (
        (None, None),
        ({"prompt_tokens": None}, None),
        ({**USAGE, **details}, Usage(prompt_tokens=3, completion_tokens=2)),
    ):
        reply, report = await outcome(Fault(body={"choices": choices, "usage": usage}))
        assert (reply.usage, report) == (expected, {})


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


async def test_counts_go_on_after_a_model_is_opened_again(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    said = saying(f"it is {KEY}")
    with FaultyServer(faults=lambda asked: said) as server:
        model = make(ModelSettings(args={"model": "m", "base_url": server.url}))
        for _ in range(2):
            await model.open()
            await model.ask(REQUEST)
            await model.close()
    assert model.report() == {"keys_redacted": 2}


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
