"""A run ends with the same scores when nodes go and come, and when its cluster dies."""

from __future__ import annotations

import signal

import pytest
from builders.clusters import ON_RAY, with_signal
from builders.ray_faults import raylet_of, two_nodes, watched

pytestmark = ON_RAY


def test_the_workers_of_a_removed_node_wait_for_the_next_one(run, nodes, whole):
    run.server.latency *= 2
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


@pytest.mark.parametrize("dies", ["own node", "head"])
def test_a_run_whose_cluster_dies_goes_on_on_a_new_one(tmp_path, package, whole, dies):
    with watched(tmp_path, package, "") as run:
        run.server.latency *= 10
        with two_nodes() as nodes:
            run.runs.address = nodes.address
            run.start()
            run.wait_for(16)
            if dies == "head":
                nodes.kill_head()
            else:
                with_signal(raylet_of(nodes.cluster.head_node), signal.SIGKILL)
            run.note_kill()
            _, said = run.process.communicate(timeout=120)
            print(dies, run.process.returncode, said)
            assert run.process.returncode != 0, said
            nodes.kill()
        run.server.latency /= 10
        with two_nodes() as nodes:
            run.runs.address = nodes.address
            run.start()
            run.ended()
            nodes.check_empty()
        run.check(whole)
