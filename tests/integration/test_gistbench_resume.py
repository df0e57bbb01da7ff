"""GISTBench killed in the midst of mapping: the same result, and no kept answer is asked again."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from harness.testing import faults

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


def test_kill_9_in_the_midst_of_mapping_loses_no_kept_answer_and_changes_no_score(gist, serve):
    def silent(_):
        return faults.SILENCE if gist.by_stage(server).get("taxonomy", 0) >= 3 else None

    server = serve(gist, faults=silent)
    process = gist.start("--concurrency", "2", *ONE_BY_ONE)
    gist.wait_until(lambda: gist.by_stage(server).get("taxonomy", 0) >= 3 and kept_keys(gist))
    gist.kill(process)
    kept, before = kept_keys(gist), server.count
    assert process.returncode == -9
    server.faults = ()

    gist.run("--concurrency", "32", *ONE_BY_ONE).ok()
    (run,), after = gist.folders, server.count
    done = gist.run("--output_path", "whole", "--no_store", *ONE_BY_ONE).ok()
    whole = gist.folder / done.json["folder"]
    # A key that no record names was not needed again: what it gave is remembered elsewhere too.
    prompts = prompts_of(run)
    asked = [body["messages"][-1]["content"] for body in server.requests[before:after]]
    assert len(asked) == len(set(asked)) > 0
    assert {prompts[key] for key in kept if key in prompts}.isdisjoint(asked)
    assert scores(run) == scores(whole)
    for name in STAGES:
        mine, theirs = journal(run, name), journal(whole, name)
        assert mine.keys() == theirs.keys()
        assert all(mine[id]["item"] == theirs[id]["item"] for id in mine)
