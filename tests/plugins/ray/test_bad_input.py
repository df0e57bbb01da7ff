"""What cannot work is said in a line that names the option or the node, and nothing is paid for."""

from __future__ import annotations

import gc

import msgspec
from builders.clusters import NODE

from harness.pipeline.executors import ray_workers

WORDS = [f"w {number}" for number in range(6)]
SLOW_WORKER = """
import sys, time

if any("default_worker.py" in part for part in sys.orig_argv):
    time.sleep(15)
"""


def test_workers_that_wait_until_the_end_leave_one_line_each(
    runs, serve, cluster, monkeypatch, caplog
):
    """Others have all CPUs but two. No task is left whose error Python would print."""
    import ray

    @ray.remote(num_cpus=7)
    class Other:
        def is_there(self):
            return True

    serve()
    runs.words(*WORDS)
    monkeypatch.setattr(ray_workers, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(ray_workers, "ROOM_SECONDS", 5.0)
    others = [Other.remote() for _ in cluster.list_all_nodes()]
    try:
        assert ray.get([one.is_there.remote() for one in others]) == [True, True]
        done = runs.run("ray", workers=4)
    finally:
        for one in others:
            ray.kill(one)
    assert done.status == "done"
    waits = "waits for a node with 1 CPU to spare: see `ray status`"
    assert {line.split(" ", 2)[2] for line in runs.problems} == {waits}
    gc.collect()
    assert caplog.text == ""


def test_a_node_that_sees_another_folder_of_the_same_name(runs, serve, monkeypatch):
    server, encode = serve(), ray_workers.encoded
    runs.words(*WORDS)
    other = {"lock": "of another run"}
    monkeypatch.setattr(
        ray_workers, "encoded", lambda order: encode(msgspec.structs.replace(order, **other))
    )
    done = runs.run("ray")
    assert (done.status, done.exit_code) == ("failed", 2)
    said = str(done.errors[0])
    assert "the run folder cannot be seen from a node of the cluster" in said
    assert "another folder of the same name" in said and str(done.folder) in said
    assert server.count == 0
    monkeypatch.undo()
    assert runs.run("ray").status == "done"  # the same command, once the folder is shared


def test_a_node_that_lacks_the_plugin(runs, serve, cluster, tmp_path, monkeypatch):
    """Nothing is asked before, although the workers of other nodes are ready seconds earlier, and
    one that waits for room would hold them up for five seconds only."""
    server = serve()
    runs.words(*WORDS)
    monkeypatch.setattr(ray_workers, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(ray_workers, "ROOM_SECONDS", 5.0)
    (tmp_path / "sitecustomize.py").write_text(SLOW_WORKER)
    path = f"{tmp_path}:{runs.package.parent}"
    variables = {"PYTHONPATH": path, "HARNESS_PLUGINS": "models,judges"}
    node = cluster.add_node(**NODE, env_vars=variables)
    try:
        cluster.wait_for_nodes()
        done = runs.run("ray", workers=None)
    finally:
        cluster.remove_node(node)
    assert (done.status, done.exit_code) == ("failed", 2)
    (error,) = done.errors
    assert "the plugin 'toys' of the run is not loaded here" in str(error) and "node " in str(error)
    assert server.count == 0
    late = "has not begun yet, and the others wait for it: its node starts it slowly"
    assert {line.split(" ", 2)[2] for line in runs.problems} == {late}
