"""What is said of data, runs and settings that cannot be used: where, found, expected, to do."""

import re
from functools import partial

import pytest
from harness_gistbench.categories import categories
from harness_gistbench.oracle import read
from harness_gistbench.records import Options

from harness.base.errors import DataError

HEAD = "category_id,category_name\n"
UNUSABLE = "the taxonomy cannot be used"
TWICE = "two categories of the taxonomy share a category_{}".format
ONCE = "expected: each id and each name once"
OPTION = "the option `taxonomy`"

TAXONOMIES = {
    "id,name\n1,Bread\n": (
        "DIR/few.csv:1", "id,name", UNUSABLE, "expected: the header category_id,category_name"),
    HEAD: ("DIR/few.csv:1", "no category", UNUSABLE, "expected: at least one"),
    f"{HEAD}1,Bread\nx,Tea\n": (
        "DIR/few.csv:3", "x", UNUSABLE,
        "expected: a category_id that is a whole number from 1 on"),
    f"{HEAD}1,\n": ("DIR/few.csv:2", "1,", UNUSABLE, "expected: an id and a name"),
    f"{HEAD}1,Rye,x\n": ("DIR/few.csv:2", "1,Rye,x", UNUSABLE, "expected: an id and a name"),
    f'{HEAD}1,"Rye\n': (
        "DIR/few.csv:2", "unexpected end of data", UNUSABLE, "expected: a CSV file"),
    f"{HEAD}1,Caf\xe9": (
        "DIR/few.csv",
        "'utf-8' codec can't decode byte 0xe9 in position 31: unexpected end of data",
        "the taxonomy is no UTF-8 text"),
    f"{HEAD}1,Bread\n1,Tea\n": ("DIR/few.csv", "1", TWICE("id"), ONCE),
    f"{HEAD}1,Bread\n2,bread\n": ("DIR/few.csv", "bread", TWICE("name"), ONCE),
    None: (
        "DIR/few.csv", "No such file or directory", "the taxonomy cannot be read",
        "expected: a CSV file with the columns category_id,category_name",
        "to do: the option `taxonomy` names it, as seen from the working folder; "
        "a task for other people lists the names themselves"),
    (): (OPTION, "no category", UNUSABLE, "expected: a list of names"),
    ("Tea", " "): (OPTION, "a name that is blank", UNUSABLE, "expected: a list of names"),
    ("Tea", "tea "): (OPTION, "tea", TWICE("name"), ONCE),
}  # fmt: skip


@pytest.mark.parametrize("given", TAXONOMIES)
def test_taxonomies(raised, tmp_path, given):
    file = tmp_path / "few.csv"
    if isinstance(given, str):
        file.write_text(given, encoding="latin-1")
    where, found, *words = TAXONOMIES[given]
    call = partial(categories, given if isinstance(given, tuple) else str(file))
    assert raised(DataError, call, where=where, found=found) == "\n".join(words)


FORMAT = 'expected: {"oracle": {"user": [category ids]}}'
NO_JSON = "the oracle is no JSON", FORMAT
NO_ORACLE = "the file holds no oracle", FORMAT
IDS = (
    "expected: a list of different ids of the taxonomy's 2 categories, whole numbers from 1 to 2",
    "to do: the option `taxonomy` of the runs names the file with the ids",
)
NO_ID = "no id of a category", *IDS

ORACLES = {
    "{": (None, re.compile("Expecting property name.*"), *NO_JSON),
    "[" * 100_000: (None, re.compile("maximum recursion depth exceeded.*"), *NO_JSON),
    '{"made": NaN, "oracle": {}}': (None, "NaN is no JSON number", *NO_JSON),
    '{"oracle": {"1": [2], "1": [1]}}': (
        None, "the key '1' stands twice in one object", *NO_JSON),
    '{"dataset": "toy"}': (None, "['dataset']", *NO_ORACLE),
    '{"oracle": [1]}': (None, "['oracle']", *NO_ORACLE),
    "[1]": (None, "list", *NO_ORACLE),
    '{"oracle": {"7": 1}}': ("oracle of user '7'", "1", "no list of categories", *IDS),
    '{"oracle": {"1": [2], "7": [1, 3]}}': ("oracle of user '7'", "3", *NO_ID),
    '{"oracle": {"7": [true]}}': ("oracle of user '7'", "true", *NO_ID),
    '{"oracle": {"7": [2, 1, 2]}}': (
        "oracle of user '7'", "2", "a category is named twice", *IDS),
}  # fmt: skip


@pytest.mark.parametrize("text", ORACLES, ids=lambda text: text[:40])
def test_oracles(raised, text):
    where, found, *words = ORACLES[text]
    call = partial(read, text.encode(), Options(taxonomy=("Tea", "Bread")))
    assert raised(DataError, call, where=where, found=found) == "\n".join(words)
