"""The published tables that curation shows are as printed."""

from __future__ import annotations

from harness.contracts.published import PublishedTables

TABLES = PublishedTables("harness_horizon")


def test_table_7_is_as_printed_with_what_does_not_fit():
    table = TABLES.read("table7")
    printed = {row["attribute"]: row["HORIZON"] for row in table.dicts()}
    assert (printed["users"], printed["items"]) == (54.51, 34.52)
    assert printed["interactions"] == 485.89
    assert printed["mean length of a history"] == 9.07
    assert round(485.89 / 54.51, 2) == 8.91
    assert "8.91" in table.notes[0]
    assert {row["attribute"]: row["Amazon Reviews"] for row in table.dicts()}["users"] == 54.51


def test_the_means_of_appendix_b_add_up_to_table_7_s():
    values = [row["value"] for row in TABLES.read("means").dicts()]
    assert values == [4.99, 4.09]
    assert round(sum(values), 2) == 9.08
