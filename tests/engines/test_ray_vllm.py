"""Runs on a cluster of two nodes whose workers start real engines, one each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from builders.clusters import ray_cluster

pytest.importorskip("ray")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engine"), pytest.mark.timeout(3600)]

HERE = Path(__file__).parent
TASK = "gist_synthetic"
PEOPLE = 6
HISTORIES = 2 * PEOPLE
"""The items of the first stage: the sample has two parts for each person."""

NODE = {"num_cpus": 1, "object_store_memory": 80 * 1024**2}
"""Room for one worker."""

SMALL = {
    "max_num_seqs": "2",
    "gpu_memory_utilization": "0.1",
    "enable_chunked_prefill": "false",
}
"""An engine that leaves memory to another one, and that is not killed by long prompts."""

TYPES = {"done", "unreadable", "call_failed", "no_verdict"}
ENDING = 60.0
"""Seconds that processes without a parent may take to end."""


@pytest.fixture(scope="module")
def long_checkpoint(vllm_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that answers at random, and reads histories of hundreds of items."""
    folder = tmp_path_factory.mktemp("checkpoints") / "tiny-long"
    subprocess.run(
        [vllm_python, HERE / "tiny_model.py", folder, "--seed", "0", "--context", "32768"],
        check=True,
    )
    return folder


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


@dataclass
class OnNodes:
    """The command on the cluster."""

    command: Any
    address: str

    def more(self) -> list[str]:
        return [
            "--executor", "ray", "--ray_address", self.address, "--engines", "2",
            "--limit", str(PEOPLE), "--no_store",
        ]  # fmt: skip

    def start(self) -> subprocess.Popen[str]:
        return self.command.start(*self.more(), task=TASK, **SMALL)

    def end_of(self, process: subprocess.Popen[str]) -> Any:
        return self.command.end_of(process)

    def servers(self) -> dict[int, int]:
        """Each server that runs, and the worker that started it."""
        found = self.command.engine_processes()
        return {
            pid: parent_of(parent_of(pid))
            for pid, words in found.items()
            if "api_server" in words and "keeper.py" not in words and parent_of(pid) in found
        }

    def workers(self) -> set[int]:
        """The workers that are at work on the run."""
        found = self.command.engine_processes()
        return {pid for pid, words in found.items() if words.startswith("ray::HarnessWorker")}

    def records(self, stage: str) -> dict[str, dict[str, Any]]:
        """The record of each item of a stage, from all parts of its journal."""
        found = {}
        for part in parts(self.command, stage):
            for line in part.read_bytes().split(b"\n")[:-1]:
                one = json.loads(line)
                if "outcome" in one:
                    found[one["key"]] = one
        return found


def parts(command: Any, stage: str) -> list[Path]:
    return sorted((command.folder / "runs").glob(f"*/{TASK}/?-{stage}*.jsonl"))


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


@pytest.fixture
def on_nodes(command: Any, cluster: Any, long_checkpoint: Path, vllm_python: str) -> OnNodes:
    command.checkpoints = replace(command.checkpoints, candidate=long_checkpoint)
    command.engine_args = {k: v for k, v in command.engine_args.items() if k != "python"}
    # The command has it too, since it checks the arguments of the engine.
    command.environment = {"HARNESS_VLLM_PYTHON": vllm_python}
    return OnNodes(command, cluster.address)


def stages_of(command: Any) -> list[str]:
    journals = command.run_folder.glob(f"{TASK}/?-*.jsonl")
    return sorted({path.name.split(".")[0][2:] for path in journals})


def outcomes(on_nodes: OnNodes) -> dict[str, dict[str, Any]]:
    """What became of each item of each stage."""
    return {
        f"{stage} {one['id']}": one["outcome"]
        for stage in stages_of(on_nodes.command)
        for one in on_nodes.records(stage).values()
    }


def check_failures(found: dict[str, dict[str, Any]]) -> Counter[str]:
    """How many outcomes are of which type; every failure has a cause."""
    assert {one["type"] for one in found.values()} <= TYPES
    assert all(one["cause"] for one in found.values() if one["type"] != "done")
    return Counter(one["type"] for one in found.values())


def logs(command: Any) -> dict[str, Path]:
    """The log of the engine of each worker."""
    return {one.parent.name: one for one in sorted(command.run_folder.glob("engines/*/*.log"))}


def test_two_engines_on_two_nodes_have_the_outcomes_of_one(
    on_nodes: OnNodes, wait_until: Callable[..., None]
) -> None:
    command = on_nodes.command
    result = on_nodes.end_of(on_nodes.start())
    assert result.code == 0, result.err
    wait_until(lambda: command.engine_processes() == {}, seconds=ENDING)
    assert sorted(logs(command)) == ["1.1", "2.1"]
    # Each engine was asked: the shards of a small stage are not all taken by the first worker.
    assert sum(part.stat().st_size > 0 for part in parts(command, "predict")) == 2
    found = outcomes(on_nodes)
    assert check_failures(found)["done"] > 0
    assert sum(name.startswith("predict") for name in found) == HISTORIES

    there = command.folder / "local"
    there.mkdir()
    alone = replace(command, folder=there)
    local = alone.run("--limit", str(PEOPLE), task=TASK, **SMALL)
    assert local.code == 0, local.err
    assert outcomes(OnNodes(alone, "")) == found


def test_kill_9_of_a_worker_takes_its_engine_along_and_another_takes_its_place(
    on_nodes: OnNodes, wait_until: Callable[..., None]
) -> None:
    command = on_nodes.command
    process = on_nodes.start()

    def records() -> int:
        return len(on_nodes.records("predict"))

    wait_until(lambda: (records() >= 1 and len(on_nodes.servers()) == 2) or ended(process))
    assert process.poll() is None, process.communicate()
    before = on_nodes.servers()
    server, worker = next(iter(before.items()))
    of_worker = {server, parent_of(server)}
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: not of_worker & set(command.engine_processes()), seconds=ENDING)
    wait_until(lambda: len(on_nodes.workers() - {worker}) == 2 or ended(process))
    assert process.poll() is None, process.communicate()
    result = on_nodes.end_of(process)
    assert result.code == 0, result.err
    check_failures(found := outcomes(on_nodes))
    assert sum(name.startswith("predict") for name in found) == HISTORIES
    wait_until(lambda: command.engine_processes() == {}, seconds=ENDING)


def test_kill_9_of_the_command_leaves_no_engine_and_the_same_command_continues(
    on_nodes: OnNodes, wait_until: Callable[..., None]
) -> None:
    command = on_nodes.command
    process = on_nodes.start()
    wait_until(lambda: len(on_nodes.records("predict")) >= 1 or ended(process))
    assert process.poll() is None, process.communicate()
    assert len(on_nodes.servers()) >= 1
    process.kill()
    process.communicate()
    wait_until(lambda: command.engine_processes() == {}, seconds=ENDING)
    kept = on_nodes.records("predict")
    assert 1 <= len(kept) < HISTORIES

    result = on_nodes.end_of(on_nodes.start())
    assert result.code == 0, result.err
    now = on_nodes.records("predict")
    assert len(now) == HISTORIES
    assert {key: now[key] for key in kept} == kept
    wait_until(lambda: command.engine_processes() == {}, seconds=ENDING)


def ended(process: subprocess.Popen[str]) -> bool:
    return process.poll() is not None
