"""A run ends with the same scores when nodes go and come, and when its cluster dies."""

from __future__ import annotations

import signal

from builders.clusters import ON_RAY, with_signal
from builders.ray_faults import QUESTIONS, raylet_of, two_nodes, watched

pytestmark = ON_RAY


def test_the_workers_of_a_removed_node_wait_for_the_next_one(run, nodes, whole):
    run.hold(8)
    run.start("--workers", "4")
    run.wait_until(lambda: len(nodes.workers()) == 4)
    run.wait_for(8)
    nodes.remove(nodes.other)
    run.note_kill()
    run.hold(24)
    run.wait_for(24)
    run.wait_until(lambda: len(nodes.workers()) == 2)
    nodes.add()
    run.wait_until(lambda: len(nodes.workers()) == 4)
    run.go_on()
    run.ended()
    run.check(whole)
    nodes.check_empty()


def test_a_run_whose_own_node_dies_ends_and_goes_on_on_a_new_cluster(tmp_path, package, whole):
    with watched(tmp_path, package, "") as run:
        with two_nodes() as nodes:
            run.runs.address = nodes.address
            run.hold(16)
            run.start()
            run.wait_for(16)
            with_signal(raylet_of(nodes.cluster.head_node), signal.SIGKILL)
            run.go_on()
            said = run.ended(code=1)
            assert "cannot be reached any more" in said and "worked one by one" not in said
            run.note_kill()
            nodes.kill()
        with two_nodes() as nodes:
            run.runs.address = nodes.address
            run.start()
            run.ended()
            nodes.check_empty()
        run.check(whole)


def test_a_run_whose_head_dies_goes_on_for_the_minute_that_ray_waits(tmp_path, package, whole):
    with watched(tmp_path, package, "") as run, two_nodes() as nodes:
        run.runs.address = nodes.address
        run.hold(QUESTIONS - 8)  # the rest takes less than the minute
        run.start()
        run.wait_for(QUESTIONS - 8)
        nodes.kill_head()
        run.go_on()
        run.ended()
        run.check(whole)
