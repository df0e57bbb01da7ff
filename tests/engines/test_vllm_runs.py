"""Whole runs on real engines: one after the other, killed and gone on with, random answers."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from harness.cli.main import main

from .conftest import WHOLE_PROMPTS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engine"), pytest.mark.timeout(2400)]
PEOPLE = 40
FEW = {"max_num_seqs": "2"}
"""Two requests at a time, so that a stage lasts long enough to be disturbed."""

UP = "Application startup complete"
"""What the server writes when it is up."""

TIME = re.compile(r"\b\d\d-\d\d \d\d:\d\d:\d\d\b")
"""When it wrote a line."""


def test_candidate_and_judge_run_in_two_engines_one_after_the_other(command):
    judge = f"vllm:{command.spec(command.checkpoints.judge)}"
    done = command.run(judge=judge)
    assert done.code == 0, done.err
    named = [call for one in command.records("name") for call in one["calls"]]
    whole = [call for call in named if call["finish"] == "stop"]
    use = done.summary()["stages"]["name"]["roles"]["candidate"]
    assert (use["asked_schema"], use["met_schema"]) == (len(named), len(whole))
    assert len(whole) > PEOPLE / 2
    judged = [call for one in command.records("support") for call in one["calls"]]
    assert len(judged) > 0
    assert {call["text"] for call in judged} == {"1"}
    assert command.engine_processes() == {}
    logs = sorted((command.run_folder / "engines").iterdir())
    assert [log.name for log in logs] == ["vllm-tiny-candidate.log", "vllm-tiny-judge.log"]
    first, second = (log.read_text() for log in logs)
    assert (first.count(UP), second.count(UP)) == (1, 1)
    assert TIME.findall(first)[-1] <= TIME.findall(second)[0]


def test_candidate_and_judge_of_the_same_weights_share_one_engine(command):
    """The judge's spec says less of how the engine opens, and nothing else of what it answers."""
    shared = {**command.engine_args, "pretrained": str(command.checkpoints.candidate)}
    del shared["enforce_eager"]
    judge = "vllm:" + ",".join(f"{name}={value}" for name, value in shared.items())
    done = command.run("--allow_self_judging", "--limit", "8", judge=judge)
    # A judge of random weights may give no verdict that can be read.
    assert done.code in (0, 3), done.err
    assert sum(len(one["calls"]) for one in command.records("support")) > 0
    (log,) = (command.run_folder / "engines").iterdir()
    assert log.read_text().count(UP) == 1


def test_kill_9_of_the_harness_leaves_nothing_and_the_same_command_goes_on(command, wait_until):
    before = set(Path("/dev/shm").iterdir())
    process = command.start(**FEW)
    wait_until(lambda: len(command.records("name")) >= 4 or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    assert command.server() is not None
    process.kill()
    process.communicate()
    wait_until(lambda: command.engine_processes() == {}, seconds=20)
    assert set(Path("/dev/shm").iterdir()) - before == set()

    kept = command.records("name")
    assert 4 <= len(kept) < PEOPLE
    done = command.run(**FEW)
    assert done.code == 0, done.err
    assert command.records("name")[: len(kept)] == kept
    assert len(command.records("name")) == PEOPLE
    assert [one["status"] for one in command.manifest()["sessions"]] == ["running", "done"]


def test_a_server_that_is_killed_is_started_again_once_and_then_given_up(command, wait_until):
    process = command.start(**FEW)

    def kill_after(records: int) -> int:
        wait_until(lambda: len(command.records("name")) >= records or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        os.kill(command.server(), signal.SIGKILL)
        return len(command.records("name"))

    done_before = kill_after(4)
    kill_after(done_before + 4)
    ended = command.end_of(process)
    assert ended.code == 1
    assert "the server died again" in ended.err
    assert "killed by SIGKILL" in ended.err
    assert command.engine_processes() == {}
    assert done_before + 4 <= len(command.records("name")) < PEOPLE
    (log,) = (command.run_folder / "engines").iterdir()
    assert log.read_text().count(UP) == 2


def causes(outcomes):
    """How many failed; each has its cause."""
    failed = [one for one in outcomes if one["type"] != "done"]
    assert {one["type"] for one in failed} <= {"unreadable", "call_failed"}
    assert all(one["cause"] for one in failed)
    return len(failed)


def missing(metric):
    """How many scores are missing; each has its cause."""
    assert all(cause.split("/")[1] for cause in metric["missing"])
    return sum(metric["missing"].values())


@pytest.mark.parametrize(
    ("task", "limit", "change", "stages", "metrics"),
    [
        ("behaviour_movies_a", 20, "kept=20", ("recommend",), ("gap",)),
        (
            "usersum_movielens_hc", 6, "max_words=40",
            ("segment", "combine", "predict"), ("qm", "ifm", "idm"),
        ),
    ],
    ids=["behaviour", "usersum"],
)  # fmt: skip
def test_every_random_answer_has_a_value_or_a_cause(
    command, *, task, limit, change, stages, metrics
):
    done = command.run("--limit", str(limit), "--set", change, task=task, **WHOLE_PROMPTS)
    assert done.code in (0, 3), done.err
    assert causes(one["outcome"] for stage in stages for one in command.records(stage)) > 0
    found = done.summary(task)["metrics"]
    for name in metrics:
        assert found[name]["n"] + missing(found[name]) == limit


def test_texts_at_random_are_searched_and_every_failure_has_a_cause(command, monkeypatch):
    monkeypatch.chdir(command.folder)
    given = ["--data", "sample", "--embedder", "hashing", "--out", "index"]
    assert main(["horizon", "index", *given]) == 0
    some = ("--role", "retriever=catalogue:index", "--limit", "4")
    done = command.run(*some, task="horizon_text", **WHOLE_PROMPTS)
    assert done.code in (0, 3), done.err
    asked, searched = command.records("generate"), command.records("retrieve")
    assert len(searched) == len(asked) - causes(one["outcome"] for one in asked) > 0
    assert {one["outcome"]["type"] for one in searched} == {"done"}
    calls = [call for one in asked for call in one["calls"]]
    whole = [json.loads(call["text"]) for call in calls if call["finish"] == "stop"]
    fields = {"queries", "item_descriptions_timewise"}
    assert whole and {name for one in whole for name in one} <= fields
    for task in ("horizon_query", "horizon_long"):
        summary = done.summary(task)
        stage, recall = summary["stages"]["generate"], summary["metrics"]["recall_10"]
        use = stage["roles"]["candidate"]
        assert use["asked_schema"] == stage["items"] >= use["met_schema"]
        assert recall["n"] + missing(recall) == stage["items"] > 0
