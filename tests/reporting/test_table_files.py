import csv

import pyarrow.parquet as pq
import pytest
from builders.runs import make_metric, make_summary

from harness.analysis.run_tables import Export, metric_rows
from harness.base.errors import DataError
from harness.reporting.label_files import csv_bytes
from harness.reporting.table_files import safe_text, write_table

ROWS = [
    {"name": "=1+1", "value": -0.5, "n": 3, "good": True},
    {"name": "", "value": None, "n": None, "good": None},
    {"name": 'says "yes",\nand more', "value": 1e-05, "n": -1, "good": False},
]


def a_table(rows) -> Export:
    columns = {"name": "text", "value": "number", "n": "whole", "good": "truth"}
    return Export(name="things", columns=columns, rows=rows)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("-1", "'-1"),
        ("\t=1", "'\t=1"),
        ("  =1", "'  =1"),
        ("\r=1", "'\\x0d=1"),
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("a\x00b", "a\\x00b"),
    ],
)
def test_a_cell_is_no_formula_and_steers_no_terminal(text, safe):
    assert safe_text(text) == safe


def test_line_ends_of_items_become_blanks_or_stay_and_no_item_is_a_formula():
    rows = [{"text": "a\nb", "more": "not asked for"}, {"text": "\t=1"}]
    assert csv_bytes(["text"], rows) == b"text\na b\n' =1\n"
    assert csv_bytes(["text"], rows[:1], lines=True) == b'text\n"a\nb"\n'


def test_a_table_is_read_back(tmp_path):
    folder = tmp_path / "it's"
    folder.mkdir()
    table = a_table(lambda: map(dict, ROWS))
    path = write_table(folder, table, "csv")
    assert path.name == "things.csv"
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [
            ["name", "value", "n", "good"],
            ["'=1+1", "-0.5", "3", "true"],
            ["", "", "", ""],
            ['says "yes",\nand more', "1e-05", "-1", "false"],
        ]
    assert path.read_bytes().splitlines()[2] == b'"",,,', "an empty text is none that is missing"
    table = pq.read_table(write_table(folder, table, "parquet"))
    assert table.to_pylist() == ROWS
    assert [str(field.type) for field in table.schema] == ["string", "double", "int64", "bool"]


def test_an_error_of_the_rows_stays_what_it_is(tmp_path):
    def rows():
        yield dict(ROWS[0])
        raise DataError("a score cannot be read", where="scores.jsonl:2")

    with pytest.raises(DataError, match="a score cannot be read"):
        write_table(tmp_path, a_table(rows), "parquet")


def test_of_a_metric_that_lacks_nothing_no_share_is_missing():
    metrics = {"whole": make_metric(0.5, n=4), "part": make_metric(0.5, n=3, missing_share=0.25)}
    rows = metric_rows("r", "m", make_summary(metrics=metrics))
    assert [row["missing_share"] for row in rows] == [0.0, 0.25]
