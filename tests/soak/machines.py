"""The state machines of the tests, with more and other steps, each time drawn anew.

make soak SOAK=machines.py
"""

from __future__ import annotations

import pytest
from calls.test_limiter_machine import Calls
from calls.test_store_machine import Stores
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from runs.test_journal_machine import Journal
from simulated.test_run_machine import Life


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("machine", "examples", "steps"),
    [(Calls, 3000, 60), (Stores, 1500, 60), (Journal, 1500, 60), (Life, 500, 20)],
    ids=lambda one: getattr(one, "__name__", str(one)),
)  # fmt: skip
def test_a_machine_does_as_its_model_says(machine, examples, steps):
    drawn = settings(
        deadline=None, max_examples=examples, stateful_step_count=steps, print_blob=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=drawn)
