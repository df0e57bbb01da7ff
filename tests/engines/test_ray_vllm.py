"""A run on a cluster of two nodes whose workers start real engines, one each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from builders.clusters import ray_cluster

from .conftest import Checkpoints, Command, alone

pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engine"), pytest.mark.timeout(2400)]
PEOPLE = 40
NODE = {"num_cpus": 1, "object_store_memory": 80 * 1024**2}
"""Room for one worker."""

SMALL = {"max_num_seqs": "1", "gpu_memory_utilization": "0.02"}
"""An engine that leaves memory to another one, and is slow enough to be disturbed."""

ENDING = 60.0
"""Seconds that processes without a parent may take to end."""


@pytest.fixture(scope="module")
def cluster(
    vllm_python: str, frugal: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """Two nodes, which have the interpreter of the engine in a variable."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_VLLM_PYTHON", vllm_python)
        patch.setenv("HARNESS_CACHE", str(tmp_path_factory.mktemp("nodes")))
        with ray_cluster(NODE, NODE) as made:
            yield made


@pytest.fixture(scope="module")
def of_one(
    checkpoints: Checkpoints, engine_args: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """The outcomes of the run of one process with one engine."""
    command = Command(tmp_path_factory.mktemp("local").resolve(), checkpoints, engine_args)
    with alone():
        done = command.run(**SMALL)
    assert done.code == 0, done.err
    return outcomes(command)


@pytest.fixture
def start(command: Command, cluster: Any, vllm_python: str) -> Callable[[], subprocess.Popen[str]]:
    """Starts the command on the cluster."""
    command.engine_args = {k: v for k, v in command.engine_args.items() if k != "python"}
    # The command has it too, since it checks the arguments of the engine.
    command.environment = {"HARNESS_VLLM_PYTHON": vllm_python}
    on_ray = ("--executor", "ray", "--ray_address", cluster.address, "--engines", "2")
    return lambda: command.start(*on_ray, "--reuse", "run", **SMALL)


def records(command: Command, stage: str) -> dict[str, dict[str, Any]]:
    """The record of each item of a stage, from shards that are at work and from its journal."""
    found = {}
    for place in (f"?-{stage}.shards/*.jsonl", f"?-{stage}.jsonl"):
        for file in (command.folder / "runs").glob(f"*/interests/{place}"):
            with suppress(FileNotFoundError):  # it was collected just now
                lines = map(json.loads, file.read_bytes().split(b"\n")[:-1])
                found |= {one["key"]: one for one in lines if "outcome" in one}
    return found


def outcomes(command: Command) -> dict[str, Any]:
    """What became of each item of each stage; every failure has a cause."""
    found = {
        f"{stage} {one['id']}": one["outcome"]
        for stage in ("name", "support")
        for one in records(command, stage).values()
    }
    assert sum(name.startswith("name ") for name in found) == PEOPLE
    assert any(one["type"] == "done" for one in found.values())
    assert all(one["cause"] for one in found.values() if one["type"] != "done")
    return found


def test_kill_9_of_the_command_leaves_no_engine_and_the_same_command_continues(
    command: Command,
    start: Callable[[], subprocess.Popen[str]],
    of_one: dict[str, Any],
    wait_until: Callable[..., None],
) -> None:
    process = start()
    wait_until(lambda: records(command, "name") or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    assert command.server() is not None
    process.kill()
    process.communicate()
    wait_until(lambda: command.engine_processes() == {}, seconds=ENDING)
    kept = records(command, "name")
    assert 1 <= len(kept) < PEOPLE

    done = command.end_of(start())
    assert done.code == 0, done.err
    now = records(command, "name")
    assert {key: now[key] for key in kept} == kept
    assert outcomes(command) == of_one
    logs = command.run_folder.glob("engines/*/*.log")
    assert {log.parent.name for log in logs} == {"worker-1", "worker-2"}
    wait_until(lambda: command.engine_processes() == {}, seconds=ENDING)
