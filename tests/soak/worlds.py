"""Thirty thousand worlds, and trouble at every single write of a run.

make soak SOAK=worlds.py
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulated.conftest import machine  # noqa: F401
from simulated.plans import script_of
from simulated.test_sqlite_files import PLAN as PAGED
from simulated.test_writes import KINDS, PLANS, until_whole
from simulated.world import live

SEEDS = 30_000
AT_ONCE = 100


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_whatever_disturbs_a_run_the_same_command_ends_as_if_nothing_had(machine, first):  # noqa: F811
    for seed in range(first, first + AT_ONCE):
        live(seed, machine)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("plan", [*PLANS.values(), PAGED], ids=[*PLANS, "by pages"])
def test_each_write_is_the_last_or_fails(machine, plan, kind):  # noqa: F811
    for script in (3, 6):
        until_whole(replace(plan, script=script_of(script)), machine, kind)
