"""What an error about a row tells of the rows behind it."""

import pyarrow as pa
import pytest
from builders import tables
from pyarrow import csv, parquet

from harness.base.errors import DataError
from harness.contracts.task import Column
from harness.data import table as further
from harness.data.source import FileSource

COLUMNS = {
    "user": Column(aliases=("uid",)),
    "kind": Column(one_of=("liked", "skipped")),
    "stars": Column(type="integer", required=False),
}


def refused(folder, name, text):
    """The error of reading these rows, the same whether by rows or by columns."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    table = tables.table_of(path, columns=COLUMNS, name="notes")
    error = tables.refused(table)
    with pytest.raises(DataError) as by_columns:
        list(table.batches())
    assert str(by_columns.value) == str(error)
    return error


def test_values_that_cannot_be_used_are_counted_the_most_frequent_first(tmp_path):
    error = refused(
        tmp_path,
        "a.csv",
        "uid,kind,stars\n1,liked,5\n2,LIKED,5\n3,view,4\n4,skipped,\n5,view,x\n,liked,3\n",
    )
    assert error.where == f"{tmp_path / 'a.csv'}, row 2 (line 3), column 'kind'"
    assert error.found == (
        "'LIKED'\n            3 of the next 4 rows cannot be used either: "
        "'view' in 'kind' (2), 'x' in 'stars' (1), '' in 'uid' (1)"
    )


def test_rows_of_json_need_not_have_the_same_columns(tmp_path):
    error = refused(
        tmp_path,
        "a.jsonl",
        '{"user": "1", "kind": "no"}\n{"uid": 2, "kind": "liked", "stars": "x"}\n'
        '{"user": null, "kind": "liked"}\n{"kind": "liked"}\n{"user": "4", "kind": "no"}\n',
    )
    # The fourth row lacks a column: nothing behind it is looked at.
    assert error.found == (
        "'no'\n            2 of the next 2 rows cannot be used either: "
        "'x' in 'stars' (1), nothing in 'user' (1)"
    )


def test_only_so_many_rows_and_values_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(further, "MOST_ROWS", 7)
    rows = "".join(f"{number},k{number}\n" for number in range(20))
    assert refused(tmp_path, "a.csv", f"user,kind\n{rows}").found == (
        "'k0'\n            7 of the next 7 rows cannot be used either: 'k1' in 'kind' (1), "
        "'k2' in 'kind' (1), 'k3' in 'kind' (1), 'k4' in 'kind' (1), 'k5' in 'kind' (1) "
        "and 2 other values"
    )


@pytest.mark.parametrize("by", ["rows", "batches", "batches of one column"])
@pytest.mark.parametrize("write", [csv.write_csv, parquet.write_table])
def test_rows_behind_a_bad_one_are_read_on_to_and_none_is_read_again(
    tmp_path, monkeypatch, by, write
):
    monkeypatch.setattr(further, "BATCH_ROWS", 2)
    path = tmp_path / ("a.csv" if write is csv.write_csv else "a.parquet")
    kinds = ["liked", "liked", "no", "no", "no", "liked"]
    write(pa.table({"user": [*"123456"], "kind": kinds}), path)
    table = tables.table_of(path, columns=COLUMNS, name="notes")
    begun = []

    def counted(read):
        def reading(*given, **more):
            found = read(*given, **more)
            begun.extend([found] if found is not None else [])
            return found

        return reading

    for name in ("rows", "batches"):
        monkeypatch.setattr(FileSource, name, counted(getattr(FileSource, name)))
    with pytest.raises(DataError) as caught:
        list(table.rows() if by == "rows" else table.batches(*["kind"] * by.endswith("column")))
    assert "2 of the next 3 rows cannot be used either: 'no' in 'kind' (2)" in caught.value.found
    assert len(begun) == 1
