import pytest

from harness.base.errors import UsageError
from harness.calls.pricing import FREE, Price, PriceTable, price_of, price_table
from harness.contracts.identity import Identity

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


def test_a_file_gives_its_prices(tmp_path):
    table = price_table(str(written(tmp_path, TABLE)))
    assert table.currency == "EUR"
    assert table.models["openai:gpt-4.1"] == Price(input=2.0, output=8.5, cached=0.5)
    assert table.where == str(tmp_path / "prices.toml")


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


def test_models_that_answer_by_rule_cost_nothing_unless_somebody_says_so():
    rule = Identity(kind="baseline", name="default", scope="call")
    assert price_of(rule, None) == FREE
    assert price_of(rule, price_table({"b*": {"input": 1, "output": 1}})) == Price(
        input=1.0, output=1.0
    )
    assert price_of(Identity(kind="openai", name="m"), None) is None


def test_a_recording_costs_nothing_whatever_the_recorded_model_costs():
    asked = Identity(kind="openai", name="m", details={"revision": "a1"})
    table = price_table({"openai:m": {"input": 1, "output": 1}})
    assert price_of(asked, table) == Price(input=1.0, output=1.0)
    replayed = Identity(kind="openai", name="m", details={"revision": "a1", "recorded": "0f"})
    assert price_of(replayed, table) == FREE
    assert price_of(replayed, None) == FREE


def test_a_mapping_and_a_table_are_taken_as_they_are():
    table = price_table({"openai:m": {"input": 1, "output": 2.5}})
    assert table == PriceTable(models={"openai:m": Price(input=1.0, output=2.5)})
    assert price_table(table) is table


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[prices.m]\ninput = 1\noutput = '2'\n", "Expected `float`, got `str`"),
        ("[prices.m]\ninput = nan\noutput = 2\n", "found:    input = nan"),
        ("[prices.m]\ninput = 1\noutput = 2\ncached = inf\n", "found:    cached = inf"),
        ("[prices]\nm = 3\n", "the price of a model is invalid"),
        ("[prices]\ncurrency = ''\n", "the currency is invalid"),
    ],
)
def test_what_is_no_price_is_refused_with_its_place(tmp_path, text, said):
    file = written(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        price_table(file)
    assert said in str(caught.value)
    assert str(file) in str(caught.value)
