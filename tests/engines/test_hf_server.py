"""The `hf` kind on the real `transformers serve`: what it answers, whole runs, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys

import pytest
import pytest_asyncio
from harness_models.hf import make

from harness import CallError
from harness.base.errors import ModelError
from harness.contracts.model import Message, ModelSettings, Request, Sampling

from .conftest import HERE, processes_in

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("engine"),
    pytest.mark.timeout(2400),
    pytest.mark.usefixtures("hf_python", "engine_alone"),
]

CONTEXT = 4096
NAMED = '[{"interest": "gardening", "items": [1, 2, 3, 4, 5, 6, 7, 8]}]'
"""Among the first eight of anybody in the sample is one that they liked."""


@pytest.fixture(scope="session")
def weights(hf_python, tmp_path_factory):
    """Makes a checkpoint of that name once."""
    folder = tmp_path_factory.mktemp("checkpoints")

    def made(name, *options):
        if not (folder / name).exists():
            command = [hf_python, HERE / "tiny_model.py", folder / name, *options]
            subprocess.run(command, check=True, capture_output=True)
        return str(folder / name)

    return made


@pytest.fixture(scope="session", autouse=True)
def offline(tmp_path_factory):
    """Servers that reach no network, and find a cache that nobody has made yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("home") / "none"))
        yield


def question(text, *, tokens=24, temperature=0.0, seed=7, stop=()):
    return Request(
        messages=(Message("system", "Answer."), Message("user", text)),
        sampling=Sampling(temperature=temperature, max_tokens=tokens, stop=stop),
        seed=seed,
    )


def model_of(hf_python, folder, **more):
    args = {"python": hf_python, "pretrained": folder, "device": "cpu", **more}
    return make(ModelSettings(args=args))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(hf_python, weights, tmp_path_factory):
    """One open engine that the tests of answers share."""
    model = model_of(hf_python, weights("tiny-candidate"))
    model.attach_log(tmp_path_factory.mktemp("logs"), lambda line: None)
    await model.open()
    yield model
    await model.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_greedy_answers_are_the_same_twice(engine):
    asked = [question(f"Item {number} was liked.") for number in range(4)]
    first = [await engine.ask(one) for one in asked]
    again = [await engine.ask(one) for one in asked]
    assert [one.text for one in first] == [one.text for one in again]
    assert len({one.text for one in first}) > 1
    assert all(0 < one.usage.completion_tokens <= 24 for one in first)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_temperature_is_drawn_with_and_a_seed_decides_what(engine):
    greedy = await engine.ask(question("Item."))
    drawn = [await engine.ask(question("Item.", temperature=1.0, seed=n)) for n in (1, 2, 1)]
    assert drawn[0].text == drawn[2].text
    assert len({greedy.text, drawn[0].text, drawn[1].text}) == 3


@pytest.mark.asyncio(loop_scope="module")
async def test_an_answer_ends_before_the_words_at_which_it_should_stop_or_at_its_length(engine):
    whole = (await engine.ask(question("Item."))).text
    word = whole[5:8]
    ended = await engine.ask(question("Item.", stop=(word,)))
    assert ended.text == whole[: whole.index(word)]
    assert ended.finish == "stop"
    assert (await engine.ask(question("Item.", tokens=3))).finish == "length"


@pytest.mark.asyncio(loop_scope="module")
async def test_an_over_long_prompt_is_an_overflow_and_fails_alone(engine):
    asked = [question("Short."), question("sea " * 2 * CONTEXT), question("Short too.")]
    before, overlong, after = await asyncio.gather(
        *(engine.ask(one) for one in asked), return_exceptions=True
    )
    assert isinstance(overlong, CallError)
    assert (overlong.cause, overlong.retryable, overlong.fatal) == ("overflow", False, False)
    assert before.usage.completion_tokens > 0
    assert after.usage.completion_tokens > 0


