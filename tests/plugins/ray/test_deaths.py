"""Workers that die: others do what they left, and ask again only what was in flight."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections import Counter

import pytest
from builders.clusters import NODE, living_actors, living_workers, with_signal
from builders.processes import lives, wait_until
from builders.toys import asked, current_lines, outcomes
from ray.exceptions import ActorUnavailableError, RayError

from harness.base.errors import ModelError
from harness.pipeline.executors import ray as ray_executor
from harness.pipeline.executors import ray_keeper, ray_workers
from harness.pipeline.executors.ray_keeper import patiently, reason_of
from harness.pipeline.executors.ray_workers import Workers

WORDS = [f"w{number % 7} {number}" for number in range(40)]


def process_of(actor):
    import ray

    return ray._private.state.actors()[actor._actor_id.hex()]["Pid"]


def test_questions_of_an_owner_that_dies_are_asked_by_another_worker(runs, serve):
    """A worker is killed as questions are in flight that it owns; both wait for their answers."""
    killed = []

    def judging(_):
        judged = sum(one.startswith("judge") for one in asked(server))
        if judged == 6 and not killed:
            killed.append(min(living_workers()))
            with_signal(killed[0], signal.SIGKILL)

    server = serve(faults=judging, latency=0.5)
    runs.words(*WORDS)
    done = runs.run("ray", workers=2)
    assert killed and done.status == "done", done.errors
    assert any("died" in line for line in runs.problems)
    counted = Counter(asked(server))
    assert set(counted) == {f"say {word}" for word in WORDS} | {f"judge w{n}" for n in range(7)}
    assert all(counted[f"say {word}"] == 1 for word in WORDS)
    assert all(counted[f"judge w{number}"] <= 2 for number in range(7))
    held = outcomes(current_lines(done.folder, "judge"))
    kept = {(word.partition(" ")[0], held[f"{n:03}"]) for n, word in enumerate(WORDS)}
    assert len(kept) == 7  # the memo has one value for each, whichever worker wrote it


def test_a_worker_that_hangs_is_killed_and_replaced(runs, serve, monkeypatch):
    monkeypatch.setattr(ray_executor, "SILENT_SECONDS", 3.0)
    hung = []

    def hang(asked):
        if asked.number == 12:
            hung.append(min(living_workers()))
            with_signal(hung[0], signal.SIGSTOP)

    server = serve(faults=hang, latency=0.3)
    runs.words(*WORDS)
    done = runs.run("ray", workers=2, concurrency=6)
    assert done.status == "done", done.errors
    assert [line for line in runs.problems if "has not answered for 3 s" in line]
    wait_until(lambda: not lives(hung[0]))
    assert outcomes(current_lines(done.folder, "say")) == {
        f"{number:03}": word for number, word in enumerate(WORDS)
    }
    assert sum(count - 1 for count in Counter(asked(server)).values()) <= 6


@pytest.mark.parametrize("hung", ["one of before", "the new one"])
def test_a_worker_that_hangs_as_another_one_comes_is_killed_and_replaced(
    runs, serve, monkeypatch, hung
):
    introduce = Workers._introduce
    stopped = []

    async def hangs(workers, name, actor):
        if workers._living and not stopped:
            monkeypatch.setattr(ray_executor, "SILENT_SECONDS", 3.0)
            monkeypatch.setattr(ray_workers, "BEGIN_SECONDS", 3.0)
            stopped.append(actor if hung == "the new one" else next(iter(workers._living.values())))
            with_signal(process_of(stopped[0]), signal.SIGSTOP)
        await introduce(workers, name, actor)
        monkeypatch.setattr(ray_workers, "BEGIN_SECONDS", 600.0)

    monkeypatch.setattr(Workers, "_introduce", hangs)
    server = serve()
    runs.words(*WORDS[:10])
    done = runs.run("ray", workers=2)
    assert done.status == "done", done.errors
    assert stopped and [line for line in runs.problems if "died" in line]
    assert len(runs.records(done.folder, "say")) == 10
    assert max(Counter(asked(server)).values()) == 1


def test_a_worker_that_is_not_introduced_any_more_is_killed(runs, serve, monkeypatch):
    """The run ends while one worker waits for the turn of another."""

    async def fails(workers, name, actor):
        await asyncio.to_thread(wait_until, lambda: len(living_workers()) == 2)
        await asyncio.sleep(3.0)
        raise ModelError("no")

    opened = []  # Ray itself ends an actor that nobody knows any more
    monkeypatch.setattr(Workers, "_introduce", fails)
    new = Workers._new
    monkeypatch.setattr(Workers, "_new", lambda self: opened.append(new(self)) or opened[-1])
    serve()
    runs.words("w 1")
    done = runs.run("ray", workers=2)
    assert str(done.errors[0]).startswith("no") and len(opened) == 2
    wait_until(lambda: not living_workers())


def test_a_place_in_which_every_worker_dies_ends_the_run(runs, serve):
    serve()
    runs.words("die 1")
    broken = runs.package / "die"
    broken.mkdir()  # which stays: every worker dies
    try:
        done = runs.run("ray", workers=1)
    finally:
        broken.rmdir()
    assert done.status == "failed"
    assert "die before they have worked any item" in str(done.errors[0])


def test_a_node_that_is_lost_with_its_worker_costs_what_was_in_flight(runs, serve, cluster):
    node = cluster.add_node(**NODE)
    cluster.wait_for_nodes()
    losing = threading.Thread(
        target=lambda: cluster.remove_node(node, allow_graceful=False), daemon=True
    )

    def lose(asked):
        if asked.number == 12:
            losing.start()

    server = serve(faults=lose, latency=0.3)
    runs.words(*WORDS)
    done = runs.run("ray", workers=None, concurrency=6)
    losing.join(30)
    assert done.status == "done", done.errors
    assert any("died" in line for line in runs.problems)
    assert outcomes(current_lines(done.folder, "say")) == {
        f"{number:03}": word for number, word in enumerate(WORDS)
    }
    counted = Counter(asked(server))
    assert sum(count - 1 for count in counted.values()) <= 6  # as many as were in flight


@pytest.mark.parametrize("then", ["local", "ray"])
def test_a_driver_that_is_killed_leaves_a_run_that_either_executor_finishes(runs, serve, then):
    server = serve(latency=0.1)
    runs.words(*WORDS)
    process = runs.start("ray", "--concurrency", "4")
    wait_until(lambda: server.count >= 16)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = runs.run(then, concurrency=4)
    assert done.status == "done", done.errors
    assert outcomes(current_lines(done.folder, "say")) == {
        f"{number:03}": word for number, word in enumerate(WORDS)
    }
    counted = Counter(asked(server))
    assert set(counted) == {f"say {word}" for word in WORDS} | {f"judge w{n}" for n in range(7)}
    # Workers live on for a moment; what they were answered is in the store.
    assert sum(count - 1 for count in counted.values()) <= 8
    assert len({one.name for one in runs.place.iterdir() if one.is_dir()}) == 1


def test_why_a_worker_died_is_a_line():
    account = (
        "The actor died unexpectedly before finishing this task.\n\tpid: 7\nThe actor is dead "
        "because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: "
        "Worker unexpectedly exits with a connection error code 2. End of file. Some common causes"
    )
    killed = "its process was killed, as by a node without memory to spare, or crashed"
    assert reason_of(RayError(account)) == killed
    lost = "The actor is dead because its node has died.\nNode Id: 7"
    assert reason_of(RayError(lost)) == "its node has died. Node Id: 7"
    failed = "The actor died because of an error raised in its creation task, ray::HarnessWorker"
    assert (
        reason_of(RayError(failed)) == "of an error raised in its creation task, ray::HarnessWorker"
    )
    assert reason_of(RayError("many words " * 40)).endswith("many words …")


def test_a_worker_that_gets_no_more_of_the_budget_is_replaced_and_breaks_no_item(
    runs, serve, monkeypatch
):
    """As after a partition: the cluster has given it up, and it asks on."""
    introduce = Workers._introduce

    async def given_up(workers, name, actor):
        await introduce(workers, name, actor)
        if name == "1.1":
            await workers._purse.lost.remote(name)

    monkeypatch.setattr(Workers, "_introduce", given_up)
    server = serve(latency=0.02)
    runs.words(*WORDS)
    done = runs.run("ray", max_calls=170)
    assert done.status == "done", done.errors
    (line,) = [line for line in runs.problems if "died" in line]
    assert line == (
        "worker 1.1 died (the worker was given up, as it did not answer); "
        "another one takes its place"
    )
    assert outcomes(current_lines(done.folder, "say")) == {
        f"{number:03}": word for number, word in enumerate(WORDS)
    }
    assert server.count == 40 + 7


def test_a_purse_that_dies_ends_the_run_and_the_same_command_goes_on(runs, serve):
    server = serve(latency=0.1)
    runs.words(*(f"w{number % 7} {number}" for number in range(150)))
    process = runs.start("ray", "--max_calls", "1000", "--concurrency", "4")
    wait_until(lambda: server.count >= 16)
    [purse] = living_actors("HarnessPurse")
    with_signal(purse, signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1, said
    assert "the process that divides the budget for the workers cannot be reached" in said
    assert "repeat the same command: it continues where it stopped" in said
    lines = current_lines(runs.only, "say")
    assert 0 < len(lines) < 150 and {line["outcome"]["type"] for line in lines} == {"done"}
    done = runs.run("ray", max_calls=1000, concurrency=4)
    assert done.status == "done" and done.folder == runs.only, done.errors
    assert len(current_lines(runs.only, "say")) == 150


async def test_a_question_to_an_actor_is_repeated_while_it_may_live(monkeypatch):
    asked = []

    async def ask():
        asked.append(True)
        if len(asked) < 3:
            raise ActorUnavailableError("for now", None)
        return "here"

    assert await patiently(ask) == "here" and len(asked) == 3
    monkeypatch.setattr(ray_keeper, "PATIENCE_SECONDS", 0.0)
    asked.clear()
    with pytest.raises(ActorUnavailableError):
        await patiently(ask)
