"""What fits on the nodes of a Ray cluster, and addresses where there is none."""

import socket
import sys
from types import SimpleNamespace

import pytest
from builders.clusters import ray_folder
from inline_snapshot import snapshot

from harness.base.errors import UsageError
from harness.contracts.model import ModelSettings
from harness.pipeline.executors import cluster
from harness.pipeline.executors.cluster import (
    ClusterError,
    Node,
    check_counts,
    clients_to_open,
    connect,
    engines_that_fit,
    engines_to_open,
    said_of,
    workers_of,
)
from harness.pipeline.settings import RunSettings
from harness.registry import load_plugins
from harness.testing.server import FaultyServer


def node(name="a", **there):
    free = {f"{what}_free": many for what, many in there.items() if not what.endswith("_free")}
    return Node(id=name, name=name, address=f"10.0.0.{ord(name) - 96}", **{**free, **there})


FOUR = [node("a", cpus=8, gpus=4), node("b", cpus=8, gpus=4)]


@pytest.mark.parametrize(
    ("there", "each", "fit"),
    [
        ([], 1, 0),
        (FOUR, 1, 8),
        (FOUR, 3, 2),
        (FOUR, 4, 2),
        (FOUR, 8, 0),
        (FOUR, 0, 16),
        ([node("a", cpus=8, gpus=4, gpus_free=1.5), node("b", cpus=8, gpus=4)], 1, 5),
        ([node("a", cpus=8, cpus_free=1.5, gpus=4), node("b", cpus=2, gpus=4)], 1, 3),
        ([node("a", cpus=8, cpus_free=1.5), node("b", cpus=2)], 0, 3),
    ],
)
def test_an_engine_has_a_cpu_and_its_gpus_on_one_node(there, each, fit):
    assert engines_that_fit(there, each) == fit


def test_as_many_engines_open_as_fit_or_are_asked_for():
    assert engines_to_open(FOUR, 2, asked=None, model="vllm:m") == 4
    assert engines_to_open(FOUR, 2, asked=3, model="vllm:m") == 3


def test_engines_without_gpus_open_one_on_each_node_or_as_many_as_there_are_cpus():
    assert engines_to_open(FOUR, 0, asked=None, model="vllm:m") == 2
    assert engines_to_open(FOUR, 0, asked=None, model="vllm:m", among=5) == 1
    assert engines_to_open(FOUR, 0, asked=16, model="vllm:m") == 16


def test_gpus_that_there_are_not(raised):
    where, nodes = "vllm:m", [node("a", cpus=8, gpus=4), node("b", cpus=2, gpus=0)]
    found = "2 nodes: a (10.0.0.1): 4 of 4 GPUs and 8 of 8 CPUs free, b (10.0.0.2): no GPU, 2 of 2 CPUs free"  # noqa: E501

    def opened(gpus, asked, nodes=nodes):
        return engines_to_open(nodes, gpus, asked=asked, model=where)

    assert raised(ClusterError, opened, 8, None, where=where, found=found) == snapshot("""\
no node of the cluster has 1 CPU and 8 GPUs for an engine
expected: 1 CPU and 8 GPUs of one node for each engine of vllm:m
to do: add a node that has them, by `ray start --address=…`, or give the model a smaller tensor_parallel_size; an engine is not spread over nodes\
""")  # noqa: E501
    assert raised(UsageError, opened, 2, 3, where=where, found=found) == snapshot("""\
--engines 3 do not fit on the cluster
expected: at most 2: 1 CPU and 2 GPUs of one node for each engine of vllm:m
to do: give --engines 2, or leave --engines out: the run then opens as many as it can use\
""")
    busy = [node("a", cpus=8, gpus=1, gpus_free=0)]
    found = "1 node: a (10.0.0.1): 0 of 1 GPU and 8 of 8 CPUs free"
    assert raised(ClusterError, opened, 1, None, busy, where=where, found=found) == snapshot("""\
the CPUs or GPUs of the cluster are in use
expected: 1 CPU and 1 GPU of one node for each engine of vllm:m
to do: wait until they are free: `ray status` shows what has them\
""")
    small = [node("a", cpus=2)]
    found = "1 node: a (10.0.0.1): no GPU, 2 of 2 CPUs free"
    assert raised(UsageError, opened, 0, 3, small, where=where, found=found) == snapshot("""\
--engines 3 do not fit on the cluster
expected: at most 2: 1 CPU of one node for each engine of vllm:m
to do: give --engines 2, or leave --engines out: the run then opens as many as it can use\
""")
    assert said_of([]) == "no node"


