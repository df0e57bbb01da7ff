"""Killed, failed, changed: what was done is done, and nothing is paid for twice."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from builders.processes import questions_saved
from golden.result_schemas import schema_file

from harness import evaluate
from harness.testing import faults

PEOPLE = 40
JUDGE = "judge-model"


def test_kill_9_in_any_stage_and_the_same_command_goes_on(harness, serve):
    server = serve(harness, latency=0.03)
    wanted = harness.run("--output_path", "whole", "--reuse", "run").summary()["metrics"]
    server.asked.clear()
    server.count = 0

    process = harness.start("--concurrency", "2")
    harness.wait_until(lambda: sum(one["model"] == JUDGE for one in server.requests) >= 16)
    harness.kill(process)
    before = server.count
    assert before < PEOPLE + 40
    saved = questions_saved(harness.folders[0], server)
    assert len(saved) >= PEOPLE

    done = harness.run("--concurrency", "2").ok()
    assert done.summary()["metrics"] == wanted
    assert not saved & {one.digest for one in list(server.asked)[before:]}
    assert len(harness.folders) == 1
    assert [one["status"] for one in harness.manifest()["sessions"]] == ["running", "done"]


def test_the_first_ctrl_c_lets_calls_in_flight_finish(harness, serve):
    server = serve(harness, latency=0.3)
    process = harness.start("--concurrency", "8")
    harness.wait_until(lambda: server.count >= 8)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "the same command resumes" in err
    assert json.loads(out)["status"] == "interrupted"
    answered = sum(server.answered.values())
    assert answered == server.count
    before = server.count
    assert harness.run("--concurrency", "8").code == 0
    assert all(count == 1 for count in server.counts.values())
    assert server.count > before


def test_weights_that_are_pinned_by_a_revision_are_asked_once_unless_a_run_is_fresh(harness, serve):
    server = serve(harness)
    few = (*harness.pinned, "--limit", "6")
    one = harness.run(*few).ok()
    asked = server.count
    two = harness.run(*few).ok()
    assert len(harness.folders) == 2
    assert server.count == asked
    assert one.summary()["metrics"] == two.summary()["metrics"]
    harness.run(*few, "--reuse", "none").ok()
    assert server.count == 2 * asked
    # One that did not end is continued by the same command, and one that did is not.
    assert harness.run(*few, "--reuse", "none", "--max_calls", "3").code == 1
    harness.run(*few, "--reuse", "none").ok()
    assert (server.count, len(harness.folders)) == (3 * asked, 4)
    harness.run(*few, "--reuse", "none").ok()
    assert (server.count, len(harness.folders)) == (4 * asked, 5)


def test_a_finished_run_says_why_the_same_command_asks_again(harness, serve):
    server = serve(harness)
    few = ("--limit", "2")
    assert "is finished" not in harness.run(*few).ok().err
    asked = server.count
    (first,) = harness.folders
    again = harness.run(*few).ok().err
    assert server.count == 2 * asked
    assert (
        f"{first.relative_to(harness.folder)} is finished. Without revision= its answers of "
        "openai:candidate-model and openai:judge-model are not used again"
    ) in again
    assert "revision=NAME keeps answers for later runs" in again
    for more in (("--reuse", "none"), ("--reuse", "run"), harness.pinned, harness.pinned):
        assert "is finished" not in harness.run(*few, *more).ok().err


@pytest.mark.parametrize(
    ("status", "wrong", "code"),
    [("done", None, 0), ("failed", 401, 1), ("too_many_failures", 400, 3)],
)
def test_what_a_run_leaves_fits_the_schemas_however_it_ended(harness, serve, status, wrong, code):
    fault = wrong and faults.status(wrong)
    serve(harness, faults=lambda asked: fault if asked.number >= 8 else None)
    assert harness.run("--concurrency", "2").code == code
    manifest = harness.manifest()
    assert manifest["status"] == manifest["sessions"][-1]["status"] == status
    assert (manifest["problem"] is None) == (status == "done")
    (folder,) = harness.folders
    summaries = list(folder.glob("*/summary.json"))
    assert len(summaries) == (status == "done")
    for file in (folder / "manifest.json", *summaries):
        shape = json.loads(schema_file(f"{file.stem}.schema.json").read_text())
        jsonschema.Draft202012Validator(shape).validate(json.loads(file.read_text()))


FEW = ("--limit", "6")

KILLER = """
import os
import signal

from harness import hookimpl


@hookimpl
def on_run_end(event):
    if "KILLED" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
