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

from harness.testing import faults

ROUNDS = 20
LATENCY = 0.02
WRITTEN = 0.2
"""Seconds after which an answer must be on disk."""

SLACK = 0.3
"""Seconds that a busy machine may take longer."""

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


def paid_twice(server, since, kills):
    """The bodies asked again though their answer had long come at the last kill before that."""
    sent = {}
    again = []
    for one in list(server.asked)[since:]:
        before = sent.get(one.digest)
        last = max((kill for kill in kills if kill < one.at), default=None)
        # Tries of one question have one body: only what was asked before a kill counts.
        if before is not None and last is not None and before < last:
            if before < last - LATENCY - WRITTEN - SLACK:
                again.append(one.digest)
            del sent[one.digest]
            continue
        sent.setdefault(one.digest, one.at)
    return again


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
        since, kills = server.count, []
        place = ("--output_path", f"{number}", "--store", f"{number}.sqlite")
        for _ in range(draw.randint(1, 3)):
            process = asks.start(*place, *options)
            enough = server.count + draw.randint(0, once)
            asks.wait_until(
                lambda least=enough, one=process: server.count >= least or one.poll() is not None
            )
            time.sleep(draw.random() / 3)
            kills.append(time.monotonic())
            printed = end(process, KINDS[kind], draw)
            if printed:
                break
        done = asks.run(*place, *options).ok()
        assert metrics_of(done) == whole, f"{run}, {kind}, {number}"
        # The same command after a printed result is a new run.
        if len(kills) == 1 and not printed:
            assert paid_twice(server, since, kills) == [], f"{run}, {kind}, {number}"


def end(process: subprocess.Popen[str], signals, draw) -> bool:
    """Send the signals; whether the process had already printed the result of its whole run."""
    for each in signals:
        if process.poll() is None:
            process.send_signal(each)
            time.sleep(draw.random() / 10)
    printed, _ = process.communicate(timeout=60)
    return printed.endswith("}\n") and json.loads(printed)["status"] == "done"
