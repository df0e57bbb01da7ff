"""Runs on a cluster of two nodes whose workers start real engines, one each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
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
    checkpoints: Checkpoints,
    engine_args: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """The outcomes of the run of one process with one engine."""
    command = Command(tmp_path_factory.mktemp("local").resolve(), checkpoints, engine_args)
    with alone():
        done = command.run(**SMALL)
    assert done.code == 0, done.err
    return outcomes(command)


class OnNodes:
    """The command on the cluster."""

    def __init__(self, command: Command, address: str) -> None:
        self.command = command
        self._more = (
            "--executor", "ray", "--ray_address", address, "--engines", "2", "--reuse", "run",
        )  # fmt: skip

    def start(self) -> subprocess.Popen[str]:
        return self.command.start(*self._more, **SMALL)

    def finish(self, process: subprocess.Popen[str]) -> None:
        """Wait until the command has ended well."""
        ended = self.command.end_of(process)
        assert ended.code == 0, ended.err

    def servers(self) -> dict[int, int]:
        """Each server that runs, and the worker that started it."""
        found = self.command.engine_processes()
        return {
            pid: worker
            for pid, words in found.items()
            if "api_server" in words and "keeper.py" not in words
            for worker in self.workers().intersection(above(pid))
        }

    def workers(self) -> set[int]:
        """The workers that are at work on the run."""
        found = self.command.engine_processes()
        return {pid for pid, words in found.items() if words.startswith("ray::ShardWorker")}


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def above(pid: int) -> list[int]:
    """The parent of a process, its parent, and so on."""
    found = []
    while pid := parent_of(pid):
        found.append(pid)
    return found


@pytest.fixture
def on_nodes(command: Command, cluster: Any, vllm_python: str) -> OnNodes:
    command.engine_args = {k: v for k, v in command.engine_args.items() if k != "python"}
    # The command has it too, since it checks the arguments of the engine.
    command.environment = {"HARNESS_VLLM_PYTHON": vllm_python}
    return OnNodes(command, cluster.address)


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


def test_kill_9_of_a_worker_takes_its_engine_along_and_another_takes_its_place(
    on_nodes: OnNodes, of_one: dict[str, Any], wait_until: Callable[..., None]
) -> None:
    command = on_nodes.command
    process = on_nodes.start()
    wait_until(
        lambda: (records(command, "name") and len(on_nodes.servers()) == 2) or ended(process)
    )
    assert not ended(process), process.communicate()
    server, worker = next(iter(on_nodes.servers().items()))
    of_worker = {server, parent_of(server)}
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: not of_worker & set(command.engine_processes()), seconds=ENDING)
    wait_until(lambda: len(on_nodes.workers() - {worker}) == 2 or ended(process))
    assert not ended(process), process.communicate()
    on_nodes.finish(process)
    assert outcomes(command) == of_one
    wait_until(lambda: command.engine_processes() == {}, seconds=ENDING)


def test_kill_9_of_the_command_leaves_no_engine_and_the_same_command_continues(
    on_nodes: OnNodes, of_one: dict[str, Any], wait_until: Callable[..., None]
) -> None:
    command = on_nodes.command
    process = on_nodes.start()
    wait_until(lambda: records(command, "name") or ended(process))
    assert not ended(process), process.communicate()
    assert on_nodes.servers()
    process.kill()
    process.communicate()
    wait_until(lambda: command.engine_processes() == {}, seconds=ENDING)
    kept = records(command, "name")
    assert 1 <= len(kept) < PEOPLE

    on_nodes.finish(on_nodes.start())
    now = records(command, "name")
    assert {key: now[key] for key in kept} == kept
    assert outcomes(command) == of_one
    logs = command.run_folder.glob("engines/*/*.log")
    assert {log.parent.name for log in logs} == {"worker-1", "worker-2"}
    wait_until(lambda: command.engine_processes() == {}, seconds=ENDING)


def ended(process: subprocess.Popen[str]) -> bool:
    return process.poll() is not None
