"""State machines of hypothesis, which draw the same steps each time."""

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def run_machine(machine: type[RuleBasedStateMachine], *, examples: int, steps: int) -> None:
    """Take so many walks through a machine; `soak/machines.py` takes more and other ones."""
    drawn = settings(
        derandomize=True, deadline=None, database=None, max_examples=examples,
        stateful_step_count=steps, suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=drawn)