def test_counts_that_no_model_has_a_use_for(raised):
    def counted(workers, engines, on_engines=(), by_rest=()):
        check_counts(workers=workers, engines=engines, on_engines=on_engines, by_rest=by_rest)

    assert raised(UsageError, counted, None, 2, (), ["openai:m"], found="openai:m") == snapshot("""\
--engines needs a model for which the harness starts an engine
expected: a model such as vllm, or --workers N: the processes that ask servers\
""")
    assert raised(UsageError, counted, 8, None, ["vllm:m"], (), found="vllm:m") == snapshot("""\
--workers needs a model that has a server of its own
expected: --engines N: each engine has one worker, on the node of the engine\
""")
    counted(8, 2, ["vllm:m"], ["openai:m"])
    counted(None, None)


def served(name="m", *, concurrency=None, whole=None):
    """A model that has a server, with a concurrency in its SPEC or for the whole run."""
    args = {"model": name} | ({} if concurrency is None else {"concurrency": str(concurrency)})
    factory = load_plugins().model("openai").factory
    model = factory(ModelSettings(args=args, concurrency=whole))
    model.limited = concurrency is not None or whole is not None
    return model


@pytest.mark.parametrize(
    ("workers", "whole", "of_models", "opened"),
    [
        (None, None, [None], 2),
        (5, 3, [None], 3),
        (6, None, [2], 2),
        (6, 4, [None, 3], 3),
        (6, 3, [5], 5),
    ],
)
def test_no_worker_opens_that_may_send_nothing(workers, whole, of_models, opened):
    settings = RunSettings(tasks=(), model="", workers=workers, concurrency=whole)
    models = [served(concurrency=own, whole=whole) for own in of_models]
    assert workers_of(models, settings, FOUR) == (opened, 0)


def test_engines_that_would_send_a_server_more_than_it_may_get(raised):
    engine = SimpleNamespace(
        occupies="gpu",
        gpus=2,
        concurrency=8,
        limited=True,
        identity=SimpleNamespace(label="vllm:e"),
    )
    settings = RunSettings(tasks=(), model="")
    models = [engine, served(), served("judge", concurrency=3)]
    where, found = "openai:judge", "concurrency 3, and 4 engines of vllm:e"
    assert raised(
        UsageError, workers_of, models, settings, FOUR, where=where, found=found
    ) == snapshot("""\
a server may get fewer requests at the same time than the run has engines
expected: a concurrency of 4 at least: the worker of each engine asks the server too
to do: give it, or --engines 3\
""")
    fewer = RunSettings(tasks=(), model="", engines=3)
    assert workers_of(models, fewer, FOUR) == (3, 2)


def test_workers_open_one_on_each_node_with_a_cpu_or_as_many_as_there_are_cpus(raised):
    nodes = [node("a", cpus=0), node("b", cpus=3, cpus_free=1), node("c", cpus=2)]
    assert clients_to_open(nodes, None) == 2
    assert clients_to_open(nodes, 5) == 5  # where others use a CPU, a worker waits for it
    assert clients_to_open([node("a", cpus=0)], None) == 1
    found = "3 nodes: a (10.0.0.1): no GPU, 0 of 0 CPUs free, b (10.0.0.2): no GPU, 1 of 3 CPUs free, c (10.0.0.3): no GPU, 2 of 2 CPUs free"  # noqa: E501
    assert raised(UsageError, clients_to_open, nodes, 6, found=found) == snapshot("""\
--workers 6 do not fit on the cluster
expected: at most 5: 1 CPU for each worker
to do: give --workers 5, or leave --workers out: the run then opens as many as it can use\
""")


