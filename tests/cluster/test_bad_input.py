"""What cannot work is said in a line that names the option or the node, and nothing is paid for."""

from __future__ import annotations

import gc

import msgspec
import pytest
from builders.clusters import NODE

from harness.pipeline.executors import ray_workers
from harness.testing import FaultyServer

WORDS = [f"w {number}" for number in range(6)]
SLOW_WORKER = """
import sys, time

if any("default_worker.py" in part for part in sys.orig_argv):
    time.sleep(15)
"""


def refusal(runs, arguments, **environment):
    """The exit code of a command that leaves no run folder, and what it said."""
    process = runs.started(arguments, **environment)
    _, said = process.communicate(timeout=60)
    assert not runs.place.exists() or not list(runs.place.iterdir())
    return process.returncode, " ".join(said.split())


def changed(arguments, **options):
    """The command with other values of options; None leaves one out."""
    arguments = [*arguments]
    for name, value in options.items():
        if f"--{name}" in arguments:
            place = arguments.index(f"--{name}")
            del arguments[place : place + 2]
        if value is not None:
            arguments += [f"--{name}", value]
    return arguments


def send_changed(patch, **fields):
    """Have workers get another order than the driver made, as if their node were another."""
    encode = ray_workers.encoded

    def changed_order(order):
        return encode(msgspec.structs.replace(order, **fields))

    patch.setattr(ray_workers, "encoded", changed_order)


def test_no_cluster_is_at_the_address(runs, serve):
    server = serve()
    runs.words(*WORDS)
    address = "127.0.0.1:9"  # where nothing listens
    code, said = refusal(runs, changed(runs.arguments("ray"), ray_address=address))
    assert code == 1
    assert f"--ray_address {address}: no Ray cluster is at this address" in said
    assert "Connection refused" in said and "ray start --head" in said
    with FaultyServer() as other:
        address = other.url.removeprefix("http://").partition("/")[0]
        code, said = refusal(runs, changed(runs.arguments("ray"), ray_address=address))
    assert (code, "a server that is no Ray" in said) == (1, True)
    code, said = refusal(runs, changed(runs.arguments("ray"), ray_address="there"))
    assert code == 2
    assert "found: there expected: auto, HOST:PORT or ray://HOST:PORT" in said
    assert server.count == 0


def test_counts_that_no_model_has_a_use_for(runs, serve, package):
    server = serve()
    runs.words(*WORDS)
    code, said = refusal(runs, [*changed(runs.arguments("ray"), workers=None), "--engines", "2"])
    assert code == 2
    assert "--engines needs a model for which the harness starts an engine" in said
    assert "--workers N" in said
    engine = changed(runs.arguments("ray"), model="toy", model_args=None, role="referee=toy")
    code, said = refusal(runs, engine)
    assert code == 2
    assert "--workers needs a model that has a server of its own" in said
    assert "--engines N" in said
    assert server.count == 0


def test_more_workers_than_there_are_cpus(runs, serve):
    server = serve()
    runs.words(*WORDS)
    code, said = refusal(runs, changed(runs.arguments("ray"), workers="17"))
    assert code == 2
    assert "--workers 17 do not fit on the cluster" in said
    assert "at most 16: 1 CPU for each worker" in said
    assert server.count == 0


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
    server = serve()
    runs.words(*WORDS)
    send_changed(monkeypatch, lock="of another run")
    done = runs.run("ray")
    assert (done.status, done.exit_code) == ("failed", 2)
    said = str(done.errors[0])
    assert "the run folder cannot be seen from a node of the cluster" in said
    assert "another folder of the same name" in said and str(done.folder) in said
    assert server.count == 0
    monkeypatch.undo()
    assert runs.run("ray").status == "done"  # the same command, once the folder is shared


@pytest.mark.parametrize("lacking", ["the plugin", "the version"])
def test_a_node_that_has_something_else_installed(
    runs, serve, cluster, tmp_path, monkeypatch, *, lacking
):
    """Nothing is asked before, although the workers of other nodes are ready seconds earlier, and
    one that waits for room would hold them up for five seconds only."""
    server = serve()
    runs.words(*WORDS)
    monkeypatch.setattr(ray_workers, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(ray_workers, "ROOM_SECONDS", 5.0)
    (tmp_path / "sitecustomize.py").write_text(SLOW_WORKER)
    variables = {"PYTHONPATH": f"{tmp_path}:{runs.package.parent}"}
    if lacking == "the plugin":
        variables["HARNESS_PLUGINS"] = "models,judges"
        problem = "the plugin 'toys' of the run is not loaded here"
    else:
        info = tmp_path / "user_understanding_harness-9.9.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: user-understanding-harness\nVersion: 9.9\n"
        )
        problem = "another version of user-understanding-harness is installed here"
    node = cluster.add_node(**NODE, env_vars=variables)
    try:
        cluster.wait_for_nodes()
        done = runs.run("ray", workers=None)
    finally:
        cluster.remove_node(node)
    assert (done.status, done.exit_code) == ("failed", 2)
    (error,) = done.errors
    assert problem in str(error) and "node " in str(error)
    assert server.count == 0
    late = "has not begun yet, and the others wait for it: its node starts it slowly"
    assert {line.split(" ", 2)[2] for line in runs.problems} == {late}
