import json

import pytest

from harness.calls.pricing import Cost
from harness.reporting.run_lines import (
    cost_line,
    cost_notes,
    laid_out,
    money,
    rate_limited,
    session_line,
    tokens,
)


def limits(**given):
    return {"ceiling": 64, "limit": 64, "lowest": 64, "cuts": 0, "pauses": 0, **given}


def test_models_that_were_slowed_have_a_line_for_all_sessions():
    sessions = [
        {"openai:a": limits(cuts=2, lowest=16), "openai:b\x1b": limits(cuts=1, lowest=32)},
        {"openai:a": limits(cuts=39, lowest=1, ceiling=8)},
    ]
    assert list(rate_limited(sessions)) == [
        "openai:a: slowed by rate limits (HTTP 429) 41 times, down to 1 of 64 requests in flight",
        "openai:b\\x1b: slowed by rate limits (HTTP 429) once, down to 32 of 64 requests in flight",
    ]
    assert not [*rate_limited([{}, {"openai:a": limits(pauses=3)}, {"other:b": {"learnt": {}}}])]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a text that is longer than the width", '"a text that is longer than the width"'),
        # As wide as the width itself fits, one more does not.
        ({"abcdef": 12345678}, '{"abcdef": 12345678}'),
        ({"abcdef": 123456789}, '{\n  "abcdef": 123456789\n}'),
        # The comma behind a member counts as well: the first is 23 wide with it.
        (
            {"a": [100, 200, 300], "b": "é"},
            '{\n  "a": [\n    100,\n    200,\n    300\n  ],\n  "b": "é"\n}',
        ),
        ({"a": [100, 200, 30], "b": ["x\ny"]}, '{\n  "a": [100, 200, 30],\n  "b": ["x\\ny"]\n}'),
    ],
)
def test_what_fits_stands_on_one_line(value, text):
    assert laid_out(value, width=20 if "200" not in str(value) else 22) == text


def test_no_line_of_short_members_is_wider_than_the_width_and_nothing_is_lost():
    value = {"deep": [{"n": [number] * 9, "name": "x" * number} for number in range(12)]}
    for width in (30, 60, 90):
        text = laid_out(value, width=width)
        assert json.loads(text) == value
        assert max(map(len, text.split("\n"))) <= width
    # Each of the twelve on a line, between the two brackets above and below.
    assert len(text.split("\n")) == 12 + 4


COST = Cost(
    model="openai:m", currency="USD", priced=True, asked=400, paid=1.5, paid_unknown=12,
    reused=0, saved=0.0, saved_unknown=0,
)  # fmt: skip
NOTHING_KNOWN = Cost(
    model="openai:n", currency="USD", priced=False, asked=3, paid=None, paid_unknown=3,
    reused=2, saved=None, saved_unknown=2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0"), (0.0024, "0.0024"), (0.00001, "1.0e-05"), (12.345, "12.35"), (1234.5, "1,234.50")],
)
def test_small_amounts_are_seen_and_nothing_is_nothing(amount, text):
    assert money(amount) == text


def test_tokens_of_which_none_were_reported_are_unknown():
    assert (tokens(0, 3), tokens(0, 0)) == ("unknown", "0")


def test_notes_and_a_line_hold_all_together_and_say_why():
    assert cost_notes("name", COST) == ["name: usage unknown or incomplete for 12 of 400 calls"]
    assert cost_notes("name", NOTHING_KNOWN) == ["name: no price for openai:n, 5 calls"]
    assert cost_notes("name", None) == []
    found = cost_line([COST, NOTHING_KNOWN])
    assert found == "paid ≥ 1.50 USD for 403 calls, unknown for 15, saved unknown by 2 reused"
    assert cost_line([]) is None
    line = session_line([{"t/s, candidate": COST}, {}], without=1)
    assert line == (
        "paid ≥ 1.50 USD for 400 calls, unknown for 12; unknown for 1 session that did not end"
    )
