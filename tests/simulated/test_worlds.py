"""Worlds: the real run, resumed and disturbed, ends as one that nothing disturbs."""

from __future__ import annotations

import pytest
from simulated.world import live

SEEDS = 300
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
