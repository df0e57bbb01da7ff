"""A server of our own that listens on a port: real processes, and others that were faster."""

import os
import re
import socket
import stat
import sys
from functools import partial
from pathlib import Path

import msgspec
import pytest
from builders.requests import make_request
from harness_models.server.ports import free_port

from harness.base.errors import ModelError, UsageError
from harness.contracts.model import CallError, ModelSettings
from harness.testing import FaultyServer

FAKE = Path(__file__).with_name("fake_server.py")
DOCS = Path(__file__).parents[3] / "docs" / "engines.md"


@pytest.fixture
def stranger():
    """Answers everything as if it were ours."""
    with FaultyServer(lambda body: "of a stranger") as server:
        yield server


@pytest.fixture
def served(serve_model):
    return partial(serve_model, listens_on="port")


async def test_nothing_is_left_after_close_and_it_opens_again(served):
    model = served()
    await model.open()
    server = model._server
    port, processes = server.port, server.launched.processes()
    assert len(processes) > 0
    await model.close()
    assert not server.folder.exists()
    with socket.create_server(("127.0.0.1", port)):
        pass
    for pid in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    await model.open()
    assert (await model.ask(make_request())).text.startswith("tiny, start 2")


async def test_a_stranger_at_the_port_is_not_asked_and_another_port_taken(
    served, stranger, monkeypatch
):
    ports = [stranger.port]
    monkeypatch.setattr(
        "harness_models.server.served.free_port", lambda: ports.pop() if ports else free_port()
    )
    told = []
    model = served(tell=told.append)
    await model.open()
    assert (await model.ask(make_request())).text.startswith("tiny, start")
    assert (stranger.count, stranger.asked_if_thinking) == (0, 0)
    assert "fake:tiny: another process took the server's port first; trying another port" in told


async def test_a_server_that_finds_no_port_says_so(served, stranger, monkeypatch):
    monkeypatch.setattr("harness_models.server.served.free_port", lambda: stranger.port)
    with pytest.raises(ModelError, match="its server finds no port") as caught:
        await served().open()
    assert caught.value.found == "3 free ports, each taken by another process before the server"
    assert (stranger.count, stranger.asked_if_thinking) == (0, 0)


async def test_an_answer_that_comes_after_the_end_of_the_server_is_not_taken(served, stranger):
    model = served()
    await model.open()
    server = model._server
    await server.launched.stop()
    # As if another process had taken the port in the meantime.
    server.client._url = f"{stranger.url}/chat/completions"
    with pytest.raises(CallError) as caught:
        await model.ask(make_request())
    assert (caught.value.cause, caught.value.retryable) == ("connection", True)
    assert stranger.count == 1
    assert (await model.ask(make_request())).text.startswith("tiny, start 2")


@pytest.mark.parametrize(("status", "final"), [(400, ()), (500, (500,)), (503, (503,))])
async def test_a_first_answer_that_would_come_again_ends_the_start(served, status, final):
    model = served("--refuse", "no room", "--refuse-with", str(status), final=final)
    with pytest.raises(ModelError, match="refuses the first question") as caught:
        await model.open()
    assert caught.value.found == f"HTTP {status}: no room"


async def test_an_engine_adds_to_requests_and_judges_replies(served):
    def checked(asked, reply):
        if "long" in asked.messages[0].content:
            raise CallError("overflow", "too long")
        return msgspec.structs.replace(reply, text=reply.text.upper())

    sent = []

    def fields(asked):
        sent.append(asked.messages[0].content)
        return {"model": "other"}

    model = served(fields=fields, checked=checked)
    await model.open()
    assert (await model.ask(make_request())).text == "OTHER, START 1, BEARER NOT-NEEDED"
    with pytest.raises(CallError, match="too long"):
        await model.ask(make_request("long"))
    assert sent[-2:] == ["hello", "long"]


def documented_engine():
    """The code of docs/engines.md that adds a kind of model with a server."""
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    (code,) = (block for block in blocks if "harness_models.server.served" in block)
    space = {}
    exec(compile(code, str(DOCS), "exec"), space)
    kinds = {}
    space["register_models"](lambda name, make, **_: kinds.update({name: make}))
    return code, kinds["acme"]


@pytest.fixture
def acme_serve(tmp_path, monkeypatch):
    """A program of that name which serves, and the folder of its weights."""
    program = tmp_path / "bin" / "acme-serve"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable} -I\n"
        "import os, sys\n"
        "weights, port = sys.argv[sys.argv.index('--weights') + 1], sys.argv[-1]\n"
        f"os.execv(sys.executable, [sys.executable, '-I', {str(FAKE)!r}, '--port', port,\n"
        "    '--starts', os.path.join(weights, 'starts')])\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    weights = tmp_path / "night-12"
    weights.mkdir()
    (weights / "config.json").write_text("{}")
    return weights


async def test_the_engine_of_the_documentation_serves(acme_serve, tmp_path):
    code, make = documented_engine()
    body = code[code.index("def make(") :]
    assert len(body.strip().splitlines()) <= 25
    model = make(ModelSettings(args={"model": str(acme_serve)}))
    model.attach_log(tmp_path / "engines", lambda line: None)
    await model.open()
    try:
        assert (await model.ask(make_request())).text == "night-12, start 1, Bearer not-needed"
    finally:
        await model.close()
    before = model.identity
    (acme_serve / "config.json").write_text('{"layers": 2}')
    assert make(ModelSettings(args={"model": str(acme_serve)})).identity != before
    with pytest.raises(UsageError, match="acme-serve needs a folder of weights"):
        make(ModelSettings(args={"modle": str(acme_serve)}))
