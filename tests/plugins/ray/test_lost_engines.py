"""Engines that the workers of a run have started, when something dies or is missing."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

import pytest
from builders.clusters import ON_RAY, processes_of, with_signal
from builders.ray_faults import WORDS
from builders.toys import current_lines

from harness import registry
from harness.pipeline.executors import sharded

pytestmark = ON_RAY

ENGINE = """
import os
import sys
from pathlib import Path

from harness import hookimpl
from harness.base.errors import ModelError
from harness.contracts.identity import Identity
from harness_models.server.served import Engine, ServedModel


class StandIn(ServedModel):
    def __init__(self, settings):
        server = (sys.executable, "-m", "acme_standin.served")
        super().__init__(
            Engine(
                identity=Identity(kind="standin", name="m", scope="global"), model="m",
                command=lambda port: [*server, port], listens_on="port", concurrency=2,
            ),
            settings,
        )

    def require(self):
        weights = Path(os.environ.get("WEIGHTS", "/"))
        if not weights.exists():
            raise ModelError("the weights are not there", where=str(weights))

    def thinks(self):
        return False


@hookimpl
def register_models(register):
    register("standin", StandIn)
"""

SERVED = """
import os
import signal
import sys
import time
from pathlib import Path

from harness.testing import FaultyServer

GO = Path(__file__).parent / "go"


def stand_still(asked):
    if asked.body["messages"][-1]["content"] != "Hello":
        GO.with_name(f"asked-{os.getpid()}").touch()
    while asked.number == 4 and not GO.exists():
        time.sleep(0.05)


with FaultyServer(faults=stand_still, latency=0.05, port=int(sys.argv[1])):
    signal.pause()
"""
"""An engine that stands still at its fifth question until there is a file that says go.

A file of its own says that the run asked it, and so that it has started: each engine is greeted
until it answers.
"""

INFO = "acme_standin-1.0.dist-info"
FILES = {
    "acme_standin/__init__.py": "",
    "acme_standin/served.py": SERVED,
    "acme_standin/plugin.py": ENGINE,
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: acme-standin\nVersion: 1.0\n",
    f"{INFO}/entry_points.txt": "[harness.plugins]\nstandin = acme_standin.plugin\n",
}

ON_ENGINES = ("--model", "standin")


@pytest.fixture(scope="module", autouse=True)
def standin(package):
    """A kind of model that starts an engine, on all nodes and here."""
    for name, text in FILES.items():
        file = package.parent / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    registry.reset()
    yield
    for name in FILES:
        (package.parent / name).unlink()


def engines_of(nodes):
    """The processes of engines, and whether each of them only watches over one."""
    found = {}
    for process in processes_of(nodes.folder):
        with suppress(OSError):
            command = Path(f"/proc/{process}/cmdline").read_text()
            if "acme_standin.served" in command:
                found[process] = "keeper.py" in command
    return found


def servers_of(nodes):
    """The processes of engines alone."""
    return {process for process, watches in engines_of(nodes).items() if not watches}


def test_a_node_without_the_weights_is_named_before_anything_is_asked(run, nodes, monkeypatch):
    monkeypatch.setattr(sharded, "ROOM_SECONDS", 300.0)
    nodes.remove(nodes.other)
    other = nodes.add(env_vars={"WEIGHTS": "/no/weights"})
    nodes.mend()
    # The head has room for two of them.
    done = run.runs.run("ray", model="standin", model_args=None, workers=None, engines=3)
    nodes.remove(other)
    assert (done.status, done.exit_code) == ("failed", 1)
    shown = str(done.errors[0])
    assert "the weights are not there" in shown and "/no/weights" in shown
    assert "node " in shown
    assert run.server.count == 0
    nodes.check_empty()


@pytest.mark.parametrize("killed", ["worker", "engine"])
def test_an_engine_that_ends_or_whose_worker_does_is_started_again(run, nodes, package, killed):
    run.start(*ON_ENGINES)
    run.wait_until(lambda: len(servers_of(nodes)) == 2)
    first, place = servers_of(nodes), package.parent / "acme_standin"
    run.wait_until(lambda: all((place / f"asked-{process}").exists() for process in first))
    run.wait_until(run.on_disk)
    with_signal(min(nodes.workers() if killed == "worker" else first), signal.SIGKILL)
    run.wait_until(lambda: len(servers_of(nodes) - first) == 1)
    (place / "go").touch()
    run.ended()
    (place / "go").unlink()
    assert not engines_of(nodes)
    assert len(current_lines(run.folder, "say")) == len(WORDS)
