"""Replies with queries: whole, cut, fenced, with other fields, without any."""

import json

import pytest
from harness_horizon.text.replies import QueriesReader
from hypothesis import given
from hypothesis import strategies as st

from harness import Parsed, Unreadable

READ = QueriesReader(field="queries", most=10)
TEN = [f'search {number} for "x"' for number in range(1, 11)]
WHOLE = json.dumps({"queries": TEN}, indent=1)
IN_NINTH = WHOLE.index("search 9")


def texts(reply, read=READ):
    found = read(reply)
    assert isinstance(found, Parsed), found
    return list(found.value), found.rung


@pytest.mark.parametrize(
    ("reply", "rung"),
    [
        (WHOLE, "strict"),
        (json.dumps({"guideline": 'likes "queries"', "queries": TEN}), "strict"),
        (json.dumps({"search_queries": TEN, "n": 10}), "strict"),
        (json.dumps({"queries": [{"query": one} for one in TEN]}), "strict"),
        (json.dumps(TEN), "strict"),
        (f"```json\n{WHOLE}\n```", "fenced"),
        (f"Sure [1]! Here {{ok}}:\n{WHOLE}\nHope that helps.", "brackets"),
        (f'{{"queries": ["query1"]}}\n{WHOLE}', "brackets"),
        (WHOLE[:-3], "repaired"),
        (WHOLE.replace("\n ]", ",\n ]"), "repaired"),
        (json.dumps({"queries": [*TEN, "an eleventh"]}), "strict"),
    ],
)
def test_ten_queries_are_read_whatever_stands_around_them(reply, rung):
    assert texts(reply) == (TEN, rung)


@pytest.mark.parametrize("around", ["{}", "```json\n{}", "Here they are:\n{}"])
@pytest.mark.parametrize("end", range(-1, 15))
def test_of_a_reply_cut_in_the_ninth_text_the_eight_whole_ones_are_kept(end, around):
    reply = around.format(WHOLE[: IN_NINTH + end])
    assert texts(reply) == (TEN[:8], "repaired")


@pytest.mark.parametrize(
    "reply",
    ["I cannot do this.", '{"queries": []}', '{"queries":', '{"queries": ["an unfinished',
     '{"guideline": "people wh', '{"queries": [1, null]}', '{"queries": ["queries"]}'],
)  # fmt: skip
def test_a_reply_without_any_is_unreadable(reply):
    found = READ(reply)
    assert isinstance(found, Unreadable) and found.cause == "no_list"
    assert READ(" \n").cause == "empty"


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        # A text that ends before its list does is whole.
        (WHOLE[: WHOLE.index('",\n  "search 9') + 1], TEN[:8]),
        # A cut in another field takes nothing from the list.
        (json.dumps({"queries": ["a", "b"], "why": "because b"})[:-2], ["a", "b"]),
        # The name of the field and nothing are no queries.
        ('{"queries": ["queries", "Queries:", "a", "", " "]}', ["a"]),
        ('queries: "queries", "a"', ["a"]),
        ('{"queries": ["queries", "a", "b', ["a"]),
        # Without JSON the whole texts in quotation marks behind the name count.
        ('My "best" queries: "a b", "c d" and "e', ["a b", "c d"]),
        ('the queries ["a", "b"], not "c"', ["a", "b"]),
    ],
)
def test_what_is_whole_and_a_query_is_kept(reply, found):
    assert texts(reply)[0] == found


def test_line_ends_become_blanks_and_one_text_is_enough_for_one_query():
    assert texts('{"queries": ["red\\n pot ", "b"]}')[0] == ["red pot", "b"]
    assert texts('{"queries": "red pot"}')[0] == ["red pot"]
    assert texts(WHOLE, QueriesReader(field="queries", most=1))[0] == TEN[:1]


def test_descriptions_have_their_own_field():
    read = QueriesReader(field="item_descriptions_timewise", most=10)
    both = {"guideline": "x", "queries": ["no"], "item_descriptions_timewise": TEN}
    assert texts(json.dumps(both), read)[0] == TEN
    assert read.schema["required"] == ["item_descriptions_timewise"]


@given(st.text(alphabet='{}[]":,\\ aqueries\n`', max_size=200))
def test_no_text_makes_the_reader_fail(text):
    found = READ(text)
    if isinstance(found, Parsed):
        assert found.value and all(one.strip() and one != "queries" for one in found.value)
