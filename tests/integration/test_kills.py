"""Killed where it hurts: before the result is out."""

import json
import subprocess
from pathlib import Path

from harness import evaluate

FEW = ("--limit", "6")

KILLER = """
import os
import signal

from harness import hookimpl


@hookimpl
def on_run_end(event):
    if "KILLED" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
"""
"""A plugin that ends its process at the end of a run, where there is a variable KILLED."""


def test_a_kill_after_the_end_loses_no_result_and_costs_nothing(harness, serve, install):
    install(KILLER)
    server = serve(harness)
    killed = harness.process(harness.arguments(*FEW), KILLED="yes")
    assert (killed.code, killed.out) == (-9, "")
    assert harness.manifest()["status"] == "done"
    once = server.count

    done = harness.run(*FEW).ok()
    assert server.count == once
    assert done.summary()["metrics"]["support"]["n"] == 6
    assert harness.manifest()["delivered"] is True
    stages = done.summary()["stages"]
    assert stages["name"]["roles"]["candidate"]["from_store"] == 0

    other = harness.run(*FEW).ok()
    assert len(harness.folders) == 2
    assert other.summary()["metrics"] == done.summary()["metrics"]


def test_a_result_that_could_not_be_printed_is_printed_by_the_same_command(harness, serve):
    server = serve(harness)
    command = [word for word in harness.arguments(*FEW) if word != "--json"]
    with Path("/dev/full").open("w") as full:
        failed = subprocess.run(
            command, cwd=harness.folder, env=harness.environment, stdout=full,
            stderr=subprocess.PIPE, check=False, timeout=120,
        )  # fmt: skip
    assert failed.returncode != 0
    left = harness.manifest()
    assert (left["status"], left["delivered"]) == ("done", False)
    once = server.count

    done = harness.command(command).ok()
    assert "support" in done.out
    assert server.count == once
    assert len(harness.folders) == 1
    assert harness.manifest()["delivered"] is True


def test_a_result_is_delivered_once_evaluate_returns(tmp_path):
    for _ in range(2):
        done = evaluate("interests", model="baseline", judge="lexical", data="sample", limit=2,
                        output_path=tmp_path / "runs", reuse="run")  # fmt: skip
        run = json.loads((done.folder / "manifest.json").read_text())
        assert (run["status"], run["delivered"]) == ("done", True)
    assert len(list((tmp_path / "runs").iterdir())) == 2
