"""Workers and drivers that die: others do what they left, and ask again only what was in flight."""

from __future__ import annotations

import signal
from collections import Counter
from contextlib import nullcontext

import pytest
from builders.clusters import ON_RAY, PATIENCE, living_workers, with_signal
from builders.processes import wait_until
from builders.ray_faults import raylet_of, scores_of, stopped
from builders.toys import asked, current_lines, outcomes

from harness.testing import faults

pytestmark = ON_RAY

WORDS = [f"w{number % 7} {number}" for number in range(20)]
PRICES = "".join(
    f'[prices."openai:{name}"]\ninput = 0\noutput = 1e6\n' for name in ("candidate", "referee")
)
ANY_ERRORS = {"errors": 1.0}


@pytest.mark.parametrize("killed", ["workers", "driver"])
def test_an_item_whose_worker_is_killed_between_its_questions_asks_none_again(runs, serve, killed):
    def second(request):
        text = request.body["messages"][-1]["content"]
        return faults.SILENCE if text.startswith("say twice") else None

    server = serve(faults=second)
    words = [f"twice {number}" for number in range(12)]
    runs.words(*words)
    process = runs.start("ray", "--reuse", "run")
    wait_until(lambda: server.count == 24 and runs.kept() == 12)
    server.faults = ()
    if killed == "driver":
        process.kill()
        process.communicate()
        process = runs.start("ray", "--reuse", "run")
    else:
        for worker in living_workers():
            with_signal(worker, signal.SIGKILL)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    counted = Counter(asked(server))
    assert {text: counted[text] for text in counted if text.startswith("say first")} == {
        f"say first {word}": 1 for word in words
    }
    lines = current_lines(runs.only, "say")
    assert outcomes(lines) == {f"{number:03}": word for number, word in enumerate(words)}
    # What it cost is in the record of the item that asked, as if nothing had happened.
    assert {line["calls"][0].get("source", "model") for line in lines} == {"model"}


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
    assert ("cannot be reached (its connection closed" in said) is (killed in {"worker", "raylet"})
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
    with (
        stopped(raylet_of(nodes.other)),
        stopped(worker) if "itself" in stops else nullcontext(),
    ):
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
    done = runs.run("ray", max_failures=ANY_ERRORS)
    assert done.status == "done", done.errors
    values = {f"{number:03}": word for number, word in enumerate(WORDS)}
    assert outcomes(current_lines(done.folder, "say")) == values | {"020": "worker_died"}
    broken = runs.records(done.folder, "say")["020"]["outcome"]
    assert broken["type"] == "broken" and "as it worked this one alone" in broken["detail"]
    assert [line for line in runs.problems if "those at work are worked one by one" in line]
    assert sum(text.startswith("say") for text in asked(server)) <= 20 + 4 * 16


def test_two_items_that_kill_their_workers_end_the_run(runs, serve):
    serve()
    runs.words("die 0", *WORDS[1:5], "die 5")  # of one user, and so in one shard
    (runs.package / "die").mkdir()
    done = runs.run("ray", workers=1, max_failures=ANY_ERRORS)
    assert (done.status, done.exit_code) == ("failed", 1)
    said = str(done.errors[0])
    assert "several items each end the worker that works them" in said and "2 items" in said
    (runs.package / "die").rmdir()
    done = runs.run("ray", max_failures=ANY_ERRORS)
    assert done.status == "done", done.errors
    assert outcomes(current_lines(done.folder, "say")) == {
        "000": "die 0", "005": "die 5", **{f"{n:03}": WORDS[n] for n in range(1, 5)}
    }  # fmt: skip


@pytest.mark.parametrize("killed", ["nothing", "workers"])
@pytest.mark.parametrize("unit", ["calls", "cost"])
def test_a_budget_is_never_passed(run, nodes, whole, unit, killed):
    """Each call costs 2 to 60, and before it is sent it may cost 64."""
    answer = run.server.answer
    run.server.answer = lambda body: f"{answer(body)} {'z ' * 54}".strip()
    (run.runs.folder / "prices.toml").write_text(PRICES)
    bound = {"calls": "100", "cost": "5600"}[unit]
    run.hold(16)
    run.start(f"--max_{unit}", bound, "--prices", "prices.toml")
    run.wait_for(16)
    for worker in nodes.workers() if killed == "workers" else ():
        with_signal(worker, signal.SIGKILL)
    run.go_on()
    said = run.ended(code=1)
    assert f"the budget of {'money' if unit == 'cost' else unit} is spent" in said
    assert ("of which workers held that died" in " ".join(said.split())) is (killed == "workers")
    if unit == "calls":
        sent = run.server.count + run.server.asked_if_thinking
        assert sent <= 100 if killed == "workers" else sent == 100
    else:
        assert sum(len(answer(one.body).split()) + 54 for one in run.server.asked) <= 5600
    nodes.check_empty()
    run.start()
    run.ended()
