"""What an error about a row tells of the rows behind it."""

import pytest
from builders import tables

from harness.base.errors import DataError
from harness.contracts.task import Column
from harness.data import table as further

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
