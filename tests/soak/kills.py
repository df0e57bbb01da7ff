"""Kills of every kind at random moments: the same result, and no answer paid twice.

    make soak SOAK=kills.py

A failure names the kind and the number of its draw, which repeat the moment as nearly as a
machine can.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from random import Random

import pytest
from builders.processes import questions_saved

from harness.testing import faults

ROUNDS = 20
LATENCY = 0.02
KINDS = {
    "kill": (signal.SIGKILL,),
    "term": (signal.SIGTERM,),
    "interrupt": (signal.SIGINT,),
    "interrupt twice": (signal.SIGINT, signal.SIGINT),
    "hang up": (signal.SIGHUP,),
    "stop and kill": (signal.SIGSTOP, signal.SIGKILL),
}
RUNS = {
    "interests": ("harness", ("--limit", "20", "--concurrency", "4")),
    "no store": ("harness", ("--limit", "20", "--concurrency", "4", "--reuse", "run")),
    "gist": ("gist", ("--concurrency", "4", "--set", "interests_a_question=1")),
    "gist, no store": ("gist", ("--concurrency", "4", "--reuse", "run")),
}


def some_cut(asked):
    """Cuts a tenth of the judge's answers, always the same ones."""
    judged = asked.body["model"] == "judge-model"
    return faults.TRUNCATED if judged and int(asked.digest, 16) % 10 == 0 else None


def metrics_of(done):
    return {one["task"]: one["metrics"] for one in done.json["summaries"]}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("run", RUNS)
def test_kills(request, serve, run, kind):
    name, options = RUNS[run]
    asks = request.getfixturevalue(name)
    server = serve(asks, latency=LATENCY, faults=some_cut if name == "harness" else ())
    options = (*options, "--max_failures", "1")
    whole = metrics_of(asks.run("--output_path", "whole", *options, "--reuse", "run").ok())
    once = server.count
    for number in range(ROUNDS):
        draw = Random(f"{run} {kind} {number}")
        place = ("--output_path", f"{number}", "--store", f"{number}.sqlite")
        saved, printed = set(), False
        for _ in range(draw.randint(1, 3)):
            process = asks.start(*place, *options)
            since, enough = server.count, server.count + draw.randint(0, once)
            asks.wait_until(
                lambda least=enough, one=process: server.count >= least or one.poll() is not None
            )
            time.sleep(draw.random() / 3)
            printed = end(process, KINDS[kind], draw)
            assert not saved & asked_since(server, since), f"{run}, {kind}, {number}"
            if printed:
                break
            for folder in (asks.folder / f"{number}").glob("*"):
                saved |= questions_saved(folder, server)
        since = server.count
        done = asks.run(*place, *options).ok()
        assert metrics_of(done) == whole, f"{run}, {kind}, {number}"
        # The same command after a printed result is a new run.
        assert printed or not saved & asked_since(server, since), f"{run}, {kind}, {number}"


def asked_since(server, number):
    """The digests of questions that came since, without those whose answers were cut."""
    return {one.digest for one in list(server.asked)[number:] if not some_cut(one)}


def end(process: subprocess.Popen[str], signals, draw) -> bool:
    """Send the signals; whether the process had already printed the result of its whole run."""
    for each in signals:
        if process.poll() is None:
            process.send_signal(each)
            time.sleep(draw.random() / 10)
    printed, _ = process.communicate(timeout=60)
    return printed.endswith("}\n") and json.loads(printed)["status"] == "done"
