"""What a look at a served model finds, from a real server's list of models."""

import msgspec
import pytest
from harness_models import openai
from harness_models.openai import make

from harness.contracts.finding import bad, doubtful, good
from harness.contracts.model import ModelSettings
from harness.testing.faults import OTHER_TYPE, SILENCE, Fault, status
from harness.testing.server import FaultyServer

KEY = "sk-very-secret-1234567890"


async def found_of(**args):
    return await make(ModelSettings(args={"model": "small", **args})).check()


async def server_finding(models, **args):
    with FaultyServer(models=models) as server:
        _, found = await found_of(base_url=server.url, **args)
        assert server.count == 0, "no model was asked"
    return server.url, found


LISTS = {
    "a near one": (
        ["smal", "big"],
        doubtful("name", "lists 2 models without a key, but not 'small': smal, big",
                 "did you mean 'smal'?"),
    ),
    "many others": (
        [f"q{n}" for n in range(8)],
        doubtful("name", "lists 8 models without a key, but not 'small': q0, q1, q2, q3, q4, q5, …",
                 "correct the model's name"),
    ),
    "nothing without a key": (
        status(403),
        doubtful("server", "answers 403: it needs a key", "put a valid key into OPENAI_API_KEY"),
    ),
    "a key that is wrong": (
        status(401, message=f"no {KEY}"),
        doubtful("server", "answers 401: it refuses the key", "put a valid key into MINE"),
    ),
    "a key that it repeats": (
        Fault(status=503, body=f"upstream of {KEY} is down"),
        doubtful("server", "answers 503: upstream of *** is down", "look at the server's log"),
    ),
    "a page": (
        OTHER_TYPE,
        doubtful("server", "answers 200, but not as a server of the OpenAI protocol: "
                 "<html>the proxy is tired</html>", "correct base_url"),
    ),
    "silence": (SILENCE, doubtful("server", "does not list its models within 0.3 s")),
}  # fmt: skip


@pytest.mark.parametrize("case", LISTS)
async def test_what_a_server_lists(case, monkeypatch):
    monkeypatch.setattr(openai, "LISTING_SECONDS", 0.3)
    models, expected = LISTS[case]
    monkeypatch.setenv("MINE", KEY)
    mine = {"api_key_env": "MINE"} if "key that" in case else {}
    url, found = await server_finding(models, **mine)
    assert found == msgspec.structs.replace(expected, says=f"{url} {expected.says}")


async def test_a_server_that_lists_nothing_and_whose_password_is_in_no_advice():
    with FaultyServer(models=status(404)) as server:
        bare = f"http://bob:correct-horse@127.0.0.1:{server.port}"
        *_, found = await found_of(base_url=bare)
        *_, under_v1 = await found_of(base_url=server.url)
    said = f"http://127.0.0.1:{server.port} does not list its models (404)"
    usual = f"base_url=http://127.0.0.1:{server.port}/v1 is the usual form"
    assert found == doubtful("server", said, usual)
    assert under_v1 == doubtful("server", f"{server.url} does not list its models (404)")


@pytest.mark.parametrize("body", ["[" * 100_000, '{"data": {"id": "small"}}', '["small"]', ""])
async def test_what_is_no_list_of_models(body):
    url, found = await server_finding(Fault(status=200, body=body))
    assert found.state == "doubtful"
    said = f"{url} answers 200, but not as a server of the OpenAI protocol: "
    assert found.says.startswith(said + (body[:100] or "nothing"))


async def test_nobody_listens(monkeypatch):
    with FaultyServer() as server:
        pass
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    key, found = await found_of()
    assert key == good("key", "OPENAI_API_KEY is not set: requests carry no key")
    assert found == bad(
        "server",
        f"{server.url} cannot be reached: [Errno 111] Connect call failed "
        f"('127.0.0.1', {server.port})",
        "start the server there, or correct OPENAI_BASE_URL or base_url",
    )


async def test_without_its_key_no_server_is_looked_for():
    (usual,) = await found_of()
    assert usual == bad(
        "key",
        "OPENAI_API_KEY is not set, and without base_url= the model is asked at api.openai.com",
        "set OPENAI_API_KEY, or give a file with the key: api_key_file=FILE",
    )
    (named,) = await found_of(base_url="http://x/v1", api_key_env="MY_KEY")
    assert (named.state, named.says) == ("bad", "MY_KEY is not set")


async def test_a_key_in_a_file(tmp_path):
    file = tmp_path / "key"
    file.write_text("sk-very-secret-1234567890\n")
    with FaultyServer(models=["small"]) as server:
        key, found = await found_of(base_url=server.url, api_key_file=str(file))
        file.write_text("")
        (empty,) = await found_of(base_url=server.url, api_key_file=str(file))
    assert key == good("key", f"is in the file {file}")
    assert found.says == f"{server.url} lists 1 model for this key, including 'small'"
    assert empty == bad(
        "key",
        f"--model_args, api_key_file={file}: the key file cannot be used; "
        "found an empty file; expected a file that contains the key and nothing else",
    )


async def test_a_model_of_azure_that_may_or_may_not_be_deployed(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "0123456789abcdef")
    with FaultyServer(models=["gpt"]) as server:
        endpoint = server.url.removesuffix("/v1")
        key, found = await found_of(model="mine", azure_endpoint=endpoint)
    assert key == good("key", "AZURE_OPENAI_API_KEY is set")
    assert found == doubtful(
        "server", f"{endpoint} lists 1 model for this key, but not whether 'mine' is deployed"
    )
