"""UserSumBench killed in the midst of its loop, and asked in batches."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from hashlib import sha256

import pytest

from harness.testing import faults

TASK = "usersum_movielens_hc"
DRINK = re.compile(r"(?:tea|rum)\w{8}")


def answer(body):
    """Each segment's first summary names tea, which the verifier corrects to rum."""
    prompt = body["messages"][-1]["content"]
    if "Evaluate the relevance of a summary" in prompt:
        return "consistent"
    if "List its key entities" in prompt:
        return DRINK.findall(prompt)[-1]
    if 'create "Question-Answer Pairs"' in prompt:
        return f'[Question#1: "Which?", Answer#1: "{DRINK.findall(prompt)[-1]}"]'
    if "judge if each question-answer pair" in prompt:
        status = "inconsistent" if 'Answer#1: "tea' in prompt else "consistent"
        return f'[Status#1: "{status}", ReferenceAnswer#1: "rum"]'
    if "with its letter" in prompt:
        return "A"
    drink = "rum" if "Previous Summary" in prompt else "tea"
    return f"The user likes {drink}{sha256(prompt.encode()).hexdigest()[:8]}."


@pytest.fixture
def arguments(harness):
    def make(task=TASK, *more):
        model = f"base_url={harness.url},model=m"
        return [
            "--model", "openai", "--model_args", model, "--tasks", task, "--data", "sample",
            "--limit", "3", "--json", *more,
        ]  # fmt: skip

    return make


def kept_keys(harness):
    """The keys of the answers that the store holds."""
    file = harness.folder / "cache" / "calls.sqlite"
    if not file.exists():
        return set()
    with sqlite3.connect(file) as store:
        return {key.hex() for (key,) in store.execute("SELECT key FROM replies")}


def calls_of(harness, folder):
    """The calls of the loop of a run by their keys."""
    (journal,) = (harness.folder / folder / TASK).glob("?-segment.jsonl")
    records = map(json.loads, journal.read_text().splitlines())
    return {call["key"]: call for record in records for call in record["calls"]}


def test_kill_9_within_the_loop_asks_nothing_twice_and_changes_no_score(harness, serve, arguments):
    def silent(asked):
        return faults.SILENCE if asked.number >= 25 else None

    server = serve(harness, answer=answer, faults=silent)
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *arguments(TASK, "--concurrency", "3")],
        cwd=harness.folder, env=harness.environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    harness.wait_until(lambda: server.count >= 26 and len(kept_keys(harness)) >= 10)
    harness.kill(process)
    assert process.returncode == -9
    kept, before = kept_keys(harness), server.count
    server.faults = ()

    done = harness.here(*arguments()).ok()
    (folder,) = harness.folders
    calls = calls_of(harness, folder)
    asked = [
        (body["messages"][-1]["content"], body.get("seed")) for body in server.requests[before:]
    ]
    assert len(asked) == len(set(asked)) > 0
    answered = {calls[key]["messages"][-1]["content"] for key in kept & calls.keys()}
    assert len(answered) >= 10
    assert answered.isdisjoint(text for text, _ in asked)

    whole = harness.here(*arguments(TASK, "--output_path", "whole", "--no_store")).ok()
    assert done.summary(TASK)["metrics"] == whole.summary(TASK)["metrics"]
    assert done.summary(TASK)["counts"] == whole.summary(TASK)["counts"]
    counts = done.summary(TASK)["counts"]
    assert counts["segments flagged and fixed"] == counts["segments"] >= 3


def test_two_models_are_compared_each_with_itself_as_its_predictor(harness, serve):
    serve(harness, answer=answer)
    task = "usersum_movielens"
    for model, more in (("one", ()), ("two", ()), ("apart", ("--role", "predictor=baseline"))):
        args = f"base_url={harness.url},model={model}"
        harness.here(
            "--model", "openai", "--model_args", args, "--tasks", task, "--data", "sample",
            "--limit", "3", "--max_failures", "1", "--name", model, *more,
        ).ok()  # fmt: skip
    said = harness.here("compare", "one", "two", "apart", "--gate", f"{task}.qm>-1.5",
                        "--against", "two")  # fmt: skip
    head, *lines = said.out.splitlines()
    assert head == "2 runs on the units that all of them share; predictor: the candidate"
    assert [line.split()[0] for line in lines[3:5]] == ["one", "two"]
    assert "left out: apart: predictor's name default against the candidate" in lines
    alone = harness.here("compare", "one", "two", "--gate", f"{task}.qm>-1.5").ok()
    assert "holds" in alone.out
    nothing = harness.here("compare", "one", "apart")
    assert nothing.code == 1
    assert "nothing was compared" in nothing.err
    assert harness.here("compare", "one", "apart", "--force").code == 0


def test_summaries_are_asked_in_batches_and_the_loop_is_not(harness, arguments):
    harness.url = "http://127.0.0.1:9/v1"
    written = harness.here(
        "batch", "write", *arguments("usersum_movielens", "--out", "one.jsonl")
    ).ok()
    assert written.json["requests"][0]["stages"] == {"usersum_movielens/summarise": 3}
    lines = (harness.folder / "one.jsonl").read_text().splitlines()
    assert len(lines) == 3

    both = "usersum_movielens,usersum_movielens_other"
    shared = harness.here("batch", "write", *arguments(both, "--out", "both.jsonl")).ok()
    assert shared.json["requests"][0]["same"] == {"usersum_movielens_other/summarise": 3}

    said = harness.here("batch", "write", *arguments(TASK, "--out", "two.jsonl"))
    assert said.code == 1
    assert "the questions of this stage cannot be written to a file" in said.err
    assert "up to 20 questions per item, each of which may depend on earlier answers" in said.err
