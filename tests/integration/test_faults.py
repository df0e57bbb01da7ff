"""Whole runs against a server that misbehaves: one fault costs what it must and no more."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from harness.testing import faults

JUDGE = "judge-model"
FAST = ("--attempts", "5", "--timeout", "5")
PEOPLE = 40


def about(text, fault):
    """The fault for requests whose prompt holds the text."""
    return lambda asked: fault if text in asked.body["messages"][-1]["content"] else None


def of_judge(fault, *, again=False):
    return lambda asked: (
        fault if asked.body["model"] == JUDGE and (again or not asked.again) else None
    )


@pytest.fixture
def clean(harness, serve):
    """What the same run comes to without any fault."""
    serve(harness)
    done = harness.run("--output_path", "clean", "--no_store").ok()
    return done.summary()["metrics"]


def test_one_bad_request_of_many_costs_one_sample(harness, serve):
    title = "Learning to love breathing in crawl"
    serve(harness, faults=about(title, faults.status(400, message="strange input")))
    done = harness.run(*FAST).ok()
    failed = [one for one in harness.records("name") if one["outcome"]["type"] != "done"]
    lost = len(failed)
    assert 1 <= lost <= 4
    assert {one["outcome"]["cause"] for one in failed} == {"bad_request"}
    assert "strange input" in failed[0]["outcome"]["detail"]
    support = done.summary()["metrics"]["support"]
    assert support["n"] == PEOPLE - lost
    assert support["missing"] == {"name/bad_request": lost}


def test_a_refused_key_stops_the_run_at_once_and_says_so(harness, serve):
    server = serve(harness, faults=lambda asked: faults.status(401, message="no such key"))
    done = harness.run("--concurrency", "4", *FAST)
    assert done.code == 1
    assert "auth" in done.err and "check the API key" in done.err
    assert server.count <= 4
    assert harness.manifest()["status"] == "failed"


@pytest.mark.parametrize(
    "fault",
    [
        faults.status(408),
        faults.status(429),
        faults.status(429, headers={"retry-after": "0.2"}),
        faults.status(500),
        faults.status(502),
        faults.status(503),
        faults.RESET,
        faults.RESET_IN_BODY,
        faults.BROKEN_JSON,
        faults.OTHER_TYPE,
        faults.NO_CHOICES,
        faults.NULL_CONTENT,
    ],
    ids=[
        "408", "429", "429-retry-after", "500", "502", "503", "reset", "reset-in-body",
        "broken-json", "other-type", "no-choices", "null-content",
    ],
)  # fmt: skip
def test_what_passes_leaves_no_trace_in_the_result(harness, serve, clean, fault):
    serve(
        harness, faults=lambda asked: fault if asked.number % 5 == 0 and not asked.again else None
    )
    done = harness.run(*FAST).ok()
    assert done.summary()["metrics"] == clean


def test_retry_after_as_a_date_is_waited_for(harness, serve, clean):
    import email.utils

    def fault(asked):
        later = email.utils.formatdate(time.time() + 2, usegmt=True)
        return faults.status(429, headers={"retry-after": later}) if asked.number == 0 else None

    server = serve(harness, faults=fault)
    done = harness.run("--concurrency", "1", *FAST).ok()
    assert done.summary()["metrics"] == clean
    first, *others = server.asked
    (again,) = (one for one in others if one.body == first.body)
    assert again.at - first.at >= 0.9  # a date has whole seconds
    # One answer is no reason to ask less at a time.
    limits = harness.manifest()["sessions"][-1]["limits"]
    assert limits["openai:candidate-model"]["changes"] == []


@pytest.mark.parametrize(
    ("fault", "cause"),
    [(faults.TRUNCATED, "truncated"), (faults.FILTERED, "refused")],
    ids=["length", "content-filter"],
)
def test_replies_that_are_no_answers_are_typed_kept_and_never_stored(harness, serve, fault, cause):
    server = serve(harness, faults=of_judge(fault, again=True))
    # No item of the judge has a value.
    assert harness.run(*FAST, "--max_failures", "1").code == 3
    judged = harness.records("support")
    assert {one["outcome"]["type"] for one in judged} == {"no_verdict"}
    assert {one["outcome"]["cause"] for one in judged} == {cause}
    assert judged[0]["calls"][-1]["text"].startswith("1")
    server.faults = ()
    before = server.count
    harness.run(*FAST, "--retry_failures").ok()
    assert {one["outcome"]["type"] for one in harness.records("support")[-len(judged) :]} == {
        "done"
    }
    assert server.count == before + len(judged)


def test_a_reply_that_never_comes_is_a_timeout_and_is_asked_again(harness, serve, clean):
    server = serve(harness, faults=lambda asked: faults.SILENCE if asked.number == 3 else None)
    done = harness.run("--attempts", "5", "--timeout", "0.5").ok()
    assert done.summary()["metrics"] == clean
    assert server.count > PEOPLE


def test_a_server_that_was_never_there_is_an_error_with_its_address(harness):
    harness.url = "http://127.0.0.1:9/v1"
    done = harness.run("--attempts", "2")
    assert done.code == 1
    assert "http://127.0.0.1:9/v1 cannot be reached" in " ".join(done.err.split())


def test_too_many_failures_end_with_3_and_keep_everything(harness, serve):
    server = serve(harness, faults=lambda asked: faults.status(400) if asked.number % 2 else None)
    done = harness.run(*FAST, "--concurrency", "1")
    assert done.code == 3
    assert "too many items failed" in done.err
    assert "20 of 40 by calls (bad_request 20)" in done.err
    assert len(harness.records("name")) == PEOPLE
    assert harness.manifest()["status"] == "too_many_failures"
    server.faults = ()
    before = server.count
    done = harness.run(*FAST, "--retry_failures").ok()
    asked = [one for one in server.requests[before:] if one["model"] != JUDGE]
    assert len(asked) == 20


def test_after_a_server_died_the_same_command_finishes_and_asks_nothing_twice(
    harness, serve, clean
):
    server = serve(harness)
    died = []

    def fault(asked):
        if asked.number == 10 and not died:
            died.append(True)
            server._loop.create_task(server._hang_up())

    server.faults = fault
    one_by_one = ("--attempts", "1", "--concurrency", "1")
    done = harness.run(*one_by_one)
    assert done.code == 3
    records = harness.records("name")
    lost = [one["outcome"]["cause"] for one in records if one["outcome"]["type"] != "done"]
    assert set(lost) == {"connection"} and len(lost) >= 20
    assert "repeat the command: as it is where no answer came (connection, " in done.err
    kept = [one["calls"][0]["messages"] for one in records if one["outcome"]["type"] == "done"]
    assert len(kept) >= 10

    server.faults = ()
    server.revive()
    before = server.count
    done = harness.run(*one_by_one).ok()
    assert done.summary()["metrics"] == clean
    assert done.summary()["stages"]["name"]["failures"] == {}
    again = [one["messages"] for one in server.requests[before:] if one["model"] != JUDGE]
    assert len(again) == PEOPLE - len(kept)
    assert not [one for one in again if one in kept]


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
most = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass
class SmallDisk:
    """A folder `small` in which no more than a few kB can be written until there is room."""

    folder: Path
    mounted: bool
    most: int
    room: bool = False

    @property
    def says(self) -> re.Pattern[str]:
        return re.compile("No space left|File too large|disk is full|disk I/O error")

    def command(self, arguments):
        """The command as it must be given to be held by the limit."""
        return (
            arguments
            if self.mounted or self.room
            else [sys.executable, "-c", LIMITED, str(self.most), *arguments]
        )

    def make_room(self):
        self.room = True
        if self.mounted:
            subprocess.run(["mount", "-o", "remount,size=64m", str(self.folder)], check=True)


@contextmanager
def small_disk(folder, *, wanted, disk, files):
    """A file system of so many kB where mounting is allowed; else, and also, such small files."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={disk}k", "tmpfs", str(folder)]
    mounted = wanted and not subprocess.run(mount, capture_output=True, check=False).returncode
    yield SmallDisk(folder, mounted, files * 1024)
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(params=["small disk", "small files"])
def small(tmp_path, request):
    """A folder too small for a store."""
    wanted = request.param == "small disk"
    with small_disk(tmp_path / "small", wanted=wanted, disk=64, files=20) as small:
        yield small


