"""Engines of another shape: two at once, with an adapter, for texts; and their arguments."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from harness_models.server.served import SOCKET
from harness_models.vllm import OLD_SERVER, check_with_parser, make
from harness_models.vllm_args import DEFAULTS, KNOWN, PRESETS
from safetensors.numpy import save_file

from harness.base.errors import UsageError
from harness.contracts.embedder import checked_rows
from harness.contracts.model import Message, ModelSettings, Request, Sampling
from harness.pipeline.embedders import named_embedder

from .conftest import alone

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engine"), pytest.mark.timeout(2400)]
UNBOUND = {"VLLM_CPU_OMP_THREADS_BIND": "nobind"}
"""Two engines on one socket of CPUs do not agree on who gets which core."""

WIDTH, RANK, LAYERS = 128, 8, 2
"""Of the tiny model, and of the adapter to it."""

SAMPLE = re.compile(r"^(?P<name>[\w:]+)\{(?P<labels>[^}]*)\} (?P<value>\S+)$", re.M)


@asynccontextmanager
async def asked(socket: str, path: str, **question: Any) -> AsyncIterator[aiohttp.ClientResponse]:
    """The answer of the server behind a socket to a question with exactly these fields, or none."""
    connector, method = aiohttp.UnixConnector(socket), "POST" if question else "GET"
    url, body = f"http://localhost{path}", question or None
    async with (
        aiohttp.ClientSession(connector=connector, raise_for_status=True) as session,
        session.request(method, url, json=body) as answer,
    ):
        yield answer


async def metric(socket: str, name: str) -> dict[str, float]:
    """What the server's `/metrics` says of one name, summed for each of its engines."""
    async with asked(socket, "/metrics") as answer:
        text = await answer.text()
    found: dict[str, float] = {}
    for sample in SAMPLE.finditer(text):
        if sample["name"] == name:
            engine = dict(re.findall(r'(\w+)="([^"]*)"', sample["labels"]))["engine"]
            found[engine] = found.get(engine, 0.0) + float(sample["value"])
    return found


def test_two_engines_share_the_questions_and_kill_9_leaves_nothing_of_either(command, wait_until):
    before = set(Path("/dev/shm").iterdir())
    command.environment.update(UNBOUND)
    process = command.start(data_parallel_size="2", max_num_seqs="2")
    wait_until(lambda: len(command.records("name")) >= 8 or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    done = asyncio.run(metric(command.socket(), "vllm:request_success_total"))
    assert sorted(done) == ["0", "1"]
    assert min(done.values()) >= 2, done
    assert len(command.engine_processes()) >= 4, "keeper, server and two engines"
    process.kill()
    process.communicate()
    wait_until(lambda: command.engine_processes() == {}, seconds=20)
    assert set(Path("/dev/shm").iterdir()) - before == set()


def adapter(folder: Path) -> Path:
    """An adapter that turns every layer's attention upside down."""
    drawn = np.random.default_rng(3)
    tensors = {}
    for layer in range(LAYERS):
        for part in ("q_proj", "o_proj"):
            name = f"base_model.model.model.layers.{layer}.self_attn.{part}"
            shapes = {"lora_A": (RANK, WIDTH), "lora_B": (WIDTH, RANK)}
            for matrix, shape in shapes.items():
                tensors[f"{name}.{matrix}.weight"] = drawn.normal(0, 1, shape).astype(np.float32)
    folder.mkdir()
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": 16,
        "target_modules": ["q_proj", "o_proj"], "bias": "none", "base_model_name_or_path": "tiny",
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def engine_alone():
    """For one test, and not for the module: the other one takes the lock itself."""
    with alone():
        yield


async def test_an_adapter_answers_in_place_of_the_weights_below_it(
    checkpoints, engine_args, frugal, engine_alone, tmp_path
):
    base = str(checkpoints.candidate)
    args = {"pretrained": base, "lora": str(adapter(tmp_path / "night")), **engine_args}
    model = make(ModelSettings(args=args))
    model.attach_log(tmp_path / "logs", lambda line: None)
    await model.open()
    try:
        text = "Name the interests of this person."
        one = Request(messages=(Message("user", text),), sampling=Sampling(max_tokens=48), seed=0)
        adapted = [(await model.ask(one)).text for _ in range(2)]
        socket, messages = str(model._server.folder / SOCKET), [{"role": "user", "content": text}]
        question = {"model": base, "messages": messages, "temperature": 0, "max_tokens": 48}
        async with asked(socket, "/v1/chat/completions", **question) as answer:
            below = (await answer.json())["choices"][0]["message"]["content"]
    finally:
        await model.close()
    assert adapted[0] == adapted[1] != below
    assert model.identity.name == "tiny-candidate+night"


TEXTS = ["a red kite", "a blue kite", "an old map", "a red kite"]


async def test_texts_are_embedded_by_a_served_model(checkpoints, engine_args, frugal, engine_alone):
    args = {"model": str(checkpoints.candidate), **engine_args}
    embedder = named_embedder("vllm:" + ",".join(f"{name}={one}" for name, one in args.items()))
    await embedder.open()
    try:
        together = checked_rows(await embedder.embed(TEXTS), TEXTS, embedder)
        by_itself = checked_rows(await embedder.embed(TEXTS[1:2]), TEXTS[1:2], embedder)
    finally:
        await embedder.close()
    assert together.shape == (len(TEXTS), embedder.dimensions)
    np.testing.assert_allclose(together[3], together[0], atol=1e-5)
    np.testing.assert_allclose(by_itself[0], together[1], atol=1e-4)
    assert together[0] @ together[1] < 0.99, "other texts have other vectors"


OF_A_PARALLEL_ENGINE = {
    "tensor_parallel_size": "4",
    "pipeline_parallel_size": "2",
    "data_parallel_size": "2",
    "data_parallel_backend": "ray",
    "dtype": "bfloat16",
    "max_num_seqs": "256",
    "gpu_memory_utilization": "0.9",
    "max_model_len": "32768",
    "seed": "3",
    "quantization": "fp8",
    "kv_cache_dtype": "fp8",
    "load_format": "dummy",
    "reasoning_parser": "qwen3",
    "runner": "pooling",
    "trust_remote_code": "true",
    "enforce_eager": "true",
    "enable_chunked_prefill": "true",
}


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_and_all_that_is_taken_unasked_are_known_to_the_parser(vllm_python, preset):
    given = {**DEFAULTS, **OF_A_PARALLEL_ENGINE, **PRESETS[preset]}
    assert given.keys() == set(KNOWN) | DEFAULTS.keys()
    check_with_parser(vllm_python, OLD_SERVER, given)


def test_an_unknown_argument_or_value_is_told_in_vllms_own_words(vllm_python):
    with pytest.raises(UsageError, match="vLLM has no argument 'max_modellen'") as caught:
        check_with_parser(vllm_python, OLD_SERVER, {"max_modellen": "9"})
    assert caught.value.hint == "did you mean 'max_model_len'?"
    with pytest.raises(UsageError) as caught:
        check_with_parser(vllm_python, OLD_SERVER, {"block_size": "many"})
    assert caught.value.found == "block_size=many"
    assert "invalid" in caught.value.expected
