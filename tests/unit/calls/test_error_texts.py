"""What is said of price tables and stores that cannot be used, word for word."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from harness.calls.budget import without_price
from harness.calls.client import Client
from harness.calls.engines import EngineRoom
from harness.calls.prices import price_table, prices_from
from harness.calls.store import Store
from harness.errors import HarnessError
from harness.models import CallError, Identity, Message, Request, Sampling

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


def test_a_database_of_another_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with contextlib.closing(sqlite3.connect("other.sqlite")) as other:
        other.execute("CREATE TABLE films (name TEXT)")
        other.commit()
    assert (
        said(Store.open, Path("other.sqlite"))
        == """\
other.sqlite: the file is not a store that this version can use
  found:    an SQLite file with mark 0x0 and format 0
  expected: mark 0x48524e53 and format 1
  to do:    name another file with --store"""
    )


def test_models_without_a_price():
    prices = prices_from(
        {"openai:a": {"input": 1, "output": 2}, "currency": "EUR"}, where="prices.toml"
    )
    unpriced = [Identity(kind="openai", name=name) for name in "cb"]
    assert (
        str(without_price(unpriced, prices))
        == """\
prices.toml: --max_cost needs a price of every model that may be asked
  found:    no price of openai:b, openai:c
  expected: [prices."openai:b"] with input and output, in --prices FILE"""
    )


class Failing:
    """A model whose engine opens, closes and answers, or fails with what it was given."""

    identity = Identity(kind="fake", name="one")
    occupies = "gpu"
    concurrency = 1

    def __init__(self, **failures):
        self._failures = failures

    async def open(self):
        self._fail("open")

    async def close(self):
        self._fail("close")

    async def ask(self, request):
        self._fail("ask")

    def _fail(self, name):
        if name in self._failures:
            raise self._failures[name]


async def entered_and_closed(model):
    room = EngineRoom(tell=lambda text: None)
    async with room.enter(model):
        pass
    await room.close()


ENGINES = {
    "open": """\
fake:one: the model cannot be opened
  found:    RuntimeError: no room""",
    "close": """\
fake:one: an engine could not be closed
  found:    RuntimeError: no room""",
}


@pytest.mark.parametrize("when", ENGINES)
async def test_engines(when):
    with pytest.raises(HarnessError) as caught:
        await entered_and_closed(Failing(**{when: RuntimeError("no room")}))
    assert str(caught.value) == ENGINES[when]


ENDS = {
    "auth": """\
fake:one: the model cannot be used
  found:    auth: said no
  to do:    check the key that the model is given""",
    "not_found": """\
fake:one: the model cannot be used
  found:    not_found: said no
  to do:    check the model's name and its address""",
    "connection": """\
fake:one: the model cannot be used
  found:    connection: said no
  to do:    start the server, or check the address that the model is given""",
}


@pytest.mark.parametrize("cause", ENDS)
async def test_errors_that_end_a_run(cause):
    model = Failing(ask=CallError(cause, "said no", fatal=True))
    request = Request(messages=(Message(role="user", content="a"),), sampling=Sampling(), seed=0)
    with pytest.raises(HarnessError) as caught:
        await Client(store=None, run_id="r1").ask(model, request, role="candidate", stage="extract")
    assert str(caught.value) == ENDS[cause]