@pytest.mark.asyncio(loop_scope="module")
async def test_a_request_that_the_server_fails_at_is_not_asked_again(engine):
    broken = question("Item.", tokens=8)
    plain = engine._server.client._fields
    engine._server.client._fields = lambda request: {**plain(request), "generation_config": "{"}
    try:
        with pytest.raises(CallError) as caught:
            await engine.ask(broken)
    finally:
        engine._server.client._fields = plain
    assert (caught.value.cause, caught.value.retryable) == ("server_error", False)
    assert "see the server's log: " in caught.value.detail


async def test_a_server_that_batches_answers_the_same_and_ends_where_the_model_does(
    hf_python, weights, tmp_path
):
    model = model_of(hf_python, weights("tiny-judge", "--says", "1"), continuous_batching="true")
    model.attach_log(tmp_path, lambda line: None)
    await model.open()
    try:
        replies = await asyncio.gather(*(model.ask(question(f"Item {n}")) for n in range(8)))
        with pytest.raises(CallError) as caught:
            await model.ask(question("sea " * 2 * CONTEXT))
    finally:
        await model.close()
    assert [(one.text, one.finish) for one in replies] == [("1", "stop")] * 8
    assert caught.value.cause == "overflow"


async def test_a_template_of_ones_own_stands_in_and_close_frees_the_port(
    hf_python, weights, tmp_path
):
    bare = weights("bare", "--no-chat-template")
    with pytest.raises(ModelError, match="no chat template"):
        model_of(hf_python, bare)
    template = tmp_path / "own.jinja"
    template.write_text("{% for turn in messages %}{{ turn.content }}{% endfor %}")
    model = model_of(hf_python, bare, chat_template=str(template))
    model.attach_log(tmp_path, lambda line: None)
    await model.open()
    port, processes = model._server.port, model._server.launched.processes()
    reply = await model.ask(question("I", tokens=2))
    await model.close()
    # "Answer." and "I", and no mark of a turn.
    assert reply.usage.prompt_tokens < 10
    with socket.create_server(("127.0.0.1", port)):
        pass
    for pid in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_start_that_fails_names_cause_and_cure(hf_python, weights, tmp_path):
    model = model_of(hf_python, weights("tiny-candidate"), dtype="floaty")
    model.attach_log(tmp_path, lambda line: None)
    with pytest.raises(ModelError) as caught:
        await model.open()
    assert caught.value.found == "transformers has no dtype floaty"


def test_the_servers_help_knows_what_the_adapter_takes_for_known(hf_python, weights):
    """Names that are taken without asking are asked here, of the server that is installed."""
    from harness_models.hf import _help
    from harness_models.hf_args import KNOWN, OPTION

    shown = {found["name"].replace("-", "_") for found in OPTION.finditer(_help(hf_python))}
    assert set(KNOWN) <= shown
    assert {"host", "port", "chat_template_kwargs", "default_seed"} <= shown


def test_candidate_and_judge_run_in_two_servers_one_after_the_other(hf_python, weights, tmp_path):
    folder = tmp_path.resolve()
    candidate, judge = weights("names", "--says", NAMED), weights("tiny-judge", "--says", "1")
    spec = f"python={hf_python},device=cpu,pretrained="
    command = [
        sys.executable, "-m", "harness", "--tasks", "interests", "--data", "sample",
        "--model", "hf", "--model_args", spec + candidate, "--judge", f"hf:{spec}{judge}",
        "--max_failures", "1", "--json", "--limit", "6",
    ]  # fmt: skip
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HARNESS_")}
    # Its servers inherit the folder.
    done = subprocess.run(
        command, cwd=folder, env={**kept, "HARNESS_CACHE": str(folder / "cache")},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for stage, said in (("name", NAMED), ("support", "1")):
        (journal,) = (folder / "runs").glob(f"*/interests/?-{stage}.jsonl")
        records = [json.loads(line) for line in journal.read_bytes().split(b"\n")[:-1]]
        assert [call["text"] for one in records for call in one["calls"]] == [said] * 6
    (summary,) = json.loads(done.stdout)["summaries"]
    assert summary["metrics"]["support"]["n"] == 6
    assert processes_in(folder, without=set()) == {}
    logs = sorted((folder / "runs").glob("*/engines/*.log"))
    assert [log.name for log in logs] == ["hf-names.log", "hf-tiny-judge.log"]