@pytest.fixture(params=["small disk", "small files"])
def half(tmp_path, request):
    """A folder that holds about half of a run."""
    wanted = request.param == "small disk"
    with small_disk(tmp_path / "small", wanted=wanted, disk=160, files=64) as half:
        yield half


def test_a_run_on_a_full_disk_fails_loudly_and_goes_on_when_there_is_room(harness, serve, half):
    server = serve(harness, latency=0.05)
    slowly = ("--concurrency", "2", "--no_store")  # so that the journal is written in many batches
    arguments = harness.arguments(*FAST, *slowly, "--output_path", "small/runs")
    done = harness.process(half.command(arguments))
    assert done.code == 1
    assert half.says.search(done.err) and "small/runs" in done.err and "space" in done.err
    assert "--store" not in done.err and "Traceback" not in done.err
    (folder,) = (half.folder / "runs").iterdir()
    (journal,) = folder.glob("*/1-name.jsonl")
    kept = len(journal.read_bytes().splitlines())
    assert 0 < kept < PEOPLE
    before = server.count
    half.make_room()
    done = harness.process(half.command(arguments)).ok()
    assert done.summary()["metrics"]["support"]["n"] == PEOPLE
    assert [str(path) for path in (half.folder / "runs").iterdir()] == [str(folder)]
    asked = [one for one in server.requests[before:] if one["model"] != JUDGE]
    # One line may have been torn; what no line holds may be among the run's own answers.
    assert len(asked) <= PEOPLE - kept + 1


def test_a_store_on_a_full_disk_is_a_failed_run(harness, serve, small):
    serve(harness)
    arguments = harness.arguments(*FAST, "--store", "small/calls.sqlite")
    done = harness.process(small.command(arguments))
    assert done.code == 1
    assert "small/calls.sqlite" in done.err and "--store" in done.err
    assert "Traceback" not in done.err
    assert harness.manifest()["status"] == "failed"
    small.make_room()
    done = harness.process(small.command(arguments)).ok()
    assert done.summary()["metrics"]["support"]["n"] == PEOPLE


