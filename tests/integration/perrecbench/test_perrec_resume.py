"""PerRecBench killed in the midst of comparing, and run in any order: always the same result."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys

from harness.testing import faults

TASK = "perrec_hard_pairwise"


def scores(perrec, done) -> dict[str, bytes]:
    """The scores of each task of a run, as its folder holds them."""
    return {
        file.parent.name: file.read_bytes()
        for file in sorted(perrec.folder(done).glob("*/scores.jsonl"))
    }


def kept_keys(perrec) -> set[str]:
    """The keys of the answers that the store holds."""
    file = perrec.harness.folder / "cache" / "calls.sqlite"
    if not file.exists():
        return set()
    with sqlite3.connect(file) as store:
        return {key.hex() for (key,) in store.execute("SELECT key FROM replies")}


def test_kill_9_in_the_midst_of_comparing_loses_no_kept_answer_and_changes_no_score(
    perrec, serve, answers, true
):
    def silent(asked):
        return faults.SILENCE if asked.number >= 25 else None

    server = serve(answer=answers.true, faults=silent)
    perrec.url, harness = server.url, perrec.harness
    arguments = [sys.executable, "-m", "harness", *perrec.arguments(TASK)]
    process = subprocess.Popen(
        [*arguments, "--concurrency", "4"], cwd=harness.folder, env=harness.environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    harness.wait_until(lambda: server.count >= 27 and len(kept_keys(perrec)) >= 10)
    harness.kill(process)
    assert process.returncode == -9
    kept, before = kept_keys(perrec), server.count
    server.faults = ()

    done = perrec.run(TASK).ok()
    assert len(harness.folders) == 1
    calls = {
        call["key"]: call["messages"][-1]["content"]
        for one in perrec.records(done, TASK, "compare")
        for call in one["calls"]
    }
    asked = [body["messages"][-1]["content"] for body in server.requests[before:]]
    assert len(asked) == len(set(asked)) > 0
    assert kept <= calls.keys()
    assert {calls[key] for key in kept}.isdisjoint(asked)
    undisturbed, whole, _ = true
    assert scores(perrec, done)[TASK] == scores(undisturbed, whole)[TASK]


def test_neither_the_order_of_answers_nor_the_seed_of_hashes_changes_anything(
    perrec, serve, answers
):
    def uneven(asked):
        return faults.slow(asked.number * 7 % 5 / 200)

    def mistaken(body):
        # Wrong about every third thing, and unsure about another, so that ties and doubts occur.
        kind = int(answers.question(body).title.split()[1]) % 3
        if kind == 2 and answers.question(body).stage == "compare":
            return "[User A]"
        return (answers.true, answers.reversed, answers.true)[kind](body)

    server = serve(answer=mistaken, faults=uneven)
    perrec.url, harness = server.url, perrec.harness
    found = []
    for hash_seed, concurrency in (("0", "1"), ("1", "32")):
        done = harness.command(
            [
                sys.executable, "-m", "harness", *perrec.arguments("perrec_medium"), "--no_store",
                "--concurrency", concurrency, "--output_path", hash_seed,
            ],
            PYTHONHASHSEED=hash_seed,
        ).ok()  # fmt: skip
        found.append(scores(perrec, done))
    one, other = found
    assert len(one) == 3 and one == other
    assert server.most_in_flight > 5
    taus = [
        json.loads(line)["values"]["ptc"] for line in one["perrec_medium_pairwise"].splitlines()
    ]
    assert sorted(taus) == [-1, -1, 0, 0, 1, 1]
