"""Nodes that lack something, have another version, a full disk, or a clock that is wrong."""

from __future__ import annotations

import os

import pytest
from builders.ray_faults import QUESTIONS, moments

START = """
import errno
import os
import time
from datetime import datetime, timedelta

real, real_ns, write = time.time, time.time_ns, os.write
ahead = float(os.environ.get("CLOCK_AHEAD", 0))
full = os.environ.get("DISK_FULL", "")


def write_unless_full(file, data):
    name = os.readlink(f"/proc/self/fd/{file}") if full and os.path.exists(full) else ""
    if name.endswith(".jsonl"):
        raise OSError(errno.ENOSPC, "No space left on device")
    return write(file, data)


if ahead:
    time.time = lambda: real() + ahead
    time.time_ns = lambda: real_ns() + int(ahead * 1e9)
if full:
    os.write = write_unless_full
"""
"""What each process of the node runs first: its clock is so many seconds ahead, and its disk has no
room for journals while the file DISK_FULL is there."""


@pytest.fixture
def other_node(nodes):
    """Gives the second node of the cluster an environment, and packages that it finds first."""

    def replace(*packages, **environment):
        nodes.remove(nodes.other)
        path = [*map(str, packages), os.environ["PYTHONPATH"]]
        return nodes.add(env_vars={"PYTHONPATH": os.pathsep.join(path), **environment})

    yield replace
    nodes.remove(nodes.other)


@pytest.fixture
def starts(tmp_path):
    """A folder by which each Python process of a node first runs START."""
    folder = tmp_path / "start"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(START)
    return folder


def test_a_clock_that_is_ten_minutes_off_changes_nothing(run, nodes, other_node, starts, whole):
    other_node(starts, CLOCK_AHEAD="600")
    run.start("--max_calls", "1000")
    run.wait_for(moments("clock", 1)[0])
    run.kill()
    nodes.check_empty()
    run.note_kill()
    run.start("--max_calls", "1000")
    run.ended()
    run.check(whole)


def test_a_node_without_room_ends_the_run_and_the_same_command_goes_on(
    run, nodes, other_node, starts, whole
):
    full = starts / "full"
    other_node(starts, DISK_FULL=str(full))
    run.start()
    run.wait_for(QUESTIONS // 4)
    full.touch()
    shown = run.ended(code=1)
    run.note_kill()
    assert str(run.folder / "toys" / "1-say.0") in shown
    assert "cannot write" in shown and "No space left" in shown and "node " in shown
    nodes.check_empty()
    full.unlink()
    run.start()
    run.ended()
    run.check(whole)
