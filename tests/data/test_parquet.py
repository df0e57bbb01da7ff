"""Parquet files: batches, wanted columns only, and damage."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders.tables import refused, table_of, written

from harness.base.errors import DataError
from harness.contracts.task import Column
from harness.data import parquet


def test_only_wanted_columns_are_read(tmp_path):
    path = written(tmp_path / "t.parquet", {"a": [1, 2], "b": ["x", None]})
    rows = [row for _, row in parquet.read_parquet(path, wanted=["b"])]
    assert rows == [{"b": "x"}, {"b": None}]


def test_a_table_reads_nested_values_and_names_rows_without_lines(tmp_path):
    path = written(
        tmp_path / "t.parquet",
        {"user": [7, 8], "items": [["a"], None], "score": [1.5, float("nan")]},
    )
    columns = {"user": Column(), "items": Column(type="list", required=False)}
    assert list(table_of(path, columns=columns).rows()) == [
        (1, {"user": "7", "items": ["a"]}),
        (2, {"user": "8", "items": None}),
    ]
    error = refused(table_of(path, columns={"score": Column(type="number")}))
    assert error.where == f"{path}, row 2, column 'score'"
    assert (error.found, error.hint) == ("nan (number)", "write a missing number as null")


def test_repeated_names_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), path)
    with pytest.raises(DataError, match="two columns have the name 'a'"):
        parquet.read_names(path)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda data: b"", "the file is empty"),
        (lambda data: data[:8], "the file cannot be read as Parquet"),
        (lambda data: data[:-1], "the file cannot be read as Parquet"),
        (
            lambda data: data[:100] + b"\xff" * 3900 + data[4000:],
            "the file cannot be read as Parquet",
        ),
    ],
)
def test_damaged_files_are_told(tmp_path, damage, problem):
    path = written(tmp_path / "t.parquet", {"a": [f"{n:09d}" for n in range(5000)]})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError) as caught:
        list(parquet.read_parquet(path, wanted=None))
    assert (caught.value.problem, caught.value.where) == (problem, str(path))
