"""Each write of a run fails once, or is the last one: the same command ends as if none had."""

from __future__ import annotations

import errno
import tempfile
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from simulated.plans import plan_of, script_of
from simulated.world import World

from harness.calls.budget import Budget
from harness.calls.retry import Patience

QUIET = replace(
    plan_of(0), script=script_of(3), concurrency=2, others=2, faults=0.0, latency=0.3,
    patience=Patience(), budget=Budget(), few_failures=False, crashes=(), interrupts=(),
)  # fmt: skip
PLANS = {"with a store": replace(QUIET, store=True), "without": replace(QUIET, store=False)}
KINDS = ("crash", "ENOSPC", "EIO", "ENOSPC once")
EVERY = len(KINDS)
"""Each write meets one kind of trouble here, and in the soak each meets each kind."""


def lives(plan, machine, seed, trouble):
    """Whether the run was whole before its n-th write; what holds in every world holds in it."""
    write, kind = trouble
    with tempfile.TemporaryDirectory() as folder:
        world = World(plan, seed, Path(folder), machine)
        if kind == "crash":
            ended = world.session(crash_at=write)
        else:
            once = kind.endswith("once")
            code = getattr(errno, kind.split()[0])
            world.disk.fails = lambda number: (
                code if number == write or (number > write and not once) else None
            )
            ended = world.session(may_fail=True)
            world.disk.fails = lambda number: None
        whole = world.disk.writes < write
        world.live()
    assert whole <= (ended.result is not None and ended.result.status == "done")
    return whole


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("plan", PLANS)
def test_the_nth_write_is_the_last_or_fails(machine, plan, kind):
    until_whole(PLANS[plan], machine, kind, every=EVERY, first=1 + KINDS.index(kind))


def until_whole(plan, machine, kind, *, every=1, first=1):
    """Trouble at later and later writes, until a run is whole before it comes."""
    for write in count(first, every):
        if lives(plan, machine, f"{kind} {write}", (write, kind)):
            return
