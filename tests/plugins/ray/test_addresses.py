"""Addresses at which no cluster is, and what Ray raises, in words; no Ray is started."""

import asyncio
import socket
from functools import cache
from types import SimpleNamespace

import pytest
from builders.clusters import ray_folder
from builders.processes import run_python
from harness_ray import cluster, executor
from harness_ray.cluster import Cluster
from harness_ray.executor import RayWorker, reason_of
from harness_ray.places import ClusterError

from harness.base.errors import HarnessError, ModelError, UsageError
from harness.contracts.executor import WorkerDied


def refused(address):
    """The error of joining a cluster at this address."""
    with pytest.raises((ClusterError, UsageError)) as caught:
        Cluster(address).join()
    return caught.value


def test_ray_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda name: None)
    error = refused("auto")
    assert (error.problem, error.where) == ("Ray is not installed", "--executor ray")
    assert error.hint == "pip install 'user-understanding-harness[ray]'"


@pytest.mark.parametrize("address", ["", "foo", "foo:", ":1", "http://a:1", "a b:1", "a:1/x"])
def test_an_address_that_is_none(address):
    error = refused(address)
    assert (type(error), error.problem) == (UsageError, "--ray_address cannot be used")
    assert error.expected == "auto, HOST:PORT or ray://HOST:PORT"


def test_an_address_at_which_nothing_is(monkeypatch):
    # Whoever else uses this machine may have a cluster on it.
    monkeypatch.setattr("ray._private.services.find_gcs_addresses", cache(frozenset))
    with socket.create_server(("127.0.0.1", 0)) as once:
        address = f"127.0.0.1:{once.getsockname()[1]}"
    with ray_folder():
        error = refused(address)
        assert error.problem == "no Ray cluster is at this address"
        assert error.where == f"--ray_address {address}" and "refused" in error.found
        error = refused("auto")
        assert error.problem == "no Ray cluster is at this address"
        assert error.found == "no Ray on this machine, and no RAY_ADDRESS"


class AuthenticationError(Exception):
    """As Ray's, which only a cluster with a token raises."""


def wrong_token():
    """What Ray raises where the token of this machine is not the cluster's."""
    error = ConnectionError("Failed to connect to Ray cluster at 10.0.0.1:6379")
    error.__cause__ = RuntimeError("Failed to connect to GCS … RPC error: InvalidAuthToken: …")
    return error


@pytest.mark.parametrize(
    ("raised", "address", "problem"),
    [
        (AuthenticationError("no"), "auto", "the cluster asks for a token, and this machine has"),
        (wrong_token(), "auto", "the cluster asks for a token, and this machine has"),
        (ConnectionError("Failed to connect"), "auto", "no Ray cluster is at this address"),
        (RuntimeError("Version mismatch: Ray: 2.55.0"), "auto", "the cluster runs another version"),
        (OSError("no space"), None, "Ray cannot be started on this machine"),
        (OSError("no space"), "auto", "the Ray cluster cannot be joined"),
    ],
)
def test_what_ray_raises_is_put_into_words(monkeypatch, raised, address, problem):
    def fails(**given):
        raise raised

    monkeypatch.setattr("ray.init", fails)
    error = refused(address)
    assert error.problem.startswith(problem)
    assert error.where == (f"--ray_address {address}" if address else "--executor ray")
    assert error.found is None or str(raised) in error.found


