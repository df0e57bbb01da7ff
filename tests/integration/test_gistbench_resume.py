"""GISTBench killed in each of its stages, and run in every order: always the same result."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from harness.testing import FaultyServer, faults

TASK = "gist_synthetic"
STAGES = ("predict", "verify", "taxonomy", "overlap", "specificity")
ONE_BY_ONE = ("--set", "interests_a_question=1")
"""Makes mapping a question an interest, so that a run can be killed in the midst of it."""


def scores(run: Path) -> bytes:
    """The scores of a run, as its folder holds them."""
    return (run / TASK / "scores.jsonl").read_bytes()


def journal(run: Path, stage: str) -> dict[str, dict]:
    """The records of a stage by their ids."""
    (file,) = (run / TASK).glob(f"?-{stage}.jsonl")
    return {one["id"]: one for one in map(json.loads, file.read_text().splitlines())}


def kept_keys(gist) -> set[str]:
    """The keys of the answers that the store or a journal holds; a torn last line holds none."""
    with sqlite3.connect(gist.folder / "cache" / "calls.sqlite") as store:
        keys = {key.hex() for (key,) in store.execute("SELECT key FROM replies")}
    for file in gist.folders[0].glob(f"{TASK}/?-*.jsonl"):
        for line in file.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                keys |= {call["key"] for call in json.loads(line)["calls"]}
    return keys


def prompts_of(run: Path) -> dict[str, str]:
    """What the models of a run were asked, by the key of the call."""
    return {
        call["key"]: call["messages"][-1]["content"]
        for stage in STAGES
        for record in journal(run, stage).values()
        for call in record["calls"]
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory, gists):
    """The folder of a run that nothing disturbed."""
    gist = gists(tmp_path_factory.mktemp("whole"))
    with FaultyServer(gist.answer, models=("alpha", "judge")) as server:
        gist.url = server.url
        gist.run(*ONE_BY_ONE).ok()
        assert set(server.counts.values()) == {1}
        return gist.folders[0]


@pytest.mark.parametrize("stage", STAGES)
def test_kill_9_in_any_stage_loses_no_kept_answer_and_changes_no_score(gist, serve, whole, stage):
    def silent(_):
        return faults.SILENCE if gist.by_stage(server).get(stage, 0) >= 3 else None

    server = serve(gist, faults=silent)
    process = gist.start("--concurrency", "2", *ONE_BY_ONE)
    gist.wait_until(lambda: gist.by_stage(server).get(stage, 0) >= 3 and kept_keys(gist))
    gist.kill(process)
    kept, before = kept_keys(gist), server.count
    assert process.returncode == -9
    server.faults = ()

    gist.run("--concurrency", "32", *ONE_BY_ONE).ok()
    (run,) = gist.folders
    # A key that no record names was not needed again: what it gave is remembered elsewhere too.
    prompts = prompts_of(run)
    asked = [body["messages"][-1]["content"] for body in server.requests[before:]]
    assert len(asked) == len(set(asked)) > 0
    assert {prompts[key] for key in kept if key in prompts}.isdisjoint(asked)
    assert scores(run) == scores(whole)
    for name in STAGES:
        mine, theirs = journal(run, name), journal(whole, name)
        assert mine.keys() == theirs.keys()
        assert all(mine[id]["item"] == theirs[id]["item"] for id in mine)


@pytest.mark.parametrize("overlap", ["users", "interests"])
def test_neither_the_order_of_answers_nor_the_seed_of_hashes_changes_anything(gist, serve, overlap):
    def uneven(asked):
        return faults.slow(asked.number * 7 % 5 / 200)

    server = serve(gist, faults=uneven)
    runs = []
    for hash_seed, concurrency in (("1", "1"), ("2", "32")):
        done = gist.command(
            gist.arguments(
                "--concurrency", concurrency, "--no_store", "--output_path", hash_seed,
                "--set", f"overlap={overlap}",
            ),
            PYTHONHASHSEED=hash_seed,
        ).ok()  # fmt: skip
        runs.append(gist.folder / done.json["folder"])
    one, other = runs
    assert len(journal(one, "specificity")) > gist.PEOPLE
    assert scores(one) == scores(other)
    for stage in STAGES:
        first, second = journal(one, stage), journal(other, stage)
        assert first.keys() == second.keys()
        for id in first:
            for part in ("item", "outcome"):
                assert first[id][part] == second[id][part]
    assert server.most_in_flight > 5


def test_another_seed_draws_other_test_sets_for_the_same_interests(gist, serve):
    serve(gist)
    found = []
    for seed in ("0", "1"):
        done = gist.run("--seed", seed, "--output_path", seed).ok()
        found.append(journal(gist.folder / done.json["folder"], "specificity"))
    first, second = found
    assert first.keys() == second.keys()
    assert all(first[id]["item"]["objects"] != second[id]["item"]["objects"] for id in first)
