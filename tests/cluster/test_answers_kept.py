"""What the run was answered is not asked again, though no store has it and no record is made."""

from __future__ import annotations

import signal
from collections import Counter

import pytest
from builders.clusters import living_workers, with_signal
from builders.processes import wait_until
from builders.toys import current_lines, outcomes

from harness.testing import faults


def asked(server):
    return [body["messages"][-1]["content"] for body in server.requests]


@pytest.mark.parametrize("killed", ["workers", "driver"])
def test_an_item_whose_worker_is_killed_between_its_questions_asks_none_again(runs, serve, killed):
    def second(request):
        text = request.body["messages"][-1]["content"]
        return faults.SILENCE if text.startswith("say twice") else None

    server = serve(faults=second)
    words = [f"twice {number}" for number in range(12)]
    runs.words(*words)
    process = runs.start("ray", "--no_store")
    wait_until(lambda: server.count == 24 and len(runs.kept()) == 12)
    server.faults = ()
    if killed == "driver":
        process.kill()
        process.communicate()
        process = runs.start("ray", "--no_store")
    else:
        for worker in living_workers():
            with_signal(worker, signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    counted = Counter(asked(server))
    assert {text: counted[text] for text in counted if text.startswith("say first")} == {
        f"say first {word}": 1 for word in words
    }
    lines = current_lines(runs.only, "say")
    assert outcomes(lines) == {f"{number:03}": word for number, word in enumerate(words)}
    # What it cost is in the record of the item that asked, as if nothing had happened.
    assert {line["calls"][0].get("source", "model") for line in lines} == {"model"}


@pytest.mark.parametrize(
    ("first", "then"), [("local", "local"), ("local", "ray"), ("ray", "local"), ("ray", "ray")]
)
def test_what_was_answered_before_the_run_was_stopped_is_not_asked_for_other_items(
    runs, serve, first, then
):
    server = serve()
    words = [f"k{number % 201} {number}" for number in range(400)]  # a kind is of two users
    runs.words(*words)
    begun = runs.run(first, max_calls=400 + 40, concurrency=4, store=None, use_store=False)
    assert begun.status == "failed" and "calls used" in str(begun.errors[0])
    judged = {line["item"]["word"] for line in current_lines(begun.folder, "judge")}
    kinds = [{word.partition(" ")[0] for word in some} for some in (judged, {*words} - judged)]
    assert kinds[0] & kinds[1]  # which are answered, and are to be asked for other items
    before = asked(server)
    done = runs.run(then, concurrency=4, store=None, use_store=False)
    assert (done.status, done.folder) == ("done", begun.folder)
    assert not {*before} & {*asked(server)[len(before) :]}
    assert len({*asked(server)}) == 400 + 201
