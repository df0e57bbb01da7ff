"""What the arguments of an `openai` model mean: addresses, keys, identities and requests."""

import pytest
from harness_models.openai import OpenAIModel, make
from harness_models.openai_args import (
    OpenAIArgs,
    check_sampling,
    identity_of,
    read_each,
)
from harness_models.openai_wire import read_logprobs

from harness.base.errors import UsageError
from harness.contracts.identity import Identity
from harness.contracts.model import (
    CallError,
    Message,
    ModelSettings,
    Request,
    Sampling,
    TokenLogprob,
)
from harness.pipeline.settings import parse_args, parse_spec
from harness.testing import Fault
from harness.testing.faults import status


def read_args(settings):
    """The arguments of a model with one address."""
    (one,) = read_each(settings)
    return one


def args(**given):
    return read_args(ModelSettings(args={"model": "m", **given}))


def test_arguments_are_typed():
    texts = {"base_url": "http://host:8000/v1", "revision": "abc", "api_key_env": "MY_KEY"}
    given = {"immutable": "True", "concurrency": "7", "seed": "off", "system_role": "false"}
    assert args(**texts, **given) == OpenAIArgs(
        model="m", **texts, immutable=True, concurrency=7, seed=False, system_role=False
    )


DEPLOYED = {"azure_endpoint": "https://a.org", "api_version": "v", "azure_deployment": "d"}


@pytest.mark.parametrize(
    ("given", "structured", "details", "scope"),
    [
        ({}, False, {"host": "api.openai.com"}, "run"),
        ({"base_url": "http://h:1/v1"}, False, {"host": "h:1"}, "run"),
        ({"revision": "abc"}, False, {"revision": "abc"}, "everywhere"),
        ({"identity": "step-900"}, False, {"identity": "step-900"}, "everywhere"),
        ({"immutable": "true", "base_url": "https://h/v1"}, False, {"host": "h"}, "everywhere"),
        (
            {"immutable": "true", "base_url": "http://h:8000/v1", "revision": "abc"}, False,
            {"revision": "abc"}, "everywhere",
        ),
        (
            {"system_role": "false", "revision": "abc"}, False,
            {"revision": "abc", "system_role": False}, "everywhere",
        ),
        ({**DEPLOYED, "revision": "r"}, False, {"revision": "r"}, "everywhere"),
        (DEPLOYED, False, {"host": "a.org", "deployment": "d"}, "run"),
        (
            {"seed": "false"}, True,
            {"host": "api.openai.com", "seed": False, "structured": True}, "run",
        ),
    ],
)  # fmt: skip
def test_identity_is_what_was_given_or_else_the_host(given, structured, details, scope):
    found = identity_of(args(**given), structured=structured)
    assert found == Identity(kind="openai", name="m", details=details, scope=scope)


def test_without_an_address_the_environment_and_then_openai_is_asked(monkeypatch):
    assert args(base_url="http://me:pw@host:8000/v1").address == "http://host:8000/v1"
    assert args().address == "https://api.openai.com/v1"
    assert args().tokens_field == "max_completion_tokens"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://env:1/v1")
    assert args().address == "http://env:1/v1"
    assert args().tokens_field == "max_tokens"
    assert args(max_tokens_field="n_predict").tokens_field == "n_predict"
    # The environment's address is held to the same.
    monkeypatch.setenv("OPENAI_BASE_URL", "http://h/v1/chat/completions")
    with pytest.raises(UsageError) as caught:
        args()
    assert caught.value.where == "the environment"
    assert caught.value.found == "OPENAI_BASE_URL=http://h/v1/chat/completions"
    assert args(base_url="http://other/v1").base_url == "http://other/v1"
    monkeypatch.delenv("OPENAI_BASE_URL")
    for own, general, expected in (({}, None, 64), ({}, 8, 8), ({"concurrency": "3"}, 8, 3)):
        given = ModelSettings(args={"model": "m", **own}, concurrency=general)
        assert make(given).concurrency == expected


