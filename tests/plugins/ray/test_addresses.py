"""Addresses at which no cluster is, and what Ray raises, in words; no Ray is started."""

import asyncio
import socket
from functools import cache
from types import SimpleNamespace

import pytest
from builders.clusters import ray_folder
from harness_ray import cluster
from harness_ray.cluster import Cluster
from harness_ray.executor import RayWorker, reason_of
from harness_ray.places import ClusterError

from harness.base.errors import HarnessError, ModelError, UsageError


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


@pytest.mark.parametrize(
    ("raised", "address", "problem"),
    [
        (AuthenticationError("no"), "auto", "the cluster asks for a token, and this machine has"),
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


def test_why_a_worker_died_is_a_line():
    killed = "Worker exit detail:\n\tWorker unexpectedly exits with a connection error code 2. End"
    said = "its process was killed, as by a machine without memory to spare, or crashed"
    assert reason_of(Exception(killed)) == said
    lost = "The actor died unexpectedly.\n\tpid: 7\nThe actor is dead because its node has died."
    assert reason_of(Exception(lost)) == "its node has died."
    assert reason_of(Exception("many words " * 40)) == "many words " * 18 + "…"


async def test_what_a_worker_raises_is_no_fault_of_the_cluster():
    from ray.exceptions import RayTaskError

    async def work(shard):
        trace = "ray::ShardWorker.work() (pid=7, ip=10.0.0.1, repr=<ShardWorker>)\nKeyError: 'gone'"
        raise RayTaskError("work", trace, KeyError("gone"))

    actor = SimpleNamespace(work=SimpleNamespace(remote=work))
    headless = asyncio.create_task(asyncio.sleep(60))
    with pytest.raises(HarnessError, match="the harness itself failed in a worker") as caught:
        await RayWorker(actor, 3, headless).call("work", 1)
    assert caught.value.where == "worker 3" and "KeyError: 'gone'" in caught.value.found


async def test_a_call_ends_once_there_is_no_head_any_more():
    async def work(shard):
        await asyncio.Event().wait()

    actor = SimpleNamespace(work=SimpleNamespace(remote=work))
    headless = asyncio.create_task(asyncio.sleep(0))
    with pytest.raises(ModelError, match="the head of the cluster does not answer any more"):
        await RayWorker(actor, 3, headless).call("work", 1)
