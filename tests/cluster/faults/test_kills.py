"""Killed at random moments, a run comes to the same scores and pays for nothing twice."""

from __future__ import annotations

import signal
import time
from random import Random

from builders.clusters import with_signal
from builders.ray_faults import moments, two_nodes, watched


def test_killed_workers_are_replaced_and_their_items_asked_again(run, nodes, whole):
    draw = Random("workers")
    run.start()
    for moment in moments("workers"):
        run.wait_for(moment)
        run.wait_until(nodes.workers)
        with_signal(draw.choice(nodes.workers()), signal.SIGKILL)
        run.note_kill()
    run.ended()
    run.check(whole)
    nodes.check_empty()


def test_a_run_goes_on_when_the_raylets_of_nodes_are_killed(run, nodes, whole):
    run.start()
    for moment in moments("raylets"):
        run.wait_for(moment)
        nodes.kill_raylet()
        run.note_kill()
        nodes.mend()
    run.ended()
    run.check(whole)
    nodes.check_empty()


def test_a_killed_driver_leaves_no_process_and_the_same_command_goes_on(run, nodes, whole):
    for moment in moments("drivers"):
        run.start()
        run.wait_for(moment)
        time.sleep(Random(moment).random() / 5)
        run.kill()
        nodes.check_empty()
        run.note_kill()
    run.start()
    run.ended()
    run.check(whole)
    nodes.check_empty()


def test_when_everything_is_killed_the_same_command_goes_on_on_a_new_cluster(
    tmp_path, package, whole
):
    with watched(tmp_path, package, "") as run:
        for moment in [*moments("everything"), None]:
            with two_nodes() as nodes:
                run.runs.address = nodes.address
                run.start()
                if moment is None:
                    run.ended()
                    nodes.check_empty()
                else:
                    run.wait_for(moment)
                    run.process.kill()
                    nodes.kill()
                    run.kill()
                    nodes.check_empty()
                    run.note_kill()
        run.check(whole)
