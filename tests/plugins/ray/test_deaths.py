"""Workers, drivers, nodes and engines that die: others do what they left, and little twice."""

from __future__ import annotations

import signal
from contextlib import nullcontext

import pytest
from builders.clusters import ON_RAY, with_signal
from builders.ray_faults import QUESTIONS, raylet_of, scores_of, stopped, two_nodes, watched
from builders.toys import asked, current_lines, outcomes

pytestmark = ON_RAY
WORDS = [f"w{number % 7} {number}" for number in range(20)]


@pytest.mark.parametrize("killed", ["worker", "raylet", "driver", "driver, then local"])
def test_what_is_recorded_is_not_asked_again(run, nodes, whole, killed):
    run.hold(40)
    run.start()
    run.wait_for(40)
    run.wait_until(run.on_disk)
    if killed == "worker":
        with_signal(nodes.workers()[0], signal.SIGKILL)
        run.note_kill()
    elif killed == "raylet":
        nodes.kill_raylet()
        run.note_kill()
    else:
        run.kill()
        nodes.check_empty()
        run.note_kill()
        run.start(executor="local" if "local" in killed else "ray")
    run.go_on()
    said = run.ended()
    assert ("cannot be reached (" in said) is (killed in {"worker", "raylet"})
    assert run.kills[0][1]
    run.check(whole)
    nodes.check_empty()


@pytest.mark.parametrize("stops", ["its node", "its node and itself", "its node, with a budget"])
def test_a_worker_that_is_cut_off_and_lives_on_does_no_harm(run, nodes, whole, stops):
    """Its node is given up, and its shards are worked elsewhere; then it goes on as before."""
    run.hold(16)
    run.start(*(["--max_calls", "320"] if "budget" in stops else ()))
    run.wait_for(16)
    run.wait_until(lambda: nodes.workers_of(nodes.other))
    [worker] = nodes.workers_of(nodes.other)
    with stopped(raylet_of(nodes.other)), stopped(worker) if "itself" in stops else nullcontext():
        run.wait_until(lambda: len(nodes.workers()) == 3)
        run.hold(32)
        run.wait_for(32)
        assert worker in nodes.workers()
    run.go_on()
    run.ended()
    assert scores_of(run.folder) == whole
    assert run.server.count + run.server.asked_if_thinking <= 320
    nodes.check_empty()


def test_an_item_that_kills_its_worker_is_broken_and_others_are_whole(runs, serve):
    server = serve()
    runs.words(*WORDS, "die 20")
    (runs.package / "die").mkdir()
    done = runs.run("ray", max_failures={"errors": 1.0})
    assert done.status == "done", done.errors
    values = {f"{number:03}": word for number, word in enumerate(WORDS)}
    assert outcomes(current_lines(done.folder, "say")) == values | {"020": "worker_died"}
    broken = runs.records(done.folder, "say")["020"]["outcome"]
    assert broken["type"] == "broken" and "as it worked this one alone" in broken["detail"]
    assert [line for line in runs.problems if "those at work are worked one by one" in line]
    assert sum(text.startswith("say") for text in asked(server)) <= 20 + 4 * 16


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
