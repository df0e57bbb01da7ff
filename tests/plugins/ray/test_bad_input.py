"""What cannot work is said in a line that names the node, and nothing is paid for."""

from __future__ import annotations

import os

import msgspec
import pytest
from builders.clusters import NODE, ON_RAY

from harness.pipeline.executors import sharded

pytestmark = ON_RAY

WORDS = [f"w {number}" for number in range(6)]


def test_a_node_that_sees_another_folder_of_the_same_name(runs, serve, monkeypatch):
    server, order = serve(), sharded.work_order

    def of_another_run(*given, **more):
        whole = msgspec.msgpack.decode(order(*given, **more))
        return msgspec.msgpack.encode(whole | {"lock": "of another run"})

    runs.words(*WORDS)
    monkeypatch.setattr(sharded, "work_order", of_another_run)
    done = runs.run("ray")
    assert (done.status, done.exit_code) == ("failed", 2)
    said = str(done.errors[0])
    assert "the run folder cannot be seen from a worker" in said and "node " in said
    assert "another folder of the same name" in said and str(done.folder) in said
    assert server.count == 0
    monkeypatch.undo()
    assert runs.run("ray").status == "done"  # the same command, once the folder is shared


@pytest.mark.parametrize("lacks", ["the plugin", "its version"])
def test_a_node_that_lacks(runs, serve, cluster, tmp_path, lacks):
    server = serve()
    runs.words(*WORDS)
    newer = tmp_path / "acme_toys-2.0.dist-info"
    newer.mkdir()
    for file in runs.package.parent.glob("acme_toys-1.0.dist-info/*"):
        (newer / file.name).write_text(file.read_text().replace("Version: 1.0", "Version: 2.0"))
    variables, found = {
        "the plugin": ({"HARNESS_PLUGINS": "models,judges"}, "nothing"),
        "its version": (
            {"PYTHONPATH": f"{tmp_path}:{os.environ['PYTHONPATH']}"}, "acme-toys 2.0"
        ),
    }[lacks]  # fmt: skip
    node = cluster.add_node(**NODE, env_vars=variables)
    try:
        cluster.wait_for_nodes()
        done = runs.run("ray", workers=None)
    finally:
        cluster.remove_node(node)
    assert (done.status, done.exit_code) == ("failed", 2)
    error = done.errors[0]
    assert error.problem == "plugin toys is not what it was where the run was prepared"
    assert (error.found, error.expected) == (found, "acme-toys 1.0")
    assert error.where.startswith("node ") and server.count == 0
