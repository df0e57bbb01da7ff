from importlib.metadata import version

import pytest
from harness_models.openai import make
from harness_models.openai_args import OpenAIArgs, base_url_of
from harness_models.openai_wire import headers_with
from openai import AsyncOpenAI

from harness.contracts.model import ModelSettings


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1"},
        {"OPENAI_ORG_ID": ""},
        {"OPENAI_CUSTOM_HEADERS": "X-Team: red\nno header\nX-Time: 10:30 "},
        {"OPENAI_CUSTOM_HEADERS": "Authorization: Bearer other\nOpenAI-Project: p"},
    ],
)
def test_the_headers_are_those_of_the_official_client(monkeypatch, given):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    client = AsyncOpenAI(api_key="sk-1")
    theirs = {**client.default_headers, **client.auth_headers}
    ours = headers_with("sk-1")
    del ours["User-Agent"]
    assert ours == {
        name: value
        for name, value in theirs.items()
        if isinstance(value, str) and not name.startswith(("X-Stainless-", "User-Agent"))
    }


def test_requests_say_that_they_are_the_harness_unless_the_user_says_otherwise(monkeypatch):
    installed = version("user-understanding-harness")
    assert headers_with("sk-1")["User-Agent"] == f"user-understanding-harness/{installed}"
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "User-Agent: mine")
    assert headers_with("sk-1")["User-Agent"] == "mine"


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


@pytest.mark.parametrize("given", [None, "http://127.0.0.1:8000/v1", "https://u:p@host.org/v1/"])
@pytest.mark.parametrize("named", [False, True])
def test_the_address_is_that_of_the_official_client(monkeypatch, given, named):
    if named and given:
        monkeypatch.setenv("OPENAI_BASE_URL", given)
    base_url = None if named else given
    client = AsyncOpenAI(api_key="sk-1", base_url=base_url)
    ours = base_url_of(OpenAIArgs(model="m", base_url=base_url))
    assert ours.rstrip("/") == str(client.base_url).rstrip("/")
