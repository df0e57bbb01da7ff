"""Ray clusters of several nodes on this machine, of which no process and no file is left."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"
}  # fmt: skip
"""No usage is reported, no token is read or made, and workers do not wait for all other tests."""

ON_RAY = [pytest.mark.slow, pytest.mark.xdist_group("ray"), pytest.mark.timeout(900)]
"""The marks of tests that start a Ray: in the slow lane, one after the other."""

PATIENCE = 240.0
"""Seconds that a test waits for what a run comes to, on however busy a machine."""

NODE = {"num_cpus": 2, "object_store_memory": 80 * 1024**2}
"""A small node: two workers have room there."""

QUICK = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 4,
}
"""A cluster notices within four seconds that a node does not answer, instead of half a minute."""


@contextmanager
def ray_folder() -> Iterator[Path]:
    """A folder for all that Ray writes; at the end what Ray started there is killed.

    The paths of Ray's sockets are long, and one has at most 107 bytes: pytest's own folders are
    too deep.
    """
    folder = Path(tempfile.mkdtemp(prefix="r-", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RAY_ADDRESS", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
            patch.delenv(name, raising=False)
        for name, value in {**SETTINGS, "RAY_TMPDIR": str(folder)}.items():
            patch.setenv(name, value)
        try:
            yield folder
        finally:
            while left := processes_of(folder):  # until none writes there any more
                for process in left:
                    with_signal(process, signal.SIGKILL)
                time.sleep(0.05)
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def ray_cluster(*nodes: dict[str, Any]) -> Iterator[Any]:
    """A cluster with these nodes, the first of them its head, as `{"num_cpus": 2, "num_gpus": 4}`.

    It has `address`, and takes nodes by `add_node` and loses them by `remove_node`.
    """
    with ray_folder():
        from ray.cluster_utils import Cluster

        handler = signal.getsignal(signal.SIGTERM)
        cluster = Cluster(
            initialize_head=True,
            head_node_args={**nodes[0], "include_dashboard": False, "_system_config": QUICK},
        )
        try:
            for node in nodes[1:]:
                cluster.add_node(**node)
            cluster.wait_for_nodes()
            signal.signal(signal.SIGTERM, handler)  # each node of the cluster has set its own
            yield cluster
        finally:
            cluster.shutdown()
            signal.signal(signal.SIGTERM, handler)


def processes_of(folder: Path) -> list[int]:
    """The processes that Ray started in the folder, by the environment that they inherited."""
    mark = f"RAY_TMPDIR={folder}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue  # it has ended, or is another user's
        if mark in environment.split(b"\0") and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def workers_in(folder: Path) -> list[int]:
    """The processes of workers of a Ray by its folder."""
    return [one for one in processes_of(folder) if title_of(one).startswith("ray::ShardWorker")]


def title_of(process: int) -> str:
    """The name that a process shows; empty for one that has ended."""
    try:
        shown = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return ""
    return shown.partition(b"\0")[0].decode()


def with_signal(process: int, number: signal.Signals) -> None:
    """Send a process the signal, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(process, number)
