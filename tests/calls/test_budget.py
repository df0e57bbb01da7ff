from dataclasses import asdict

import msgspec
import pytest
from builders.requests import make_request

from harness.base.errors import BudgetSpent, UsageError, UsageUnreported
from harness.calls.budget import Budget, Meter, UsageBook, Use
from harness.calls.pricing import Price, PriceTable
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Reply, Usage

MODEL = Identity(kind="openai", name="m")
ASKED = make_request("hällo", max_tokens=100)
PRICES = PriceTable(models={"openai:m": Price(input=2.0, output=10.0, cached=0.5)})
DEAREST = 0.001444
"""200 tokens for the template, 16 for the message and 6 bytes of it are 222 at 2, and 100 at 10."""


def money(limit: float, prices: PriceTable | None = PRICES) -> Meter:
    return Meter(Budget(cost=limit), prices)


def test_as_much_as_a_call_may_cost_is_set_aside_until_it_is_over():
    meter = money(2 * DEAREST)
    first, second = meter.claim(MODEL, ASKED), meter.claim(MODEL, ASKED)
    assert first.most == pytest.approx(DEAREST, abs=1e-12)
    assert meter.claim(MODEL, ASKED) is None
    assert (meter.calls, meter.claims) == (2, 2)
    # 30 of 100 tokens were known: 70 at 2, 30 at 0.5, 10 at 10 are 255 millionths.
    usage = Usage(prompt_tokens=100, cached_tokens=30, completion_tokens=10)
    meter.settle(first, Reply(text="a", usage=usage))
    assert meter.spent == pytest.approx(0.000255, abs=1e-12)
    assert meter.claim(MODEL, ASKED) is None  # 0.000255 and twice the dearest are too much
    meter.settle(second, CallError("rate_limited", "later"))
    assert meter.spent == pytest.approx(0.000255, abs=1e-12)
    assert meter.claim(MODEL, ASKED) is not None
    # Thinking may cost as much as its tokens: fifty more at 10.
    sampling = msgspec.structs.replace(ASKED.sampling, reasoning_tokens=50)
    thinking = msgspec.structs.replace(ASKED, sampling=sampling)
    assert money(1.0).claim(MODEL, thinking).most == pytest.approx(DEAREST + 0.0005, abs=1e-12)


def test_nothing_is_sent_that_may_cost_more_than_is_left():
    meter = money(2 * DEAREST)
    usage = Usage(prompt_tokens=1000, completion_tokens=0)
    meter.settle(meter.claim(MODEL, ASKED), Reply(text="a", usage=usage))
    with pytest.raises(BudgetSpent, match="budget of money") as caught:
        meter.claim(MODEL, ASKED)
    assert "0.002 USD spent, and the next call may cost 0.001444" in str(caught.value)
    assert meter.calls == 1


@pytest.mark.parametrize(
    ("outcome", "spent"),
    [
        (None, DEAREST),
        (CallError("timeout", "lost"), DEAREST),
        (CallError("server_error", "no"), 0.0),
        (CallError("no_content", "", usage=Usage(prompt_tokens=100)), 0.0002),
        (Reply(text="", finish="refused"), DEAREST),
    ],
)
def test_usage_that_nobody_reports_counts_as_the_dearest(outcome, spent):
    meter = money(1.0)
    meter.settle(meter.claim(MODEL, ASKED), outcome)
    assert meter.spent == pytest.approx(spent, abs=1e-12)


def test_a_server_that_reports_no_usage_cannot_be_held_to_money():
    meter = money(1.0)
    claim = meter.claim(MODEL, ASKED)
    error = meter.unreported(claim, Reply(text="a"), MODEL)
    assert isinstance(error, UsageUnreported)
    assert "openai:m: --max_cost cannot be enforced" in str(error)
    assert meter.unreported(claim, Reply(text="a", usage=Usage()), MODEL) is None
    assert meter.unreported(claim, Reply(text="", finish="refused"), MODEL) is None
    free = money(1.0, PriceTable(models={"*": Price(input=0.0, output=0.0)}))
    assert free.unreported(free.claim(MODEL, ASKED), Reply(text="a"), MODEL) is None


def test_a_model_without_a_price_is_asked_nothing_under_a_budget_of_money():
    with pytest.raises(UsageError, match="no price of openai:other"):
        money(1.0).claim(Identity(kind="openai", name="other"), ASKED)
    by_rule = Identity(kind="baseline", name="default", scope="call")
    assert money(1.0, None).claim(by_rule, ASKED) is not None


def test_what_is_given_back_is_neither_used_nor_reserved():
    meter = Meter(Budget(calls=0, tokens=0, cost=0.0), PRICES)
    meter.grant(Budget(calls=11, tokens=500, cost=0.01))
    claim = meter.claim(MODEL, ASKED)
    assert claim is not None
    half = meter.give_back(2)
    assert (half.calls, half.tokens) == (5, 250)
    assert half.cost == pytest.approx((0.01 - DEAREST) / 2, abs=1e-12)
    meter.settle(claim, Reply(text="a", usage=Usage(prompt_tokens=200, completion_tokens=90)))
    rest = meter.give_back(1)
    assert (rest.calls, rest.tokens) == (5, -40)  # tokens are known afterwards
    assert rest.cost == pytest.approx(0.01 - 0.0013 - half.cost, abs=1e-12)
    assert (meter.bound.calls, meter.bound.tokens) == (1, 290)
    assert meter.bound.cost == pytest.approx(meter.spent, abs=1e-12)


def test_the_last_report_of_each_worker_counts_with_what_this_process_asked():
    each = {name: number for number, name in enumerate(asdict(Use()), 1)}

    def book(*stages: str, times: int = 1) -> UsageBook:
        made = UsageBook()
        for stage in stages:
            counts = {name: times * count for name, count in each.items()}
            made.totals[stage, "judge"] = Use(**counts)
        return made

    driver = book("rate")
    driver.take("a", book("rate", times=2).as_json())
    driver.take("b", book("rate", "ask", times=10).as_json())
    driver.take("a", book("rate", times=5).as_json())
    assert driver.as_json() == {
        "rate, judge": {name: 16 * count for name, count in each.items()},
        "ask, judge": {name: 10 * count for name, count in each.items()},
    }
