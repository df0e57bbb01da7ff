"""Engines of another shape: two side by side behind one server, and one with an adapter."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from harness_models.server.served import SOCKET
from harness_models.vllm import make
from safetensors.numpy import save_file

from harness.contracts.model import Message, ModelSettings, Request, Sampling

from .conftest import alone

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engine"), pytest.mark.timeout(2400)]

UNBOUND = {"VLLM_CPU_OMP_THREADS_BIND": "nobind"}
"""Two engines on one socket of CPUs do not agree on who gets which core."""

WIDTH, RANK, LAYERS = 128, 8, 2
"""Of the tiny model, and of the adapter to it."""


SAMPLE = re.compile(r"^(?P<name>[\w:]+)\{(?P<labels>[^}]*)\} (?P<value>\S+)$", re.M)


async def metric(socket: str, name: str) -> dict[str, float]:
    """What the server's `/metrics` says of one name, summed for each of its engines."""
    async with _session(socket) as session, session.get("http://localhost/metrics") as answer:
        text = await answer.text()
    found: dict[str, float] = {}
    for sample in SAMPLE.finditer(text):
        if sample["name"] == name:
            engine = dict(re.findall(r'(\w+)="([^"]*)"', sample["labels"]))["engine"]
            found[engine] = found.get(engine, 0.0) + float(sample["value"])
    return found


async def said(socket: str, **question: Any) -> str:
    """What a chat completion with exactly these fields says."""
    url = "http://localhost/v1/chat/completions"
    async with _session(socket) as session, session.post(url, json=question) as answer:
        answer.raise_for_status()
        body = await answer.json()
    return str(body["choices"][0]["message"]["content"])


def _session(socket: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.UnixConnector(socket))


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
        below = await said(
            str(model._server.folder / SOCKET),
            model=base,
            messages=[{"role": "user", "content": text}],
            temperature=0,
            max_tokens=48,
        )
    finally:
        await model.close()
    assert adapted[0] == adapted[1] != below
    assert model.identity.name == "tiny-candidate+night"