def pinned(server):
    return (
        "--model_args", f"base_url={server.url},model=candidate-model,revision=1",
        "--judge", f"openai:base_url={server.url},model={JUDGE},revision=1",
    )  # fmt: skip


@pytest.mark.parametrize("damage", ["noise", "a torn page"])
def test_a_damaged_store_is_said_set_aside_and_the_run_goes_on(harness, serve, damage):
    server = serve(harness)
    store = harness.folder / "cache" / "calls.sqlite"
    store.parent.mkdir()
    broken = Random(3).randbytes(40_000)
    if damage == "a torn page":
        assert harness.run(*FAST, *pinned(server), "--output_path", "before").code == 0
        broken = store.read_bytes()[:4096] + broken
    store.write_bytes(broken)
    asked = len(server.counts)

    one = harness.run(*FAST, *pinned(server), "--output_path", "one").ok()
    assert "the store of answered calls is damaged" in one.err
    (aside,) = store.parent.glob("calls.sqlite.damaged-*[0-9]")
    assert aside.name in one.err
    assert aside.read_bytes() == broken
    counted = server.count
    assert counted == (2 * asked or len(server.counts))

    two = harness.run(*FAST, *pinned(server), "--output_path", "two")
    assert two.code == 0
    assert "damaged" not in two.err
    assert server.count == counted
    assert two.summary()["metrics"] == one.summary()["metrics"]


def test_two_processes_share_one_store_and_what_one_was_answered_the_other_knows(harness, serve):
    server = serve(harness, latency=0.05)
    slowly = (*pinned(server), "--concurrency", "2")
    one = harness.start(*slowly, "--output_path", "one")
    harness.wait_until(lambda: server.count >= 16)
    started = time.monotonic()
    two = harness.start(*slowly, "--output_path", "two")
    assert one.poll() is None
    results = [process.communicate(timeout=120) for process in (one, two)]
    assert one.returncode == two.returncode == 0, results

    # Answered after 0.05 s and written after another 0.2 s, before the second asked anything.
    known = [asked.digest for asked in server.asked if asked.at < started - 0.25]
    assert len(known) >= 4
    assert {server.counts[digest] for digest in known} == {1}
    before = server.count
    third = harness.run(*pinned(server), "--output_path", "three")
    assert third.code == 0
    assert server.count == before
    metrics = [json.loads(out)["summaries"][0]["metrics"] for out, _ in results]
    assert metrics == [third.summary()["metrics"]] * 2


def test_a_key_variable_that_is_not_set_stops_the_run_before_anything_is_sent(harness, serve):
    server = serve(harness)
    model = f"base_url={server.url},model=candidate-model,api_key_env=OUR_SERVERS_KEY"
    done = harness.run(*FAST, "--model_args", model)
    assert done.code == 2
    assert "OUR_SERVERS_KEY" in done.err and "Traceback" not in done.err
    assert server.count == 0
    assert not list(harness.folder.glob("runs/*/interests/*.jsonl"))

    done = harness.command(
        harness.arguments(*FAST, "--model_args", model), OUR_SERVERS_KEY="key 1"
    ).ok()
    assert len(harness.folders) == 1
    assert {asked.headers["authorization"] for asked in server.asked} == {
        "Bearer key 1", "Bearer not-needed",
    }  # fmt: skip


def test_unreadable_replies_are_asked_again_past_the_store_when_failures_are_retried(
    harness, serve
):
    title = "Learning to love breathing in crawl"

    def sometimes(body):
        return "no idea" if title in body["messages"][-1]["content"] else harness.answer(body)

    server = serve(harness, answer=sometimes)
    done = harness.run(*FAST, *pinned(server)).ok()
    lost = {one["id"] for one in harness.records("name") if one["outcome"]["type"] == "unreadable"}
    assert 1 <= len(lost) <= 4
    assert done.summary()["metrics"]["support"]["n"] == PEOPLE - len(lost)

    server.answer = harness.answer
    before = server.count
    done = harness.run(*FAST, *pinned(server), "--output_path", "other")
    assert done.summary()["metrics"]["support"]["n"] == PEOPLE - len(lost)
    assert server.count == before  # "no idea" was an answer, and is in the store

    done = harness.run(*FAST, *pinned(server), "--retry_failures").ok()
    assert done.summary()["metrics"]["support"]["n"] == PEOPLE
    asked = [one for one in server.requests[before:] if one["model"] != JUDGE]
    assert len(asked) == len(lost)
    assert all(title in one["messages"][-1]["content"] for one in asked)


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


def test_a_label_with_escapes_cannot_steer_the_terminal(harness, serve):
    server = serve(harness, faults=lambda asked: faults.status(404, message=STEERING))
    model = f"base_url={server.url},model=\x1b[31mred"
    done = harness.run(*FAST, "--model_args", model)
    assert done.code == 1
    assert "\x1b" not in done.err + done.out
