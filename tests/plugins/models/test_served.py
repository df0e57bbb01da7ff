"""A model behind a server of its own: real processes, a fake server, one Unix socket."""

import asyncio
import json
import re
from functools import partial

import pytest
from builders.requests import make_request
from harness_models.server import launching
from harness_models.server.served import Trouble, killed_by, last_error

from harness.base.errors import ModelError
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Message, Request, Sampling

SERVED = "harness_models.server.served"
TROUBLE = Trouble(
    pattern=re.compile(r"out of memory: (?P<wanted>\d+) GiB"),
    cause=lambda found: f"{found['wanted']} GiB are more than there are",
    cure=lambda found: "a smaller model",
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


@pytest.mark.parametrize("place", ["socket", "port"])
async def test_it_is_asked_without_the_users_key_or_proxy_wherever_temporary_files_are(
    served, tmp_path, monkeypatch, place
):
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
async def test_a_start_that_fails_names_cause_and_cure_or_its_last_words(
    served, tmp_path, log, found, to_do
):
    with pytest.raises(ModelError, match="cannot be started: its server ended with") as caught:
        await served("--fail", log).open()
    assert caught.value.where == "fake:tiny/one"
    assert (caught.value.found, caught.value.hint) == (found, to_do.format(tmp_path))


async def test_a_start_that_is_cancelled_leaves_nothing(served, starts):
    model = served()
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


async def test_a_server_that_cannot_be_started_again_ends_the_run(served):
    model = served("--fail", "ValueError: out of memory: 90 GiB", "--fail-from", "2")
    await model.open()
    with pytest.raises(CallError) as caught:
        await model.ask(make_request("die 1"))
    assert caught.value.fatal
    assert "90 GiB are more than there are" in caught.value.detail
    assert "a smaller model" in caught.value.detail


@pytest.fixture
def watched(monkeypatch):
    """Looks at servers often."""
    monkeypatch.setattr(f"{SERVED}.WATCH_SECONDS", 0.05)


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
async def test_a_slow_answer_of_a_server_that_answers_others_is_no_reason_to_restart(
    served, starts, monkeypatch
):
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


async def test_a_long_start_shows_that_it_goes_on(served, tmp_path, told, monkeypatch):
    monkeypatch.setattr(f"{SERVED}.BEAT_SECONDS", 0.0)
    beat = re.compile(r"fake:tiny/one: still starting \(\d+ s\); last: loading the weights")

    def tell(line):
        told.append(line)
        if len([line for line in told if beat.fullmatch(line)]) == 2:
            (tmp_path / "loaded").touch()

    await served("--until", str(tmp_path / "loaded"), tell=tell).open()
    assert told[-1].startswith("fake:tiny/one: ready after")


async def test_a_start_ends_at_its_time_limit(served, tmp_path):
    with pytest.raises(ModelError, match=r"no answer within 0.5 s \(--start_timeout\)"):
        await served("--until", str(tmp_path / "never"), settings={"start_timeout": 0.5}).open()


async def test_arguments_of_requests_hold_for_a_server_of_ours_as_well(served):
    given = {
        "system_role": False,
        "stop": ("###",),
        "extra_body": {"top_k": 20},
        "logprobs": True,
        "top_logprobs": 2,
    }
    model = served("--no-system", requests=given)
    await model.open()
    asked = Request(
        messages=(Message("system", "re"), Message("user", "hello")),
        sampling=Sampling(stop=("!",)),
        seed=0,
    )
    assert (await model.ask(asked)).text.startswith("tiny, start 1")
    body = json.loads((await model.ask(make_request("repeat"))).text)
    assert (body["stop"], body["top_k"], body["top_logprobs"]) == (["###"], 20, 2)


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (None, None),
        (0, None),
        (1, None),
        (143, "killed by SIGTERM"),
        (255, None),
        (137, "killed by SIGKILL, as the system does when memory runs out"),
    ],
)
def test_a_signal_that_ended_a_server_is_named(code, how):
    assert killed_by(code) == how


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", "an empty log"),
        ("INFO one\nINFO two\n\n", "INFO two"),
        ("a.b.SomeError: why\n    at line 3", "a.b.SomeError: why"),
        ("ValueError: why\nRuntimeError: failed. See root cause above.", "ValueError: why"),
        (
            "ValueError: why\nKeyError: '/psm_4a8e1d0c'\nEngineDeadError: EngineCore: look above",
            "ValueError: why",
        ),
        ("E: x\nDeadError: see the root cause\nwarnings.warn(", "DeadError: see the root cause"),
        ("(Worker pid=3) ERROR 11-20 20:57:14 [a.py:9] OSError: why", "OSError: why"),
        (
            "api_server.py: error: argument --dtype: no",
            "api_server.py: error: argument --dtype: no",
        ),
        (
            "x.ValidationError: 1 validation error for Config\nlevel\n  Input should be 0",
            "x.ValidationError: 1 validation error for Config level Input should be 0",
        ),
    ],
)
def test_the_last_words_of_a_log(log, words):
    assert last_error(log) == words
