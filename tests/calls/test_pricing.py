import pytest

from harness.base.errors import UsageError
from harness.calls.pricing import (
    FREE,
    Cost,
    Price,
    PriceTable,
    Spend,
    cost_of,
    costs_by_model,
    price_of,
    price_table,
    together,
)
from harness.contracts.identity import Identity
from harness.contracts.model import Usage

TABLE = """
[prices]
currency = "EUR"

[prices."openai:*"]
input = 3
output = 4

[prices."openai:gpt-4.1"]
input = 2
output = 8.5
cached = 0.5

[prices."*:gpt*"]
input = 9
output = 9
"""


def written(tmp_path, text):
    file = tmp_path / "prices.toml"
    file.write_text(text, "utf-8")
    return file


def test_a_file_or_a_mapping_gives_its_prices(tmp_path):
    table = price_table(str(written(tmp_path, TABLE)))
    assert table.currency == "EUR"
    assert table.models["openai:gpt-4.1"] == Price(input=2.0, output=8.5, cached=0.5)
    assert table.where == str(tmp_path / "prices.toml")
    mapped = price_table({"openai:m": {"input": 1, "output": 2.5}})
    assert mapped == PriceTable(models={"openai:m": Price(input=1.0, output=2.5)})
    assert price_table(mapped) is mapped


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("openai:gpt-4.1", 2.0),
        ("openai:gpt-5", 3.0),
        ("vllm:gpt-oss", 9.0),
        ("vllm:Qwen/Qwen3-8B", None),
    ],
)
def test_the_very_name_goes_before_patterns_and_these_by_their_order(tmp_path, name, price):
    found = price_table(written(tmp_path, TABLE)).of(name)
    assert (found and found.input) == price


def test_models_that_answer_by_rule_or_from_a_recording_cost_nothing():
    rule = Identity(kind="baseline", name="default", scope="call")
    one = Price(input=1.0, output=1.0)
    table = price_table({name: {"input": 1, "output": 1} for name in ("openai:m", "b*")})
    assert (price_of(rule, None), price_of(rule, table)) == (FREE, one)  # unless somebody says so
    asked = Identity(kind="openai", name="m", details={"revision": "a1"})
    assert (price_of(asked, None), price_of(asked, table)) == (None, one)
    replayed = Identity(kind="openai", name="m", details={"revision": "a1", "recorded": "0f"})
    assert price_of(replayed, None) == price_of(replayed, table) == FREE


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[prices.m]\ninput = nan\noutput = 2\n", "input = nan"),
        ("[prices.m]\ninput = 1\noutput = 2\ncached = inf\n", "cached = inf"),
        ("[prices]\ncurrency = ''\n", "''"),
    ],
)
def test_what_is_no_price_is_refused(tmp_path, text, found):
    with pytest.raises(UsageError) as caught:
        price_table(written(tmp_path, text))
    assert caught.value.found == found


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
    assert PRICE.cost_of(Usage(**tokens)) == pytest.approx(0.0024, abs=1e-12)
    # Without a price for cached ones: 1000 at 2 and 100 at 10.
    plain = Price(input=2.0, output=10.0)
    assert plain.cost_of(Usage(**tokens)) == pytest.approx(0.003, abs=1e-12)
    # Of a server that counts more cached tokens than tokens.
    odd = Usage(prompt_tokens=100, cached_tokens=900)
    assert PRICE.cost_of(odd) == pytest.approx(0.00005, abs=1e-12)


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