def test_ray_that_is_not_installed(raised, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda name: None)
    assert raised(ClusterError, connect, None, where="--executor ray") == snapshot("""\
Ray is not installed
expected: the package ray
to do: pip install 'user-understanding-harness[ray]'\
""")


def test_what_ray_raises_is_put_into_words(raised):
    class AuthenticationError(Exception):
        pass

    def failed(error, address="auto"):
        raise cluster._error_of(error, address)

    where = "--ray_address auto"
    assert raised(ClusterError, failed, AuthenticationError("no"), where=where) == snapshot("""\
the cluster asks for a token, and this machine has none, or another
expected: the token of the cluster
to do: copy ~/.ray/auth_token from the head of the cluster to this machine, and set RAY_AUTH_MODE to token\
""")  # noqa: E501
    other = RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.55.0\n")
    found = "RuntimeError: Version mismatch: The cluster was started with: Ray: 2.55.0"
    assert raised(ClusterError, failed, other, where=where, found=found) == snapshot("""\
the cluster runs another version of Ray or Python
expected: the same versions on all machines\
""")
    lines = (
        "Traceback:\n  raise RuntimeError(\nRuntimeError: Starting Ray client server failed. See x"
    )
    crashed, found = ConnectionAbortedError(lines), "Starting Ray client server failed"
    assert raised(ClusterError, failed, crashed, where=where, found=found) == snapshot("""\
the head of the cluster could not start the process for this driver
to do: repeat the command; where this happens often, start the head by `GRPC_ENABLE_FORK_SUPPORT=0 ray start --head`\
""")  # noqa: E501
    full, found = OSError("no space"), "OSError: no space"
    assert raised(
        ClusterError, failed, full, None, where="--executor ray", found=found
    ) == snapshot("Ray cannot be started on this machine")
    assert raised(ClusterError, failed, full, where=where, found=found) == snapshot("""\
the Ray cluster cannot be joined
expected: a cluster to which this machine belongs
to do: run `ray start --head` on one machine, and on each other `ray start --address=HOST:6379`\
""")


@pytest.mark.parametrize("address", ["", "foo", "foo:", ":1", "http://a:1", "a b:1", "a:1/x"])
def test_an_address_that_is_none(address):
    with pytest.raises(UsageError, match="--ray_address cannot be used") as caught:
        connect(address)
    assert caught.value.expected == "auto, HOST:PORT or ray://HOST:PORT"


def test_an_address_at_which_nothing_is(raised, monkeypatch):
    # Whoever else uses this machine may have a cluster on it.
    monkeypatch.setattr("ray._private.services.find_gcs_addresses", frozenset)
    with socket.create_server(("127.0.0.1", 0)) as once:
        address = f"127.0.0.1:{once.getsockname()[1]}"
    with ray_folder():
        where, found = f"--ray_address {address}", "[Errno 111] Connection refused"
        assert raised(ClusterError, connect, address, where=where, found=found) == snapshot("""\
no Ray cluster is at this address
expected: a cluster that runs, and to which this machine belongs
to do: run `ray start --head` on one machine, and on each other `ray start --address=HOST:6379`; without --ray_address a run uses this machine alone\
""")  # noqa: E501
        with pytest.raises(ClusterError, match="no Ray cluster is at this address") as caught:
            connect("auto")
    assert caught.value.found == "no Ray on this machine, and no RAY_ADDRESS"


def test_an_address_at_which_something_else_is(monkeypatch):
    with FaultyServer() as server, pytest.raises(ClusterError) as caught:
        connect(server.url.removeprefix("http://").partition("/")[0])
    assert caught.value.problem == "no Ray cluster is at this address"
    assert caught.value.found == "a server that is no Ray"
    monkeypatch.setattr(cluster, "SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(ClusterError) as caught:
        connect(f"127.0.0.1:{silent.getsockname()[1]}")
    assert caught.value.found == "timed out"
