"""Whole runs against a server that misbehaves: one fault costs what it must and no more."""

import re
import sys

import pytest

from harness.testing import faults

JUDGE = "judge-model"
FAST = ("--attempts", "5", "--timeout", "5")
PEOPLE = 40


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
    slowly = (
        "--concurrency",
        "2",
        "--reuse",
        "run",
    )  # so that the journal is written in many batches
    arguments = harness.arguments(*FAST, *slowly)
    done = harness.process([sys.executable, "-c", LIMITED, *arguments])
    assert done.code == 1
    assert re.search("File too large|disk is full|disk I/O error", done.err)
    assert "runs/" in done.err and "space" in done.err
    assert "--store" not in done.err and "Traceback" not in done.err
    (folder,) = harness.folders
    kept = len(harness.records("name"))
    assert 0 < kept < PEOPLE
    before = server.count
    done = harness.command(arguments).ok()
    assert done.summary()["metrics"]["support"]["n"] == PEOPLE
    assert harness.folders == [folder]
    asked = [one for one in server.requests[before:] if one["model"] != JUDGE]
    # One line may have been torn; what no line holds may be among the run's own answers.
    assert len(asked) <= PEOPLE - kept + 1


STEERING = "\x1b]0;owned\x07\x1b[2J\x1b[31mno such key\x9b1A\r"


@pytest.mark.parametrize("shown", [(), ("--quiet",), ("--json",)], ids=str)
def test_a_servers_words_cannot_steer_the_terminal(harness, serve, shown):
    serve(harness, faults=lambda asked: faults.status(401, message=STEERING))
    arguments = [one for one in harness.arguments(*FAST) if one != "--json"]
    done = harness.command([*arguments, *shown])
    assert done.code == 1
    assert "no such key" in done.err and "\\x1b" in done.err
    for char in "\x1b\x07\x9b\r":
        assert char not in done.err
        assert shown == ("--json",) or char not in done.out
