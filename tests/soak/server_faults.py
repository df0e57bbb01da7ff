"""Every fault of the misbehaving server at random requests: the result of a good server."""

from __future__ import annotations

from random import Random

import pytest

from harness.testing import faults

ROUNDS = 5
PASSING = {
    "408": faults.status(408),
    "429": faults.status(429),
    "429 with a wait": faults.status(429, headers={"retry-after": "0.1"}),
    "500": faults.status(500),
    "502": faults.status(502),
    "503": faults.status(503),
    "reset": faults.RESET,
    "reset in body": faults.RESET_IN_BODY,
    "broken json": faults.BROKEN_JSON,
    "other type": faults.OTHER_TYPE,
    "no choices": faults.NO_CHOICES,
    "null content": faults.NULL_CONTENT,
    "slow": faults.slow(0.3),
    "silence": faults.SILENCE,
}
FAST = ("--limit", "20", "--attempts", "6", "--timeout", "4")


def at_random(wrong, draw):
    """A random one of the faults for a fifth of the requests, and never twice for one body."""
    return lambda asked: draw.choice(wrong) if not asked.again and draw.random() < 0.2 else None


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [*PASSING, "all of them"])
def test_faults_that_pass(harness, serve, name):
    server = serve(harness)
    whole = harness.run("--output_path", "whole", "--no_store", *FAST).ok().summary()["metrics"]
    wrong = [PASSING[name]] if name in PASSING else list(PASSING.values())
    for number in range(ROUNDS):
        server.counts.clear()
        server.faults = at_random(wrong, Random(f"{name} {number}"))
        done = harness.run("--output_path", str(number), "--no_store", *FAST).ok()
        assert done.summary()["metrics"] == whole, f"{name}, {number}"
