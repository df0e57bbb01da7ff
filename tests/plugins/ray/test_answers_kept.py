"""What the run was answered is not asked again, though no store has it and no record is made."""

from __future__ import annotations

import signal
from collections import Counter

import pytest
from builders.clusters import living_workers, with_signal
from builders.processes import wait_until
from builders.toys import asked, current_lines, outcomes

from harness.testing import faults


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
