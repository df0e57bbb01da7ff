"""Joining a Ray cluster, and starting one of one's own."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from builders.clusters import processes_of, ray_cluster, ray_folder
from builders.processes import run_python, wait_until

from harness.base.errors import UsageError
from harness.pipeline.executors.cluster import (
    connect,
    count_nodes,
    disconnect,
    engines_that_fit,
    findings,
    nodes,
)


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
