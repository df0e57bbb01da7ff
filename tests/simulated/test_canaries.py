"""Faults that are planted in the product: each falls in one of three hundred worlds."""

from __future__ import annotations

import pytest
from simulated.canaries import CANARIES
from simulated.plans import plan_of
from simulated.world import live, reference

SEEDS = 300


@pytest.mark.parametrize("name", CANARIES)
def test_a_canary_falls(machine, name):
    for plan in map(plan_of, range(SEEDS)):
        reference(plan.script, plan.wired)  # as it is without the fault
    canary = CANARIES[name]
    seeds = (seed for seed in range(SEEDS) if canary.needs(plan_of(seed)))
    with canary.planted():
        fallen = next((seed for seed in seeds if falls(seed, machine)), None)
    assert fallen is not None


def falls(seed, machine):
    try:
        live(seed, machine)
    except Exception:
        return True
    return False
