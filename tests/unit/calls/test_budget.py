import pytest

from harness.calls.budget import Meter
from harness.calls.policy import Budget
from harness.errors import BudgetSpent
from harness.models import Usage


def test_the_last_call_of_the_budget_is_made_and_no_other():
    meter = Meter(Budget(calls=2))
    meter.claim()
    meter.check()
    meter.claim()
    with pytest.raises(BudgetSpent, match="budget of calls") as caught:
        meter.check()
    assert "2 calls used" in str(caught.value)
    assert meter.calls == 2


def test_tokens_are_counted_when_they_are_known():
    meter = Meter(Budget(tokens=100))
    meter.claim()
    meter.add(Usage(prompt_tokens=90, completion_tokens=9))
    meter.claim()
    meter.add(None)
    meter.add(Usage(completion_tokens=5))
    with pytest.raises(BudgetSpent, match="budget of tokens"):
        meter.check()
    assert meter.tokens == 104


def test_without_bounds_nothing_is_refused():
    meter = Meter(Budget())
    for _ in range(1000):
        meter.check()
        meter.claim()
    meter.add(Usage(prompt_tokens=10**9))
    meter.check()


def test_a_budget_of_nothing_refuses_the_first_call():
    with pytest.raises(BudgetSpent):
        Meter(Budget(calls=0)).check()
