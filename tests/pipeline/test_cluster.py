"""Joining a Ray cluster, starting one's own, and what fits on the nodes."""

import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders.clusters import processes_of, ray_cluster, ray_folder
from builders.processes import run_python, wait_until
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
    count_nodes,
    disconnect,
    engines_that_fit,
    engines_to_open,
    findings,
    nodes,
    said_of,
    workers_of,
)
from harness.pipeline.settings import RunSettings
from harness.registry import load_plugins
from harness.testing.server import FaultyServer

pytestmark = pytest.mark.xdist_group("ray")


def node(name="a", **there):
    free = {f"{what}_free": many for what, many in there.items() if not what.endswith("_free")}
    return Node(id=name, name=name, address=f"10.0.0.{ord(name) - 96}", **{**free, **there})


FOUR = [node("a", cpus=8, gpus=4), node("b", cpus=8, gpus=4)]


@pytest.mark.parametrize(
    ("there", "each", "fit"),
    [
        ([], 1, 0),
        ([node("a", gpus=0)], 1, 0),
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
        (5, None, [None], 5),
        (5, 3, [None], 3),
        (None, 1, [None], 1),
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


def test_auto_is_what_the_variable_names(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    with pytest.raises(UsageError, match="--ray_address cannot be used") as caught:
        connect("auto")
    assert caught.value.found == "nowhere"


@pytest.mark.parametrize("address", ["", "foo", "foo:", ":1", "http://a:1", "a b:1", "a:1/x"])
def test_an_address_that_is_none(address):
    with pytest.raises(UsageError, match="--ray_address cannot be used") as caught:
        connect(address)
    assert caught.value.expected == "auto, HOST:PORT or ray://HOST:PORT"


def test_an_address_at_which_nothing_is(raised):
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


@pytest.fixture(scope="module")
def running():
    """A cluster of two nodes, of which the last test removes one."""
    with ray_cluster({"num_cpus": 2, "num_gpus": 1}, {"num_cpus": 3, "num_gpus": 4}) as cluster:
        yield cluster


@pytest.mark.parametrize("named", ["by its address", "auto"])
def test_a_cluster_of_two_nodes(running, named):
    import ray

    before = signal.getsignal(signal.SIGTERM)
    connect(running.address if named != "auto" else named)
    try:
        assert signal.getsignal(signal.SIGTERM) is before
        here, there = nodes()
        assert (here.here, here.cpus, here.gpus, here.gpus_free) == (True, 2.0, 1.0, 1.0)
        assert (there.here, there.cpus, there.gpus_free) == (False, 3.0, 4.0)
        assert engines_that_fit(nodes(), 2) == 2
        for same in (None, "auto", running.address):
            connect(same)  # this process has joined one: that is used
            disconnect()
        with pytest.raises(UsageError, match="this process uses another Ray cluster") as caught:
            connect("nowhere:1")
        assert caught.value.where == "--ray_address nowhere:1"
        assert caught.value.found == running.address
        assert len(nodes()) == 2  # the other run of this process goes on
    finally:
        disconnect()
    assert not ray.is_initialized()


def test_doctor_says_what_the_nodes_have(running):
    (found,) = findings(running.address)
    assert found.state == "good"
    assert f"{running.address}: 2 nodes: " in found.says
    assert "1 of 1 GPU and 2 of 2 CPUs free" in found.says


def test_a_node_whose_gpus_are_taken_and_that_is_lost(running, capfd):
    import ray

    @ray.remote(num_cpus=0, num_gpus=3)
    class Engine:
        def place(self):
            return ray.get_runtime_context().get_node_id()

    connect(running.address)
    engine = Engine.remote()
    place = ray.get(engine.place.remote())
    wait_until(lambda: {one.id: one.gpus_free for one in nodes()}[place] == 1.0)
    assert engines_that_fit(nodes(), 2) == 0
    assert count_nodes() == 2
    (lost,) = running.worker_nodes
    running.remove_node(lost, allow_graceful=False)
    wait_until(lambda: len(nodes()) == 1)
    assert count_nodes() == 1
    time.sleep(1.0)  # Ray prints what it has to say in a thread
    disconnect()
    assert capfd.readouterr().out == ""


SECRET = "sk-proj-Zb81nQ0xkW4tRv7LmP2d"
OWN_RAY = """
import os, sys
from pathlib import Path
from builders.clusters import processes_of
from harness.pipeline.executors.cluster import connect, disconnect, nodes

folder = Path(os.environ["RAY_TMPDIR"])
connect(None)
import ray

@ray.remote
class Worker:
    def __init__(self):
        self.keys = {}
    def take(self, keys):
        self.keys |= keys
        return sorted(self.keys)
    def token(self):
        return os.environ["RAY_AUTH_TOKEN"]

worker = Worker.options(name="worker").remote()
assert ray.get(worker.take.remote({"KEY": os.environ["SOME_KEY"]})) == ["KEY"]
token = ray.get(worker.token.remote())
assert len(token) == 64 and len(nodes()) == 1
ray.kill(worker)
files = [one for one in folder.rglob("*") if one.is_file()]
written = b"".join(one.read_bytes() for one in files)
print(len(files), len(written), len(processes_of(folder)) > 2)
for text in (os.environ["SOME_KEY"], sys.argv[1], token, "-of-the-user-"):
    print(text.encode() in written)
disconnect()
print([one.name for one in folder.iterdir()], "RAY_AUTH_TOKEN" in os.environ)
"""


def test_a_ray_of_our_own_keeps_secrets_and_leaves_nothing(tmp_path):
    """Keys of models, the command line, the token, and the token that the user has for others."""
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text(held := "token-of-the-user-" + "0" * 46)
    with ray_folder() as folder:
        program = f"import sys\nsys.path.insert(0, {str(Path(__file__).parents[1])!r})\n{OWN_RAY}"
        said = run_python(
            program, f"api_key={SECRET}", SOME_KEY="sk-some-0123456789abcdef", HOME=str(tmp_path)
        )
        many, secrets, left = said.splitlines()[0], said.splitlines()[1:5], said.splitlines()[5]
        assert int(many.split()[0]) > 10 and int(many.split()[1]) > 1000 and many.endswith("True")
        assert secrets == ["False"] * 4
        assert left == "[] False"
        wait_until(lambda: processes_of(folder) == [])
    assert [one.name for one in tmp_path.iterdir()] == [".ray"]
    assert (tmp_path / ".ray" / "auth_token").read_text() == held


def test_doctor_starts_no_ray_and_a_thread_may():
    def run():
        connect(None)
        try:
            found.extend(nodes())
        finally:
            disconnect()

    found = []
    with ray_folder() as folder:
        assert next(one.says for one in findings(None)).endswith("this machine alone")
        assert list(folder.iterdir()) == []
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert [one.here for one in found] == [True]
        assert list(folder.iterdir()) == []
    assert "RAY_AUTH_TOKEN" not in os.environ
