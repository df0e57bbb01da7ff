"""The paper's tables as they are shipped, against what the paper says of them."""

import pytest
from harness_perrecbench.published import TABLES, published, rows

NUMBERS = {row.what: row.value for row in published(rows.Number).rows}


def mean(values):
    known = list(values)
    return sum(known) / len(known)


def test_every_table_names_its_source_and_its_columns_as_its_rows_do():
    for kind in TABLES.values():
        table = published(kind)
        assert table.source.startswith(("Table ", "Section"))
        assert table.title and table.units and table.rows
        columns = [column.replace(" ", "_").replace("-", "_") for column in table.columns]
        assert columns == list(kind.__struct_encode_fields__)


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        (rows.Result, 19),
        (rows.Prompting, 6),
        (rows.Tuning, 2 * 6),
        (rows.Statistic, 5),
        (rows.Number, 15),
    ],
)
def test_no_row_is_lost(kind, count):
    assert len(published(kind).rows) == count


def test_cells_stand_where_the_paper_has_them():
    [sonnet] = [one for one in published(rows.Result).rows if one.model == "CLAUDE-3.5-SONNET"]
    assert sonnet.kind == "proprietary"
    assert sonnet.cells == {
        ("easy", "pointwise"): 0.27, ("easy", "pairwise"): 0.34, ("easy", "listwise"): 0.31,
        ("medium", "pointwise"): 0.11, ("medium", "pairwise"): 0.07, ("medium", "listwise"): 0.14,
        ("hard", "pointwise"): 0.13, ("hard", "pairwise"): 0.10, ("hard", "listwise"): 0.12,
    }  # fmt: skip
    assert sonnet.average == 0.18


def test_the_same_results_are_the_same_in_every_table():
    main = {row.model: list(row.cells.values()) for row in published(rows.Result).rows}
    prompting = {row.prompting: list(row.cells.values()) for row in published(rows.Prompting).rows}
    tuning = {
        row.base: list(row.cells.values())
        for row in published(rows.Tuning).rows
        if row.training == "PROMPTING"
    }
    assert prompting["ZERO-SHOT"] == main["GPT-4o-MINI"]
    assert tuning["LLAMA-3.1-8B-IT"] == main["LLAMA3.1-8B-IT"]
    # The paper's own tables differ in one cell of Nemo, medium listwise.
    assert tuning["MISTRAL-12B-NEMO-IT"][5] == 0.07
    assert main["MISTRAL-12B-NEMO-IT"][5] == 0.01


def test_a_dash_is_unknown_and_no_zero():
    dashes = [row.training for row in published(rows.Tuning).rows if None in row.cells.values()]
    assert dashes == ["POINTWISE ONLY", "PAIRWISE ONLY"]
    for row in published(rows.Tuning).rows:
        assert (row.average is None) == (None in row.cells.values())


@pytest.mark.parametrize("kind", [rows.Result, rows.Prompting, rows.Tuning])
def test_averages_that_do_not_follow_from_the_cells_are_noted(kind):
    told = " ".join(published(kind).notes).casefold()
    for row in published(kind).rows:
        found = None if row.average is None else mean(row.cells.values())
        if found is not None and round(found, 2) != row.average:
            named = {rows.Result: "model", rows.Prompting: "prompting", rows.Tuning: "training"}
            name = getattr(row, named[kind])
            line = f"{name} {found:.3f} for {row.average:.2f}".replace("0.", ".")
            assert line.casefold() in told


def test_numbers_of_the_text_follow_from_table_1_or_are_noted():
    main = published(rows.Result).rows

    def of(*levels, ask):
        return mean(row.cells[level, ask] for row in main for level in levels)

    for ask, beyond in (("pairwise", 0.07), ("listwise", 0.05)):
        assert NUMBERS[f"{ask} at medium and hard"] == beyond
        assert of("medium", "hard", ask=ask) == pytest.approx(beyond, abs=0.01)
    assert of("easy", ask="pointwise") == pytest.approx(NUMBERS["pointwise at easy"], abs=0.0055)
    every = {ask: of("easy", "medium", "hard", ask=ask) for ask in rows.ASKS}
    sums = {ask: NUMBERS[f"{ask} over all sizes"] / 3 for ask in rows.ASKS}
    assert {ask: round(value, 3) for ask, value in every.items()} == {
        "pointwise": 0.07, "pairwise": 0.128, "listwise": 0.118,
    }  # fmt: skip
    assert sums == {ask: pytest.approx(value, abs=0.01) for ask, value in every.items()}


def test_a_published_table_can_be_shown():
    sheet = published(rows.Statistic).sheet(digits=0)
    assert sheet.title == "Published, Table 4: the groups (counts)"
    assert sheet.rows[0] == ("reviews", 2438, 1007)
