"""Kills at random on a cluster of two nodes: the same scores, and no recorded answer paid twice.

Each kind of kill comes HARNESS_SOAK_KILLS times, or 20 times.

    make soak SOAK=ray_kills.py

A failure names the number of its draw, which repeats the moments as nearly as a machine can.
"""

from __future__ import annotations

import os
import signal
import time
from random import Random

import pytest
from builders.clusters import with_signal
from builders.ray_faults import QUESTIONS, stopped, two_nodes, watched, whole_scores
from builders.toys import toys_installed

KILLS = int(os.environ.get("HARNESS_SOAK_KILLS", "20"))
KINDS = ("worker", "raylet", "worker stops", "driver")


def strike(kind, run, nodes, draw):
    """Kill something of a run; a driver that is killed is started again."""
    if kind == "driver":
        run.kill()
        nodes.check_empty()
        run.note_kill()
        run.start()
    elif kind == "raylet":
        nodes.kill_raylet()
        run.note_kill()
        nodes.mend()
    elif there := nodes.workers():
        worker = draw.choice(there)
        if kind == "worker stops":
            with stopped(worker):
                time.sleep(draw.random() * 5)
        else:
            with_signal(worker, signal.SIGKILL)
            run.note_kill()


@pytest.mark.timeout(3600)
def test_kills(tmp_path):
    with toys_installed(tmp_path / "site") as package, two_nodes() as nodes:
        whole = whole_scores(tmp_path / "whole", package)
        left = [kind for kind in KINDS for _ in range(KILLS)]
        Random("ray").shuffle(left)
        for number in range(len(left)):
            draw = Random(f"ray {number}")
            place = tmp_path / f"{number}"
            place.mkdir()
            with watched(place, package, nodes.address) as run:
                run.start()
                for kind in [left.pop() for _ in range(min(len(left), draw.randint(1, 3)))]:
                    run.wait_for(min(run.server.count + draw.randint(1, 40), QUESTIONS - 8))
                    time.sleep(draw.random() / 3)
                    strike(kind, run, nodes, draw)
                run.ended()
                run.check(whole)
                nodes.check_empty()
            if not left:
                break


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["head", "everything"])
def test_kills_that_end_the_cluster(tmp_path, kind):
    """The command ends by itself without a head; with everything, it is killed too."""
    with toys_installed(tmp_path / "site") as package:
        whole = whole_scores(tmp_path / "whole", package)
        for number in range(KILLS):
            place = tmp_path / f"{number}"
            place.mkdir()
            with watched(place, package, "") as run:
                with two_nodes() as nodes:
                    run.runs.address = nodes.address
                    run.start()
                    run.wait_for(Random(f"{kind} {number}").randint(1, QUESTIONS - 8))
                    if kind == "head":
                        nodes.kill_head()
                        run.note_kill()
                        run.process.communicate(timeout=90)
                    else:
                        run.process.kill()
                        nodes.kill()
                        run.kill()
                        run.note_kill()
                if run.process.returncode != 0:  # without a head, a short rest ends well
                    with two_nodes() as nodes:
                        run.runs.address = nodes.address
                        run.start()
                        run.ended()
                        nodes.check_empty()
                run.check(whole)
