"""The last hundred of the three hundred worlds, in a file of its own to be worked on apart."""

from __future__ import annotations

import pytest
from simulated.test_worlds import AT_ONCE, SEEDS
from simulated.world import live


@pytest.mark.parametrize("first", range(2 * SEEDS, 3 * SEEDS, AT_ONCE))
def test_whatever_disturbs_a_run_the_same_command_ends_as_if_nothing_had(machine, first):
    for seed in range(first, first + AT_ONCE):
        live(seed, machine)