OTHER_SERVER = """
import socketserver, sys, threading
from harness_ray.cluster import Cluster

class Other(socketserver.StreamRequestHandler):
    def handle(self):
        self.request.recv(1000)
        self.wfile.write(b"HTTP/1.1 505 no")

server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Other)
threading.Thread(target=server.serve_forever, daemon=True).start()
try:
    Cluster("127.0.0.1:%d" % server.server_address[1]).join()
except Exception as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.timeout(70)  # Ray waits for 16 seconds; by its own settings it would for 84
def test_a_server_that_is_no_ray_is_told_of_soon():
    said = run_python(OTHER_SERVER)
    assert "no Ray cluster is at this address" in said
    assert "something that does not answer as Ray does" in said


def test_why_a_worker_died_is_a_line():
    killed = "Worker exit detail:\n\tWorker unexpectedly exits with a connection error code 2. End"
    said = "its process was killed, as by a machine without memory to spare, or crashed"
    assert reason_of(Exception(killed)) == said
    lost = "The actor died unexpectedly.\n\tpid: 7\nThe actor is dead because its node has died."
    assert reason_of(Exception(lost)) == "its node has died."
    gone = "The actor is temporarily unavailable: RpcError: RPC error: Socket closed rpc_code: 14."
    assert reason_of(Exception(f"The actor 4f is unavailable: {gone} The task may")) == (
        "its connection closed, as when its process is killed or its machine is gone"
    )
    assert reason_of(Exception("many words " * 40)) == "many words " * 18 + "…"


class Awaited:
    """An actor that dies of so many calls, and is there again once `back` is set."""

    def __init__(self, deaths):
        self.back, self.calls, self.deaths = asyncio.Event(), 0, deaths
        self.work = SimpleNamespace(remote=self._work)
        self.__ray_ready__ = SimpleNamespace(remote=self.back.wait)

    async def _work(self, shard):
        from ray.exceptions import ActorUnavailableError

        self.calls += 1
        if self.calls == self.deaths:
            self.back.clear()
        await asyncio.sleep(0)
        if self.calls <= self.deaths:
            raise ActorUnavailableError("The actor is temporarily unavailable: it is gone", None)
        return f"{shard} done"


async def test_a_line_says_that_a_worker_died_and_another_that_it_is_awaited(monkeypatch):
    monkeypatch.setattr(executor, "AWAITED_SECONDS", 0.02)
    monkeypatch.setattr(executor, "room", lambda: "1 node: a; free: 0 CPUs, 0 GPUs")
    lines, awaited, actor = [], asyncio.Event(), Awaited(2)

    def show(line):
        lines.append(line)
        if len(lines) == 3:
            awaited.set()

    worker = RayWorker(actor, 2, asyncio.create_task(asyncio.sleep(60)), show)
    calls = [asyncio.create_task(worker.call("work", number)) for number in (7, 8)]
    await awaited.wait()
    assert not any(call.done() for call in calls)
    actor.back.set()
    assert await asyncio.gather(*calls) == ["7 done", "8 done"] and actor.calls == 4
    assert lines[0].startswith("worker 2 cannot be reached (it is gone)") and len(lines) >= 3
    for line in lines[1:]:
        assert line.startswith("worker 2 is awaited since ")
        assert line.endswith(" UTC: Ray has not started it; 1 node: a; free: 0 CPUs, 0 GPUs")


async def test_a_call_after_the_last_death_waits_for_the_worker():
    """Sent to one that is not there yet, it would count as another death."""
    actor = Awaited(3)
    worker = RayWorker(actor, 2, asyncio.create_task(asyncio.sleep(60)), print)
    actor.back.set()
    with pytest.raises(WorkerDied, match="worker 2 died 3 times"):
        await worker.call("work", 7)
    call = asyncio.create_task(worker.call("work", 9))
    for _ in range(100):
        await asyncio.sleep(0)
    assert actor.calls == 3
    actor.back.set()
    assert await call == "9 done"


async def test_what_a_worker_raises_is_no_fault_of_the_cluster():
    from ray.exceptions import RayTaskError

    async def work(shard):
        trace = "ray::ShardWorker.work() (pid=7, ip=10.0.0.1, repr=<ShardWorker>)\nKeyError: 'gone'"
        raise RayTaskError("work", trace, KeyError("gone"))

    actor = SimpleNamespace(work=SimpleNamespace(remote=work))
    headless = asyncio.create_task(asyncio.sleep(60))
    with pytest.raises(HarnessError, match="the harness itself failed in a worker") as caught:
        await RayWorker(actor, 3, headless, print).call("work", 1)
    assert caught.value.where == "worker 3" and "KeyError: 'gone'" in caught.value.found


async def test_a_call_ends_once_there_is_no_head_any_more():
    async def work(shard):
        await asyncio.Event().wait()

    actor = SimpleNamespace(work=SimpleNamespace(remote=work))
    headless = asyncio.create_task(asyncio.sleep(0))
    with pytest.raises(ModelError, match="the head of the cluster does not answer any more"):
        await RayWorker(actor, 3, headless, print).call("work", 1)