@pytest.mark.parametrize(
    ("url", "own", "may"),
    [
        ("https://api.openai.com/v1", "", True),
        ("http://api.openai.com/v1", "", False),
        ("http://localhost:8000/v1", "", True),
        ("http://127.0.0.2/v1", "", True),
        ("http://Mine:1/v1", "", True),
        ("http://mine:2/v1", "", False),
        ("http://evil.org/v1", "", False),
        ("http://evil.org/v1", "http://evil.org/v2", True),
        ("http://localhost.evil.org/v1", "", False),
        ("http://127.0.0.1.evil.org/v1", "", False),
        ("https://api.openai.com@evil.org/v1", "", False),
        ("http://mine:1@evil.org/v1", "", False),
    ],
)
def test_the_usual_key_is_for_hosts_that_the_user_named(monkeypatch, url, own, may):
    monkeypatch.setenv("OPENAI_BASE_URL", own)
    given = {"model": "m", "base_url": url}
    hosts = frozenset({"mine:1"})
    two = ModelSettings(args={**given, "base_url": f"http://Mine:1/v2;{url}"}, given_hosts=hosts)
    sent = ["OPENAI_API_KEY", "OPENAI_API_KEY" if may else None]
    assert [one.api_key_env for one in read_each(two)] == sent
    named = read_args(ModelSettings(args={**given, "api_key_env": "MINE"}, given_hosts=hosts))
    assert named.api_key_env == "MINE"
    assert read_args(ModelSettings(args=given)).api_key_env == "OPENAI_API_KEY"
    azure = {"model": "m", "azure_endpoint": "https://azure.org"}
    assert read_args(ModelSettings(args=azure, given_hosts=frozenset())).api_key_env is None
    assert read_args(ModelSettings(args=azure)).api_key_env == "AZURE_OPENAI_API_KEY"


def test_openais_own_servers_are_sent_no_top_k_and_no_field_is_set_twice():
    drawn = Sampling(top_k=20, presence_penalty=0.5)
    other = {"base_url": "http://host:8000/v1"}
    check_sampling(args(), Sampling(presence_penalty=0.5))
    check_sampling(args(**other), drawn)
    check_sampling(args(**{"extra_body.top_k": "9"}), Sampling())
    with pytest.raises(UsageError, match="OpenAI's own servers have no top_k") as caught:
        check_sampling(args(), drawn)
    assert "--gen_kwargs top_k=null" in str(caught.value)
    for name in ("top_k", "presence_penalty"):
        with pytest.raises(UsageError, match=f"{name} is set by the sampling and by extra_body"):
            check_sampling(args(**other, **{f"extra_body.{name}": "1"}), drawn)


USER = Message("user", "u")
SYSTEM = Message("system", "s")


def request(*messages, **sampling):
    return Request(messages=messages or (USER,), sampling=Sampling(**sampling), seed=0)


def settings(text):
    return ModelSettings(args=parse_args(text))


async def asked(text, *requests, told=None):
    """The replies of a model with these arguments, and its report in the end."""
    model = make(settings(text))
    model.attach_log(None, (told if told is not None else []).append)
    await model.open()
    try:
        replies = [await model.ask(one) for one in requests or (request(),)]
        return [*replies, model.report()]
    finally:
        await model.close()


def identity(text):
    return make(settings(text)).identity


async def test_the_completions_endpoint_gets_one_text_and_where_to_stop(server):
    given = f"model=m,base_url={server.url},endpoint=completions"
    reply, _ = await asked(given, request(SYSTEM, USER, stop=("END",), max_tokens=9))
    assert reply.text == "ok"
    assert reply.usage.prompt_tokens == 4
    assert server.asked[0].target == "/v1/completions"
    assert server.requests == [
        {"model": "m", "prompt": "s\n\nUser: u\n\nAssistant:", "temperature": 0.0, "max_tokens": 9,
         "stop": ["END", "\n\nUser:"]}
    ]  # fmt: skip
    assert identity(given).details == {
        "host": f"127.0.0.1:{server.port}", "endpoint": "completions", "form": {"plain": 1},
    }  # fmt: skip


async def test_a_template_and_stops_of_its_own_take_the_place_of_the_plain_form(server, tmp_path):
    file = tmp_path / "chat.jinja"
    file.write_text("{{ messages[-1].content }}{{ eos_token }}")
    given = (
        f"model=m,base_url={server.url},endpoint=completions,chat_template={file},"
        'chat_template_kwargs=eos_token=</s>,stop=["</s>","\\n\\n"]'
    )
    await asked(given)
    assert (server.requests[0]["prompt"], server.requests[0]["stop"]) == ("u</s>", ["</s>", "\n\n"])
    assert identity(given).details["form"]["variables"] == {"eos_token": "</s>"}


def test_a_line_of_a_batch_names_the_endpoint_and_on_azure_the_deployment():
    line = make(settings("model=m,endpoint=completions")).batch_line(request())
    assert line["url"] == "/v1/completions"
    azure = "model=m,azure_endpoint=http://a,azure_deployment=mine,api_version=1"
    sent = make(settings(azure)).batch_line(request())
    assert (sent["url"], sent["body"]["model"]) == ("/v1/chat/completions", "mine")
    # OpenAI's own completions endpoint never took up the new name of the limit.
    assert line["body"]["max_tokens"] == 1024


