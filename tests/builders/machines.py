"""State machines of hypothesis, which draw the same steps each time."""

from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine


def machine_case(machine: type[RuleBasedStateMachine], *, examples: int, steps: int) -> Any:
    """The test case of a machine; `soak/machines.py` draws more and other examples."""
    case = machine.TestCase
    case.settings = settings(
        derandomize=True, deadline=None, database=None, max_examples=examples,
        stateful_step_count=steps, suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )  # fmt: skip
    return case
