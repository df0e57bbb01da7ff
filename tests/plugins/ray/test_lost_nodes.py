"""A run ends with the same scores when nodes do not answer for a while, go, and come."""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager

import pytest
from builders.clusters import with_signal
from builders.processes import lives
from builders.ray_faults import raylet_of, two_nodes, watched

CUT_OFF = 10.0
"""Seconds without a sign of life, after which the cluster has given a node up."""


@contextmanager
def stopped(process):
    with_signal(process, signal.SIGSTOP)
    try:
        yield
    finally:
        with_signal(process, signal.SIGCONT)


def goes_on_on_another(run, whole):
    """The same command ends a run on a new cluster."""
    with two_nodes() as others:
        run.runs.address = others.address
        run.start()
        run.ended()
        others.check_empty()
    run.check(whole)


@pytest.mark.parametrize("budget", [(), ("--max_calls", "170")])
def test_a_node_that_was_given_up_and_comes_back_does_no_harm(run, nodes, whole, budget):
    """Its worker asks and records on meanwhile, while another one works the same items; with a
    budget it ends when it needs more."""
    run.server.latency *= 3
    run.start(*budget)
    run.wait_for(8)
    with stopped(raylet_of(nodes.other)):
        began = time.monotonic()
        run.wait_until(lambda: len(nodes.workers()) == 3)
        time.sleep(CUT_OFF - (time.monotonic() - began))
    run.wait_until(lambda: not lives(raylet_of(nodes.other)))
    nodes.mend()
    run.note_kill()
    run.ended()
    run.check(whole)
    nodes.check_empty()


def test_the_workers_of_a_removed_node_wait_for_the_next_one(run, nodes, whole):
    run.start("--workers", "4")
    run.wait_until(lambda: len(nodes.workers()) == 4)
    run.wait_for(8)
    nodes.remove(nodes.other)
    run.note_kill()
    run.wait_for(24)
    run.wait_until(lambda: len(nodes.workers()) == 2)
    nodes.add()
    run.wait_until(lambda: len(nodes.workers()) == 4)
    run.ended()
    run.check(whole)
    nodes.check_empty()


def test_a_run_whose_own_node_dies_ends_and_goes_on_on_a_new_cluster(tmp_path, package, whole):
    with two_nodes() as nodes, watched(tmp_path, package, nodes.address) as run:
        run.start()
        run.wait_for(20)
        with_signal(raylet_of(nodes.cluster.head_node), signal.SIGKILL)
        shown = run.ended(code=1, seconds=60)
        assert "the node of the cluster that this process belongs to has died" in shown
        run.note_kill()
        nodes.kill()
        goes_on_on_another(run, whole)


@pytest.mark.parametrize("waits", [False, True])  # workers of a lost node, until the end
def test_a_run_whose_head_dies_says_so_and_goes_on_on_a_new_cluster(
    tmp_path, package, whole, waits
):
    with two_nodes() as nodes, watched(tmp_path, package, nodes.address) as run:
        run.server.latency = 5.0
        run.start("--workers", "4")
        run.wait_for(8)
        if waits:
            nodes.remove(nodes.other)
            run.note_kill()
        run.wait_for(20)
        (head,) = nodes.cluster.head_node.all_processes["gcs_server"]
        with_signal(head.process.pid, signal.SIGKILL)
        shown = run.ended(code=1, seconds=55)  # Ray would end it after a minute, without a word
        assert f"{nodes.address}: the head of the cluster does not answer any more" in shown
        assert "start the cluster again" in shown
        run.note_kill()
        nodes.kill()
        run.server.latency = 0.3
        goes_on_on_another(run, whole)
