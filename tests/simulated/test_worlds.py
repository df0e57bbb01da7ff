"""Worlds: the real run, resumed and disturbed, ends as one that nothing disturbs.

Three hundred, with those of `test_further_worlds.py` and `test_last_worlds.py`.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from simulated.plans import plan_of
from simulated.world import World, live

from harness.calls.budget import Budget
from harness.calls.retry import Patience

SEEDS = 100
AT_ONCE = 10


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_whatever_disturbs_a_run_the_same_command_ends_as_if_nothing_had(machine, first):
    for seed in range(first, first + AT_ONCE):
        live(seed, machine)


def test_a_seed_is_a_world(machine):
    """The same seed gives the same life, to the last write and the last second."""

    def life(seed):
        world = live(seed, machine)
        return machine.now, world.disk.kinds, [one.attempts for one in world.server.sessions]

    for seed in (1, 2, 3):
        assert life(seed) == life(seed)


def test_a_server_that_is_gone_for_ten_seconds_is_waited_for(machine):
    plan = replace(
        plan_of(0), faults=0.0, patience=Patience(), budget=Budget(), crashes=(), interrupts=(),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        world = World(plan, "gone", Path(folder), machine)
        world.server.gone_until = 10.0
        ended = world.session()
        world.check_end()
    assert ended.result.status == "done"
    assert machine.now > 10.0
