"""What is said of price tables and stores that cannot be used, word for word."""

import contextlib
import sqlite3
from functools import partial
from pathlib import Path

import pytest
from builders.requests import make_request
from inline_snapshot import snapshot

from harness.base.errors import ModelError, StorageError, UsageError
from harness.calls.budget import without_price
from harness.calls.client import Client
from harness.calls.pricing import price_table, prices_from
from harness.calls.store import Store
from harness.contracts.identity import Identity
from harness.contracts.model import CallError
from harness.testing import ScriptedModel

pytestmark = pytest.mark.usefixtures("elsewhere")
TABLES = {
    '[prices."openai:a"]\ninput = \n': ("prices.toml", "Invalid value (at line 2, column 9)",
        snapshot("""\
--prices: the file is not valid TOML
expected: a price for each model: [prices."openai:NAME"], input = 1.25, output = 10
to do: put names with a colon or a dot in quotes""")),
    "[price]\n": ("prices.toml", None, snapshot("""\
--prices: unknown table 'price'
expected: a price for each model: [prices."openai:NAME"], input = 1.25, output = 10
to do: did you mean 'prices'?""")),
    'prices = "cheap"\n': ("prices.toml", None, snapshot("""\
--prices: the file has no [prices] table
expected: a price for each model: [prices."openai:NAME"], input = 1.25, output = 10""")),
    '[prices]\ncurrency = "EUR"\n': ("prices.toml", None, snapshot("""\
the price table contains no models
expected: a price for each model: [prices."openai:NAME"], input = 1.25, output = 10""")),
    "[prices]\ncurrency = 3\n": ("prices.toml", "3", snapshot("""\
the currency is invalid
expected: a code of up to 8 letters, such as USD""")),
    "[prices]\ncurency = 'EUR'\n": ('prices.toml, [prices."curency"]', "'EUR'", snapshot("""\
the price of a model is invalid
expected: a price for each model: [prices."openai:NAME"], input = 1.25, output = 10
to do: did you mean 'currency'?""")),
    '[prices."openai:a"]\ninput = 1\noutputs = 2\n': ('prices.toml, [prices."openai:a"]', None,
        snapshot("""\
unknown key 'outputs' in a price
expected: input, output and optionally cached, each for a million tokens
to do: did you mean 'output'?""")),
    "[prices.openai.gpt]\ninput = 1\noutput = 2\n": ('prices.toml, [prices."openai"]', None,
        snapshot("""\
unknown key 'gpt' in a price
expected: input, output and optionally cached, each for a million tokens
to do: put names with a dot in quotes""")),
    '[prices."openai:a"]\ninput = 1\n': (
        'prices.toml, [prices."openai:a"]', "Object missing required field `output`",
        snapshot("""\
the price of a model is invalid
expected: input, output and optionally cached, each for a million tokens""")),
    '[prices."openai:a"]\ninput = 1\noutput = -2\n': (
        'prices.toml, [prices."openai:a"]', "output = -2.0",
        snapshot("""\
the price of a model is invalid
expected: a finite number of 0 or more""")),
}  # fmt: skip


@pytest.mark.parametrize("content", TABLES)
def test_price_tables(content, raised):
    Path("prices.toml").write_text(content)
    where, found, wording = TABLES[content]
    assert raised(UsageError, price_table, "prices.toml", where=where, found=found) == wording


def test_what_is_no_price_table(raised):
    place, found = "none.toml", "No such file or directory"
    assert raised(UsageError, price_table, place, where=place, found=found) == snapshot(
        "--prices: the file cannot be read"
    )
    assert raised(UsageError, price_table, 3, found="3") == snapshot("""\
the prices are invalid
expected: a TOML file, or a mapping by model""")


def test_places_in_which_no_store_can_be_and_a_database_of_another_program(raised):
    place = Path("folder")
    place.mkdir()
    assert raised(StorageError, Store.open, place, where="folder", found="a folder") == snapshot("""\
the store must be a file
expected: --store FILE""")
    Path("file").write_text("")
    place, found = Path("file/calls.sqlite"), "[Errno 17] File exists: 'file'"
    assert raised(StorageError, Store.open, place, where=str(place), found=found) == snapshot("""\
the folder of the store cannot be created
to do: name a file in another folder with --store""")
    with contextlib.closing(sqlite3.connect("other.sqlite")) as other:
        other.execute("CREATE TABLE films (name TEXT)")
        other.commit()
    place, found = Path("other.sqlite"), "an SQLite file with mark 0x0 and format 0"
    assert raised(StorageError, Store.open, place, where=str(place), found=found) == snapshot("""\
the file is not a store that this version can use
expected: mark 0x48524e53 and format 1
to do: name another file with --store""")


def test_models_without_a_price(wording):
    prices = prices_from(
        {"openai:a": {"input": 1, "output": 2}, "currency": "EUR"}, where="prices.toml"
    )
    error = without_price([Identity(kind="openai", name=name) for name in "cb"], prices)
    where, found = "prices.toml", "no price of openai:b, openai:c"
    assert wording(error, UsageError, where, found) == snapshot("""\
--max_cost needs a price for every model that may be asked
expected: [prices."openai:b"] with input and output, in --prices FILE""")


ENDS = {
    "auth": snapshot("""\
the model cannot be used
to do: check the API key that the model uses"""),
    "not_found": snapshot("""\
the model cannot be used
to do: check the model's name and address"""),
    "connection": snapshot("""\
the model cannot be used
to do: start the server, or check the address that the model uses"""),
}


@pytest.mark.parametrize("cause", ENDS)
def test_errors_that_end_a_run(cause, raised):
    model = ScriptedModel([CallError(cause, "said no", fatal=True)])
    request = make_request("a")
    ask = partial(Client(store=None, run_id="r1").ask, role="candidate", stage="extract")
    where, found = "scripted:model", f"{cause}: said no"
    assert raised(ModelError, ask, model, request, where=where, found=found) == ENDS[cause]
