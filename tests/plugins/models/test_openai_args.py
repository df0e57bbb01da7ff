import pytest
from harness_models.openai import make
from harness_models.openai_args import (
    OpenAIArgs,
    address_of,
    check_sampling,
    identity_of,
    read_each,
    tokens_field_of,
)

from harness.base.errors import UsageError
from harness.contracts.identity import Identity
from harness.contracts.model import ModelSettings, Sampling


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


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("concurrency", "0", "a whole number, at least 1"),
        ("immutable", "perhaps", "true or false"),
        ("base_url", "http://host:port/v1", "an address such as"),
        ("base_url", "http://h:1/v1?key=1", "expected: http://h:1/v1, without query and fragment"),
        ("base_url", "http://h:1/v1#a?b", "expected: http://h:1/v1, without query and fragment"),
        ("azure_endpoint", "https://h/?api-version=1", "api_version=… gives its query"),
        (
            "base_url",
            "http://h/v1/chat/completions/",
            "http://h/v1: the harness adds /chat/completions",
        ),
        ("base_url", "http://a/v1; http://a/v1", "each address once"),
        ("base_url", "http://h/v1/completions", "or set endpoint=completions"),
        ("revision", "", "revision=VALUE"),
    ],
)
def test_an_unusable_value_says_what_was_expected(name, text, expected):
    with pytest.raises(UsageError, match=expected) as caught:
        args(**{name: text})
    assert caught.value.found == f"{name}={text}"


def test_an_address_of_the_environment_is_held_to_the_same(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://h/v1/chat/completions")
    with pytest.raises(UsageError) as caught:
        args()
    assert caught.value.where == "the environment"
    assert caught.value.found == "OPENAI_BASE_URL=http://h/v1/chat/completions"
    assert args(base_url="http://other/v1").base_url == "http://other/v1"


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
        (
            {"seed": "false"}, True,
            {"host": "api.openai.com", "seed": False, "structured": True}, "run",
        ),
    ],
)  # fmt: skip
def test_identity_is_what_was_given_and_the_host_only_where_nothing_was(
    given, structured, details, scope
):
    found = identity_of(args(**given), structured=structured)
    assert found == Identity(kind="openai", name="m", details=details, scope=scope)


def test_an_address_is_shown_without_credentials():
    assert address_of(args(base_url="http://me:pw@host:8000/v1")) == "http://host:8000/v1"


def test_without_an_address_the_environment_and_then_openai_is_asked(monkeypatch):
    assert address_of(args()) == "https://api.openai.com/v1"
    assert tokens_field_of(args()) == "max_completion_tokens"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://env:1/v1")
    assert address_of(args()) == "http://env:1/v1"
    assert tokens_field_of(args()) == "max_tokens"
    assert tokens_field_of(args(max_tokens_field="n_predict")) == "n_predict"


@pytest.mark.parametrize(
    ("own", "general", "expected"), [(None, None, 64), (None, 8, 8), ("3", 8, 3)]
)
def test_concurrency_of_the_model_goes_before_that_of_the_run(own, general, expected):
    given = {"model": "m"} | ({"concurrency": own} if own else {})
    assert make(ModelSettings(args=given, concurrency=general)).concurrency == expected


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
    assert read_args(ModelSettings(args=given, given_hosts=hosts)).api_key_env == (
        "OPENAI_API_KEY" if may else None
    )
    named = read_args(ModelSettings(args={**given, "api_key_env": "MINE"}, given_hosts=hosts))
    assert named.api_key_env == "MINE"
    anywhere = read_args(ModelSettings(args=given))
    assert anywhere.api_key_env == "OPENAI_API_KEY"


def test_azure_s_usual_key_is_for_hosts_that_the_user_named():
    given = {"model": "m", "azure_endpoint": "https://evil.org"}
    assert read_args(ModelSettings(args=given, given_hosts=frozenset())).api_key_env is None
    assert read_args(ModelSettings(args=given)).api_key_env == "AZURE_OPENAI_API_KEY"


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


@pytest.mark.parametrize(
    ("text", "wrong"), [("http://a/v1;b/v1", "b/v1"), ("http://a/v1;", ""), (";", "")]
)
def test_the_address_of_several_that_is_wrong_is_named(text, wrong):
    with pytest.raises(UsageError, match="an address such as") as caught:
        args(base_url=text)
    assert caught.value.found == f"base_url={wrong}"