async def test_extra_fields_are_sent_as_they_were_given(server):
    text = (
        f"model=m,base_url={server.url},"
        'extra_body={"top_k":5,"guided":{"regex":"a|b"}},extra_body.min_p=0.1,'
        "extra_body.chat_template_kwargs.enable_thinking=false,extra_body.guided.backend=outlines"
    )
    extra = {
        "top_k": 5,
        "guided": {"regex": "a|b", "backend": "outlines"},
        "min_p": 0.1,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    await asked(text)
    sent = server.requests[0]
    assert {name: sent[name] for name in extra} == extra
    assert sent.keys() - extra.keys() == {"model", "messages", "temperature", "max_tokens"}
    assert identity(text).details["extra_body"] == extra


def test_an_engine_leaves_out_the_fields_that_it_makes_none():
    given = settings("model=m,base_url=http://h/v1")
    made = OpenAIModel(read_each(given)[0], given, fields=lambda _: {"top_k": None, "stop": "x"})
    sent = made.batch_line(request(temperature=1, top_k=3, presence_penalty=0.5))["body"]
    assert sent.keys().isdisjoint({"top_k"})
    assert (sent["stop"], sent["presence_penalty"]) == ("x", 0.5)


def test_a_spec_may_begin_with_an_argument_of_several_words():
    assert parse_spec("openai:extra_body.top_k=5,model=m").args == {
        "extra_body.top_k": "5", "model": "m",
    }  # fmt: skip
    assert parse_spec("openai:gpt-4.1,seed=false").args == {"model": "gpt-4.1", "seed": "false"}
    assert parse_spec("openai:qwen.small").args == {"model": "qwen.small"}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (",azure_deployment=my gpt,api_version=2024-06-01",
         "/openai/deployments/my%20gpt/chat/completions?api-version=2024-06-01"),
        ("", "/openai/v1/chat/completions"),
    ],
)  # fmt: skip
async def test_azure_is_asked_at_its_addresses_with_its_header(server, monkeypatch, more, expected):
    with pytest.raises(UsageError, match="AZURE_OPENAI_API_KEY is not set"):
        await asked("model=m,azure_endpoint=http://127.0.0.1:9")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-1")
    await asked(f"model=m,azure_endpoint=http://127.0.0.1:{server.port}/{more}")
    assert server.asked[0].target == expected
    assert server.asked[0].headers["api-key"] == "azure-1"
    assert "authorization" not in server.asked[0].headers
    version = "2024-06-01" if more else None
    args = OpenAIArgs(model="small", azure_endpoint="http://here", api_version=version)
    listed = "models?api-version=2024-06-01" if more else "v1/models"
    assert args.url("models") == f"http://here/openai/{listed}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("concurrency=0", "a whole number, at least 1"),
        ("immutable=perhaps", "true or false"),
        ("thinking=maybe", "true, false or auto"),
        ("base_url=http://host:port/v1", "an address such as"),
        ("base_url=http://h:1/v1?key=1", "expected: http://h:1/v1, without query and fragment"),
        ("base_url=http://h:1/v1#a?b", "expected: http://h:1/v1, without query and fragment"),
        ("azure_endpoint=https://h/?api-version=1", "api_version=… gives its query"),
        ("base_url=http://h/v1/chat/completions/", "http://h/v1: the harness adds /chat/compl"),
        ("base_url=http://h/v1/completions", "or set endpoint=completions"),
        ("base_url=http://a/v1; http://a/v1", "each address once"),
        ("base_url=http://a/v1;b/v1", "found:    base_url=b/v1"),
        ("base_url=http://a/v1;", "found:    base_url=\n"),
        ("revision=", "revision=VALUE"),
        ("azure_deployment=d", "azure_endpoint=URL"),
        ("api_version=v", "azure_endpoint=URL"),
        ("azure_endpoint=http://a,azure_deployment=d", "api_version=VERSION"),
        ("azure_endpoint=https://a.openai.azure.com/openai/v1/",
         "before /openai: the harness adds the rest"),
        ("max_tokens_field=n_predict,extra_body.n_predict=5", "has another meaning"),
        ("endpoint=completions,system_role=auto", "endpoint=chat"),
        ("endpoint=complete", "chat or completions"),
        ("system_role=perhaps", "true, false or auto"),
        ("stop=[1]", "a JSON list of texts"),
        ("top_logprobs=-1", "a whole number, at least 0"),
        ('extra_body={"messages":[]}', "the task's prompts set it"),
        ("extra_body.n=4", "--num_repeats repeats questions"),
        ("extra_body.stream=true", "leave it out: the harness reads whole answers"),
        ('extra_body={"a":NaN}', "NaN is not JSON"),
        ("extra_body.api_key=sk-1", "api_key_env=NAME"),
    ],
)  # fmt: skip
def test_arguments_that_mean_nothing_alone_or_together_are_refused(text, told):
    text = f"model=m,{text}"
    with pytest.raises(UsageError) as caught:
        read_each(ModelSettings(args=dict(part.split("=", 1) for part in text.split(","))))
    assert told in str(caught.value)


