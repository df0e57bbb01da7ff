import pytest

from harness.calls.pricing import Cost
from harness.reporting.run_lines import cost_line, cost_notes, known, money, session_line, tokens

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


def test_what_is_not_known_is_never_a_number():
    assert known(None, 3) == "unknown"
    assert known(1.5, 12) == "≥ 1.50"
    assert known(1.5, 0) == "1.50"
    assert tokens(None, 3) == "unknown"
    assert tokens(0, 3) == "unknown"
    assert tokens(12_000, 3) == "≥ 12.0k"
    assert tokens(0, 0) == "0"


def test_notes_and_a_line_hold_all_together_and_say_why():
    assert cost_notes("name", COST) == ["name: usage unknown or incomplete for 12 of 400 calls"]
    assert cost_notes("name", NOTHING_KNOWN) == ["name: no price for openai:n, 5 calls"]
    assert cost_notes("name", None) == []
    assert cost_line([COST, NOTHING_KNOWN]) == (
        "paid ≥ 1.50 USD for 403 calls, unknown for 15, saved unknown by 2 reused"
    )
    assert cost_line([]) is None
    line = session_line([{"t/s, candidate": COST}, {}], without=1)
    assert line == (
        "paid ≥ 1.50 USD for 400 calls, unknown for 12; unknown for 1 session that did not end"
    )
