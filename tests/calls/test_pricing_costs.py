import pytest

from harness.calls.pricing import FREE, Cost, Price, cost_of, costs_by_model, together
from harness.calls.usage import Spend
from harness.contracts.model import Usage

PRICE = Price(input=2.0, output=10.0, cached=0.5)
NOTHING = Spend()


def priced(paid: Spend, price: Price | None = PRICE, saved: Spend = NOTHING) -> Cost:
    return cost_of("openai:m", price, "USD", paid=paid, saved=saved)


def spend(calls: int, unreported: int = 0, **tokens: int) -> Spend:
    return Spend(calls=calls, unreported=unreported, **tokens)


def test_cached_tokens_have_their_own_price_and_are_part_of_the_prompt():
    # 600 at 2, 400 at 0.5 and 100 at 10 are 2400 millionths.
    tokens = {"prompt_tokens": 1000, "cached_tokens": 400, "completion_tokens": 100}
    assert priced(spend(1, **tokens)).paid == pytest.approx(0.0024, abs=1e-12)
    usage = Usage(**tokens)
    assert PRICE.cost_of(usage) == pytest.approx(0.0024, abs=1e-12)
    # Without a price for cached ones: 1000 at 2 and 100 at 10.
    plain = Price(input=2.0, output=10.0)
    assert plain.cost_of(usage) == pytest.approx(0.003, abs=1e-12)


def test_a_server_that_counts_more_cached_tokens_than_tokens_is_paid_for_tokens():
    usage = Usage(prompt_tokens=100, cached_tokens=900)
    assert PRICE.cost_of(usage) == pytest.approx(0.00005, abs=1e-12)


@pytest.mark.parametrize(
    ("spent", "price", "paid", "unknown"),
    [
        (NOTHING, None, 0.0, 0),
        (spend(3), None, None, 3),
        (spend(3, unreported=3), FREE, 0.0, 0),
        (spend(3, unreported=3), PRICE, None, 3),
        (spend(3, unreported=1, completion_tokens=100), PRICE, 0.001, 1),
        # A call whose first attempt was lost and whose second told its tokens.
        (spend(1, unreported=1, completion_tokens=100), PRICE, 0.001, 1),
        # Calls that were refused with an error status cost nothing.
        (spend(2), PRICE, 0.0, 0),
    ],
)
def test_what_is_not_known_is_counted_and_never_zero(spent, price, paid, unknown):
    cost = priced(spent, price)
    assert (cost.paid, cost.paid_unknown) == (paid, unknown)
    saved = priced(NOTHING, price, saved=spent)
    assert (saved.saved, saved.saved_unknown) == (paid, unknown)
    assert (saved.paid, saved.paid_unknown) == (0.0, 0)


def test_costs_add_up_and_what_is_unknown_stays_so():
    known = priced(spend(2, prompt_tokens=1000))
    lost = priced(spend(5, unreported=5))
    both = together("all", [known, lost])
    assert (both.asked, both.paid, both.paid_unknown) == (7, 0.002, 5)
    assert together("all", [lost, lost]).paid is None
    other = cost_of("openai:n", None, "USD", paid=spend(1), saved=NOTHING)
    assert list(costs_by_model([known, other, lost])) == ["openai:m", "openai:n"]
    assert not together("all", [known, other]).priced
