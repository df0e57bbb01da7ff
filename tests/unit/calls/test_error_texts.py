"""What is said of price tables and stores that cannot be used, word for word."""

from pathlib import Path

import pytest

from harness.calls.prices import price_table
from harness.calls.store import Store
from harness.errors import HarnessError

QUOTED = '  expected: a model with its prices: [prices."openai:NAME"], input = 1.25, output = 10'

TABLES = {
    '[prices."openai:a"]\ninput = \n': """\
prices.toml: the price table of --prices is no TOML
  found:    Invalid value (at line 2, column 9)
QUOTED
  to do:    a name with a colon or a dot stands in quotes""",
    "[price]\n": """\
prices.toml: a price table has no 'price'
QUOTED
  to do:    did you mean 'prices'?""",
    'prices = "cheap"\n': """\
prices.toml: the file of --prices holds none
QUOTED""",
    '[prices]\ncurrency = "EUR"\n': """\
prices.toml: the price table names no model
QUOTED""",
    "[prices]\ncurrency = 3\n": """\
prices.toml: the currency has no name
  found:    3
  expected: USD, EUR, …""",
    "[prices]\ncurency = 'EUR'\n": """\
prices.toml, [prices."curency"]: no price of a model
  found:    'EUR'
QUOTED
  to do:    did you mean 'currency'?""",
    '[prices."openai:a"]\ninput = 1\noutputs = 2\n': """\
prices.toml, [prices."openai:a"]: a price has no 'outputs'
  expected: input, output and perhaps cached, each for a million tokens
  to do:    did you mean 'output'?""",
    "[prices.openai.gpt]\ninput = 1\noutput = 2\n": """\
prices.toml, [prices."openai"]: a price has no 'gpt'
  expected: input, output and perhaps cached, each for a million tokens
  to do:    a name with a dot stands in quotes""",
    '[prices."openai:a"]\ninput = 1\n': """\
prices.toml, [prices."openai:a"]: a price cannot be used
  found:    Object missing required field `output`
  expected: input, output and perhaps cached, each for a million tokens""",
    '[prices."openai:a"]\ninput = 1\noutput = -2\n': """\
prices.toml, [prices."openai:a"]: a price cannot be used
  found:    output = -2.0
  expected: an amount of money from 0 on""",
}


def said(call, *given, **options):
    with pytest.raises(HarnessError) as caught:
        call(*given, **options)
    return str(caught.value)


@pytest.mark.parametrize("content", TABLES)
def test_price_tables(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.toml").write_text(content)
    assert said(price_table, "prices.toml") == TABLES[content].replace("QUOTED", QUOTED)


def test_what_is_no_price_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said(price_table, "none.toml") == (
        "none.toml: the price table of --prices cannot be read\n"
        "  found:    No such file or directory"
    )
    assert said(price_table, 3) == (
        "prices cannot be used\n  found:    3\n  expected: a file, or a mapping by model"
    )


def test_places_in_which_no_store_can_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    assert said(Store.open, Path("folder")) == (
        "folder: the store is one file\n  found:    a folder\n  expected: --store FILE"
    )
    assert said(Store.open, Path("file/calls.sqlite")) == (
        "file/calls.sqlite: the folder of the store cannot be made\n"
        "  found:    [Errno 17] File exists: 'file'\n"
        "  to do:    name a file in another folder with --store"
    )
