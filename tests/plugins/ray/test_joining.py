"""Joining a Ray cluster, and starting one of one's own."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from builders.clusters import ON_RAY, processes_of, ray_cluster, ray_folder
from builders.processes import run_python, wait_until
from harness_ray.cluster import Cluster, nodes
from harness_ray.executor import RayExecutor

from harness.base.errors import UsageError
from harness.contracts.executor import ExecutorSettings

pytestmark = ON_RAY


def findings(address):
    """What `harness doctor` says of the cluster at an address."""
    return list(RayExecutor(ExecutorSettings(address=address)).check())


@pytest.fixture(scope="module")
def running():
    """A cluster of two nodes."""
    with ray_cluster({"num_cpus": 2, "num_gpus": 1}, {"num_cpus": 3, "num_gpus": 4}) as cluster:
        yield cluster


@pytest.mark.parametrize("named", ["by its address", "auto"])
def test_a_cluster_of_two_nodes(running, named):
    import ray

    before = signal.getsignal(signal.SIGTERM)
    with Cluster(running.address if named != "auto" else named):
        assert signal.getsignal(signal.SIGTERM) is before
        assert {(one.cpus, one.gpus) for one in nodes()} == {(2.0, 1.0), (3.0, 4.0)}
        for same in (None, "auto", running.address):  # that is used, and stays joined
            with Cluster(same):
                assert len(nodes()) == 2
        with pytest.raises(UsageError, match="this process uses another Ray cluster") as caught:
            Cluster("nowhere:1").join()
        assert caught.value.where == "--ray_address nowhere:1"
        assert len(nodes()) == 2
        executor = RayExecutor(ExecutorSettings(workers=6))
        with pytest.raises(UsageError, match="--workers 6 do not fit on the cluster"):
            executor.join([])
    assert not ray.is_initialized()


def test_doctor_says_what_the_nodes_have(running):
    import ray

    (found,) = findings(running.address)
    assert found.state == "good"
    assert f"{running.address}: 2 nodes: " in found.says
    assert "1 GPU, 2 CPUs" in found.says and "4 GPUs, 3 CPUs" in found.says
    assert not ray.is_initialized()


SECRET = "sk-proj-Zb81nQ0xkW4tRv7LmP2d"
OWN_RAY = """
import os, sys
from pathlib import Path
from builders.clusters import processes_of
from harness_ray.cluster import Cluster, nodes

folder = Path(os.environ["RAY_TMPDIR"])
cluster = Cluster(None)
cluster.join()
import ray

@ray.remote
class Worker:
    def __init__(self, keys):
        self.keys = keys
    def names(self):
        return sorted(self.keys)
    def token(self):
        return os.environ["RAY_AUTH_TOKEN"]

worker = Worker.remote({"KEY": os.environ["SOME_KEY"]})
assert ray.get(worker.names.remote()) == ["KEY"]
token = ray.get(worker.token.remote())
assert len(token) == 64 and len(nodes()) == 1
ray.kill(worker)
files = [one for one in folder.rglob("*") if one.is_file()]
written = b"".join(one.read_bytes() for one in files)
print(len(files) > 10, len(written) > 1000, len(processes_of(folder)) > 2)
for text in (os.environ["SOME_KEY"], sys.argv[1], token, "-of-the-user-"):
    print(text.encode() in written)
cluster.leave()
print([one.name for one in folder.iterdir()], "RAY_AUTH_TOKEN" in os.environ)
"""


def test_a_ray_of_our_own_keeps_secrets_and_leaves_nothing(tmp_path):
    """Keys of models, the command line, the token, and the token that the user has for others."""
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text(held := "token-of-the-user-" + "0" * 46)
    with ray_folder() as folder:
        program = f"import sys\nsys.path.insert(0, {str(Path(__file__).parents[2])!r})\n{OWN_RAY}"
        said = run_python(
            program, f"api_key={SECRET}", SOME_KEY="sk-some-0123456789abcdef", HOME=str(tmp_path)
        )
        assert said.splitlines() == ["True True True", *["False"] * 4, "[] False"]
        wait_until(lambda: processes_of(folder) == [])
    assert [one.name for one in tmp_path.iterdir()] == [".ray"]
    assert (tmp_path / ".ray" / "auth_token").read_text() == held


def test_doctor_starts_no_ray_and_a_thread_may():
    def run():
        with Cluster(None):
            found.extend(nodes())

    found = []
    with ray_folder() as folder:
        assert findings(None)[0].says.endswith(
            "without --ray_address a run uses this machine alone"
        )
        assert list(folder.iterdir()) == []
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert len(found) == 1
        assert list(folder.iterdir()) == []
    assert "RAY_AUTH_TOKEN" not in os.environ


WITHOUT_TOKEN = """
import sys
from harness_ray.cluster import Cluster
from harness_ray.places import ClusterError

try:
    Cluster(sys.argv[1]).join()
except ClusterError as error:
    print(error.problem)
"""


def test_a_cluster_that_asks_for_a_token(tmp_path):
    ray = [sys.executable, "-m", "ray.scripts.scripts"]
    given = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
    start = ["start", "--head", "--port", "0", "--num-cpus", "1", "--include-dashboard", "false"]
    with ray_folder() as folder:
        subprocess.run([*ray, *start], env=os.environ | given, check=True, capture_output=True)
        address = (folder / "ray" / "ray_current_cluster").read_text()
        assert run_python(WITHOUT_TOKEN, address, **given) == ""
        said = run_python(WITHOUT_TOKEN, address, HOME=str(tmp_path))
    assert said.startswith("the cluster asks for a token, and this machine has none")
