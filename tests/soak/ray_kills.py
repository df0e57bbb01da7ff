"""Kills at random on a cluster of two nodes: the same scores, and no recorded answer paid twice.

Each kind of kill comes HARNESS_SOAK_KILLS times, or 20 times.

    make soak SOAK=ray_kills.py
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections import Counter
from random import Random

import pytest
from builders.clusters import with_signal
from builders.ray_faults import QUESTIONS, stopped, two_nodes, watched, whole_scores
from builders.toys import toys_installed

KILLS = int(os.environ.get("HARNESS_SOAK_KILLS", "20"))
KINDS = ("worker", "raylet", "worker stops", "driver")


def strike(kind, run, nodes, draw):
    """Kill something of a run, and say whether that had not ended; a driver is started again."""
    there = nodes.workers() if kind.startswith("worker") else ["the command"]
    if run.process.poll() is not None or not there:
        return False
    if kind == "driver":
        run.kill()
        nodes.check_empty()
        run.note_kill()
        run.start()
    elif kind == "raylet":
        nodes.kill_raylet()
        run.note_kill()
        nodes.mend()
    elif kind == "worker stops":
        with stopped(draw.choice(there)):
            time.sleep(draw.random() * 5)
    else:
        with_signal(draw.choice(there), signal.SIGKILL)
        run.note_kill()
    return True


@pytest.mark.timeout(3600)
def test_kills(tmp_path):
    with toys_installed(tmp_path / "site") as package, two_nodes() as nodes:
        whole = whole_scores(tmp_path / "whole", package)
        left = [kind for kind in KINDS for _ in range(KILLS)]
        Random("ray").shuffle(left)
        struck, asked = Counter(), []
        for number in itertools.count():
            draw = Random(f"ray {number}")
            place = tmp_path / f"{number}"
            place.mkdir()
            with watched(place, package, nodes.address) as run:
                run.start()
                for kind in [left.pop() for _ in range(min(len(left), draw.randint(1, 3)))]:
                    run.wait_for(min(run.server.count + draw.randint(1, 40), QUESTIONS - 8))
                    time.sleep(draw.random() / 3)
                    if strike(kind, run, nodes, draw):
                        struck[kind] += 1
                    else:
                        left.insert(0, kind)
                run.ended()
                run.check(whole)
                nodes.check_empty()
                asked.append(run.server.count)
            if not left:
                break
    tell(struck, asked)


def tell(struck, asked):
    """Say what was killed and what it cost; that nothing was lost is what the test holds."""
    kills = ", ".join(f"{kind} {many}" for kind, many in sorted(struck.items()))
    least = len(asked) * QUESTIONS
    print(f"killed: {kills}; {len(asked)} runs whole by {sum(asked)} questions, {least} at least")


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["head", "everything"])
def test_kills_that_end_the_cluster(tmp_path, kind):
    """The command ends by itself without a head; with everything, it is killed too."""
    with toys_installed(tmp_path / "site") as package:
        whole, asked = whole_scores(tmp_path / "whole", package), []
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
                asked.append(run.server.count)
    tell({kind: KILLS}, asked)
