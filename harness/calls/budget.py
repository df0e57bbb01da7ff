"""What a run has spent, and the refusal to spend more."""

from __future__ import annotations

from harness.calls.policy import Budget
from harness.errors import BudgetSpent
from harness.models import Usage


class Meter:
    """Counts attempts sent and tokens used; `check` refuses the next once a bound is reached.

    Tokens are known only afterwards, so calls in flight when the bound is reached may exceed it.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.calls = 0
        self.tokens = 0

    def check(self) -> None:
        """Raise BudgetSpent when no further attempt may be sent."""
        budget = self._budget
        if budget.calls is not None and self.calls >= budget.calls:
            raise _spent("calls", self.calls, budget.calls)
        if budget.tokens is not None and self.tokens >= budget.tokens:
            raise _spent("tokens", self.tokens, budget.tokens)

    def claim(self) -> None:
        """Count one attempt that is sent now."""
        self.calls += 1

    def add(self, usage: Usage | None) -> None:
        """Count what a reply cost."""
        if usage is not None:
            self.tokens += usage.prompt_tokens + usage.completion_tokens


def _spent(unit: str, used: int, bound: int) -> BudgetSpent:
    return BudgetSpent(
        f"the budget of {unit} is spent",
        found=f"{used} {unit} used",
        expected=f"at most {bound}",
        hint="run the same command with a larger budget: it goes on where this one stopped",
    )