"""
"""A plugin that ends its process at the end of a run, where there is a variable KILLED."""


def test_a_kill_after_the_end_loses_no_result_and_costs_nothing(harness, serve, install):
    install(KILLER)
    server = serve(harness)
    killed = harness.process(harness.arguments(*FEW), KILLED="yes")
    assert (killed.code, killed.out) == (-9, "")
    assert harness.manifest()["status"] == "done"
    once = server.count

    done = harness.run(*FEW).ok()
    assert server.count == once
    assert done.summary()["metrics"]["support"]["n"] == 6
    assert harness.manifest()["delivered"] is True
    stages = done.summary()["stages"]
    assert stages["name"]["roles"]["candidate"]["from_store"] == 0

    other = harness.run(*FEW).ok()
    assert len(harness.folders) == 2
    assert other.summary()["metrics"] == done.summary()["metrics"]


def test_a_result_that_could_not_be_printed_is_printed_by_the_same_command(harness, serve):
    server = serve(harness)
    command = [word for word in harness.arguments(*FEW) if word != "--json"]
    with Path("/dev/full").open("w") as full:
        failed = subprocess.run(
            command, cwd=harness.folder, env=harness.environment, stdout=full,
            stderr=subprocess.PIPE, check=False, timeout=120,
        )  # fmt: skip
    assert failed.returncode != 0
    left = harness.manifest()
    assert (left["status"], left["delivered"]) == ("done", False)
    once = server.count

    done = harness.here(*command[3:]).ok()
    assert "support" in done.out
    assert server.count == once
    assert len(harness.folders) == 1
    assert harness.manifest()["delivered"] is True


def test_a_result_is_delivered_once_evaluate_returns(tmp_path):
    for _ in range(2):
        done = evaluate("interests", model="baseline", judge="lexical", data="sample", limit=2,
                        output_path=tmp_path / "runs", reuse="run")  # fmt: skip
        run = json.loads((done.folder / "manifest.json").read_text())
        assert (run["status"], run["delivered"]) == ("done", True)
    assert len(list((tmp_path / "runs").iterdir())) == 2


FAST = ("--attempts", "5", "--timeout", "5")


@pytest.mark.parametrize("accepted", [True, False], ids=["done", "not done"])
def test_what_got_no_answer_is_asked_again_only_in_a_run_that_is_not_done(harness, serve, accepted):
    lost = [faults.status(500), faults.status(429), faults.RESET]
    server = serve(harness, faults=lambda asked: lost[asked.number] if asked.number < 3 else None)
    options = ("--attempts", "1", "--concurrency", "1")
    options += () if accepted else ("--max_failures", "calls=0")
    assert harness.run(*options).code == (0 if accepted else 3)
    failed = [one["item"] for one in harness.records("name") if one["outcome"]["type"] != "done"]
    assert len(failed) == 3
    before = server.count
    done = harness.run(*options, "--resume", str(harness.folders[0])).ok()
    again = [one for one in server.requests[before:] if one["model"] != JUDGE]
    failures = done.summary()["stages"]["name"]["failures"]
    if accepted:
        assert server.count == before
        assert failures == {"server_error": 1, "rate_limited": 1, "connection": 1}
    else:
        assert len(again) == 3 and failures == {}
        assert [one["item"] for one in harness.records("name")[-3:]] == failed


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
os.execv(sys.argv[1], sys.argv[1:])
"""
"""A command whose files have room for about half of a run."""


def test_a_run_on_a_full_disk_fails_loudly_and_goes_on_when_there_is_room(harness, serve):
    server = serve(harness, latency=0.05)
    # So slowly that the journal is written in many batches.
    arguments = harness.arguments(*FAST, "--concurrency", "2", "--reuse", "run")
    done = harness.process([sys.executable, "-c", LIMITED, *arguments])
    assert done.code == 1
    assert re.search("File too large|disk is full|disk I/O error", done.err)
    assert "runs/" in done.err and "space" in done.err
    assert "--store" not in done.err and "Traceback" not in done.err
    (folder,) = harness.folders
    kept = len(harness.records("name"))
    assert 0 < kept < PEOPLE
    before = server.count
    done = harness.here(*arguments[3:]).ok()
    assert done.summary()["metrics"]["support"]["n"] == PEOPLE
    assert harness.folders == [folder]
    asked = [one for one in server.requests[before:] if one["model"] != JUDGE]
    # One line may have been torn; what no line holds may be among the run's own answers.
    assert len(asked) <= PEOPLE - kept + 1


STEERING = "\x1b]0;owned\x07\x1b[2J\x1b[31mno such key\x9b1A\r"


@pytest.mark.parametrize("shown", [(), ("--quiet",), ("--json",)], ids=str)
def test_a_servers_words_cannot_steer_the_terminal(harness, serve, shown):
    serve(harness, faults=lambda asked: faults.status(401, message=STEERING))
    words = [one for one in harness.arguments(*FAST)[3:] if one != "--json"]
    done = harness.here(*words, *shown)
    assert done.code == 1
    assert "no such key" in done.err and "\\x1b" in done.err
    for char in "\x1b\x07\x9b\r":
        assert char not in done.err
        assert shown == ("--json",) or char not in done.out
