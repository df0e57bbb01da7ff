"""Tables by columns: the same values and the same errors as by rows, from every kind of source."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders.tables import refused, table_of, written

from harness.base.errors import DataError
from harness.contracts.task import Column
from harness.data import table as table_module

COLUMNS = {
    "user": Column(aliases=("user_id",)),
    "kind": Column(one_of=("liked", "skipped")),
    "stars": Column(type="number", required=False),
    "when": Column(type="any", required=False),
}


def table(*paths, columns=COLUMNS):
    return table_of(*paths, columns=columns, name="notes")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_other_formats_are_grouped_by_rows(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(table_module, "BATCH_ROWS", 2)
    columns = {"user": [1, 2, 3], "kind": ["liked", "liked", "skipped"]}
    path = written(tmp_path / f"a.{ending}", columns)
    assert [(batch.first, batch.columns) for batch in table(path).batches("user", "kind")] == [
        (1, {"user": ["1", "2"], "kind": ["liked", "liked"]}),
        (3, {"user": ["3"], "kind": ["skipped"]}),
    ]


def test_numbers_of_rows_run_on_over_batches_row_groups_and_files(tmp_path, monkeypatch):
    monkeypatch.setattr(table_module, "BATCH_ROWS", 2)
    first = tmp_path / "a.parquet"
    people = pa.table({"user": ["a", "b", "c", "d"], "kind": ["liked"] * 4})
    pq.write_table(people, first, row_group_size=3)
    second = tmp_path / "b.csv"
    second.write_text("kind,user\nskipped,e\n")
    parts = table(first, second).batches("user")
    assert [(part.first, part.columns["user"]) for part in parts] == [
        (1, ["a", "b"]),
        (3, ["c"]),
        (4, ["d"]),
        (5, ["e"]),
    ]


@pytest.mark.parametrize(
    ("column", "values", "row", "found"),
    [
        ("kind", ["liked", "Like", "liked"], 2, "'Like'"),
        ("kind", ["liked", "liked", None], 3, "nothing"),
        (
            "user",
            [1.5, 2.0, 2.0],
            1,
            "1.5 (number)\n            2 of the next 2 rows cannot be used either: "
            "2.0 (number) in 'user' (2)",
        ),
        ("stars", [1.0, float("nan"), 2.0], 2, "nan (number)"),
    ],
)
def test_errors_name_file_row_and_column_as_rows_do(tmp_path, column, values, row, found):
    columns: dict[str, Any] = {"user": ["a", "b", "c"], "kind": ["liked"] * 3, "stars": [1.0] * 3}
    path = written(tmp_path / "a.parquet", {**columns, column: values})
    with pytest.raises(DataError) as by_columns:
        list(table(path).batches())
    assert by_columns.value.where == f"{path}, row {row}, column '{column}'"
    assert by_columns.value.found == found
    assert str(by_columns.value) == str(refused(table(path)))


@pytest.mark.parametrize("kept", ["as it is", "as a dictionary"])
def test_parquet_gives_every_row_of_its_columns_under_their_own_names(tmp_path, kept):
    columns = {
        "more": pa.array([0] * 200),
        "user_id": pa.array([1, 1, 2, 3] * 50),
        "kind": pa.array(["liked", "skipped"] * 100),
        "stars": pa.array([4.5, None] * 100),
        "when": pa.array(["May", None, "June", "June"] * 50),
    }
    if kept == "as a dictionary":
        columns = {name: array.dictionary_encode() for name, array in columns.items()}
    [batch] = table(written(tmp_path / "a.parquet", columns)).batches()
    assert (batch.first, len(batch)) == (1, 200)
    assert batch.columns == {
        "user": ["1", "1", "2", "3"] * 50,
        "kind": ["liked", "skipped"] * 100,
        "stars": [4.5, None] * 100,
        "when": ["May", None, "June", "June"] * 50,
    }


def test_a_bad_row_of_a_later_batch_is_counted_from_the_start_of_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(table_module, "BATCH_ROWS", 2)
    first = written(tmp_path / "a.parquet", {"user": ["a"], "kind": ["liked"]})
    second = written(
        tmp_path / "b.parquet", {"user": ["a", "b", None], "kind": ["liked", "liked", "liked"]}
    )
    with pytest.raises(DataError) as caught:
        list(table(first, second).batches())
    assert caught.value.where == f"{second}, row 3, column 'user'"


def test_a_missing_column_is_told_whichever_are_asked_for_and_so_are_missing_rows(tmp_path):
    path = written(tmp_path / "a.parquet", {"user": ["a"]})
    with pytest.raises(DataError, match="column 'kind' is missing"):
        list(table(path).batches("user"))
    none = pa.array([], pa.string())
    with pytest.raises(DataError, match="has no rows"):
        list(table(written(path, {"user": none, "kind": none})).batches())


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_only_what_is_asked_for_is_checked_in_every_format(tmp_path, ending):
    columns = {"user": ["u", "v"], "kind": ["liked", None], "stars": ["five", "six"]}
    path = written(tmp_path / f"a.{ending}", columns)
    [batch] = table(path).batches("user")
    assert batch.columns == {"user": ["u", "v"]}
    [absent] = table(path).batches("when")
    assert absent.columns == {"when": [None, None]}
    with pytest.raises(DataError, match="column 'kind'"):
        list(table(path).batches("user", "kind"))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_without_declared_columns_batches_have_what_the_rows_have(tmp_path, ending):
    path = written(tmp_path / f"a.{ending}", {"x": ["1", "2"], "y": [None, "3"]})
    [batch] = table(path, columns={}).batches()
    assert (batch.first, len(batch)) == (1, 2)
    assert batch.columns == {"x": ["1", "2"], "y": ["" if ending == "csv" else None, "3"]}
    assert [one.columns for one in table(path, columns={}).batches("x")] == [{"x": ["1", "2"]}]