CHAT_LOGPROBS = {
    "content": [
        {
            "token": "o", "logprob": -0.5, "bytes": [111],
            "top_logprobs": [{"token": "o", "logprob": -0.5}, {"token": "n", "logprob": -1}],
        },
        {"token": "k", "logprob": 0, "bytes": None, "top_logprobs": []},
    ]
}  # fmt: skip
TEXT_LOGPROBS = {
    "tokens": ["o", "k"], "token_logprobs": [-0.5, 0], "text_offset": [0, 1],
    "top_logprobs": [{"o": -0.5, "n": -1}, None],
}  # fmt: skip


@pytest.mark.parametrize(
    ("endpoint", "sent", "came"),
    [
        ("chat", {"logprobs": True, "top_logprobs": 2}, CHAT_LOGPROBS),
        ("completions", {"logprobs": 2}, TEXT_LOGPROBS),
    ],
)
async def test_logprobs_come_back_where_they_are_asked_for(server, endpoint, sent, came):
    server.faults = lambda asked: Fault(choice={"logprobs": came})
    given = f"model=m,base_url={server.url},endpoint={endpoint},logprobs=true,top_logprobs=2"
    reply, _ = await asked(given)
    assert reply.logprobs == (
        TokenLogprob(token="o", logprob=-0.5, top=(("o", -0.5), ("n", -1.0))),
        TokenLogprob(token="k", logprob=0.0),
    )
    assert {name: server.requests[0][name] for name in sent} == sent
    assert identity(given).details["logprobs"] == 2


def test_alternatives_with_one_text_are_all_kept():
    # Halves of characters have one text.
    parts = [{"token": "�", "logprob": -1.0}, {"token": "�", "logprob": -2.0}]
    (token,) = read_logprobs({"content": [{**parts[0], "top_logprobs": parts}]}) or ()
    assert token.top == (("�", -1.0), ("�", -2.0))


async def test_a_server_that_sends_no_logprobs_is_reported_once_and_counted(server):
    server.faults = lambda asked: Fault(choice={"logprobs": None})
    given, told = f"model=m,base_url={server.url},logprobs=true", []
    one, two, report = await asked(given, request(), request(), told=told)
    assert (one.logprobs, two.logprobs) == (None, None)
    assert told == ["openai:m: the server sent no logprobs: none are recorded"]
    assert report == {"replies_without_logprobs": 2}


async def test_auto_finds_out_once_that_the_system_cannot_speak(server):
    refusal = status(400, message="System role not supported")
    server.faults = lambda asked: refusal if "system" in str(asked.body["messages"]) else None
    given, told = f"model=m,base_url={server.url},system_role=auto", []
    *replies, report = await asked(given, *[request(SYSTEM, USER)] * 2, told=told)
    assert [reply.text for reply in replies] == ["ok", "ok"]
    roles = [[turn["role"] for turn in body["messages"]] for body in server.requests]
    assert roles == [["system", "user"], ["user"], ["user"]]
    assert server.requests[1]["messages"] == [{"role": "user", "content": "s\n\nu"}]
    assert report == {"system_role": False}
    said = "the server accepts no system message: its text now precedes the first user message"
    assert told == [f"openai:m: {said}"]
    assert identity(given).details["system_role"] == "auto"
    assert (await asked(given))[1] == {}


async def test_other_refusals_stay_what_they_are(server):
    server.faults = [status(400, message="the system is not in a mood")]
    with pytest.raises(CallError, match="not in a mood") as caught:
        await asked(f"model=m,base_url={server.url},system_role=auto", request(SYSTEM, USER))
    assert not caught.value.fatal
    assert server.count == 1


@pytest.mark.parametrize(
    ("message", "hint", "fatal"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "max_tokens_field=max_completion_tokens",
            False,
        ),
        ("default chat template is no longer allowed", "endpoint=completions", False),
        ("System role not supported", "system_role=false", True),
    ],
)
async def test_a_refusal_that_an_argument_mends_names_it(server, message, hint, fatal):
    server.faults = [status(400, message=message)]
    with pytest.raises(CallError, match=hint) as caught:
        await asked(f"model=m,base_url={server.url}", request(SYSTEM, USER))
    assert (caught.value.cause, caught.value.fatal) == ("bad_request", fatal)
