"""Names with the identifiers that they cite; what is expected was read off the texts by hand."""

import pytest
from harness_gistbench.citations import CitedLine, cited_lines, meant


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("2", ["2"]),
        ("ID 1, [2] and 003", ["1", "2", "3"]),
        ("1 & 2", ["1", "2"]),
        ("1 2 3", ["1", "2", "3"]),
        ("1-3", ["1", "2", "3"]),
        ("2 to 4", ["2", "3", "4"]),
        ("4-2", ["4-2"]),
        ("3-9", ["3-9"]),
        ("0-2", ["0-2"]),
        ("1, nothing", ["1", "nothing"]),
    ],
)
def test_what_a_citation_of_numbers_means(text, ids):
    assert [*meant(text, {"1", "2", "3", "4"}, are_numbers=True)] == ids


def test_what_is_one_identifier_is_not_divided():
    assert [*meant("1-3", {"1", "2", "3"}, are_numbers=False)] == ["1-3"]
    known = {"1, 2", "1", "2"}
    assert [*meant("1, 2", known, are_numbers=True)] == ["1, 2"]


@pytest.mark.parametrize(
    ("line", "name", "ids"),
    [
        ("- Night trains: 2, 5", "Night trains", ["2", "5"]),
        ("* **Night trains** (items 2 and 5)", "Night trains", ["2", "5"]),
        ("1. Night trains – [2][5]", "Night trains", ["2", "5"]),
        ("(3) Night trains (supporting evidence: #2; 5).", "Night trains", ["#2", "5"]),
        ("- Films: noir: 1-3", "Films: noir", ["1-3"]),
        ("• Trains — supported by ids 4", "Trains", ["4"]),
    ],
)
def test_a_line_of_a_list_names_and_cites(line, name, ids):
    assert cited_lines(line) == [CitedLine(name, ids)]


def test_a_line_cites_where_it_is_one_of_a_list_or_among_its_like():
    text = "Interests:\n- Trains: 1\n- Boats, of all kinds\nThat is all."
    assert cited_lines(text) == [CitedLine("Trains", ["1"]), "- Boats, of all kinds"]
    assert cited_lines("Trains: 1\nBoats: 2, 3") == [
        CitedLine("Trains", ["1"]), CitedLine("Boats", ["2", "3"]),
    ]  # fmt: skip
    assert cited_lines("The person watched two: 1\nNothing else can be said.") is None
    assert cited_lines("Trains: 1") is None
    assert cited_lines("") is None
    assert cited_lines("- (1, 2)") is None
    assert cited_lines("- Trains [1] and boats [2]: 3") is None
    assert cited_lines(f"- {'a' * 3_990}: 1") == [CitedLine("a" * 3_990, ["1"])]
    assert cited_lines(f"- {'a' * 4_000}: 1") is None
