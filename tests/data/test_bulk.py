"""Files under hostile paths, with hostile names and values: SQL has the rows that are read by one.

A path may look like a partition (`user=bob`), a pattern (`[*?]`) or an address; beside each file
lies another one that the pattern would match.
"""

import csv
import gzip
import io
import json
import re
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from builders.tables import table_of
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError
from harness.contracts.task import Column
from harness.data import Table
from harness.data.database import ADDED, Database

SIGNS = [*"aB=*?[]'\"%~ ,;:!&#{}()$-\\|<>@^`\t\né😀", "user", "item", "bob", "..", "//"]
NAMED = ["user", "item", "select", "Line", "c0", "filename", "file_row_number", "a b", "é", "a.b"]
VALUES = ["bob", " ", "NULL", "null", "nan", "1", "-0", "1.0", "{}", "[1,]", '"', "'", ",", "a\tb"]


def is_name(part):
    """Whether a folder may have this name."""
    return part.strip(".") != "" and not set("/\0") & set(part) and part.isprintable()


parts = st.lists(st.sampled_from(SIGNS), min_size=1, max_size=3).map(
    lambda signs: "".join(signs).replace("/", "")
)
# SQL misreads two names: one with NUL, and a carriage return above rows of blanks.
names = st.sampled_from(NAMED) | st.text(min_size=1, max_size=6).filter(
    lambda name: not {"\0", "\r"} & set(name)
)
texts = st.none() | st.sampled_from(VALUES) | st.text(min_size=1, max_size=8)
folders = parts.filter(is_name) | st.sampled_from(
    ["user=bob", "item=3", "user=bob'", "a*b", "[ab]", "??", "file:", "x.gz"]
)


@st.composite
def tables(draw):
    """The names of columns, and rows of texts."""
    unlike = names.filter(lambda name: name.lower() not in ADDED)
    columns = draw(st.lists(unlike, min_size=2, max_size=3, unique_by=str.lower))
    row = st.lists(texts, min_size=len(columns), max_size=len(columns))
    return columns, draw(st.lists(row, min_size=1, max_size=4))


def delimited(columns, rows, delimiter):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([columns, *rows])
    return text.getvalue().encode()


def lines(columns, rows):
    objects = (json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
    return "".join(f"{one}\n" for one in objects).encode()


def parquet(columns, rows):
    cells = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(cells, columns), stream)
    return stream.getvalue()


WRITERS = {
    ".csv": lambda columns, rows: delimited(columns, rows, ","),
    ".tsv": lambda columns, rows: delimited(columns, rows, "\t"),
    ".csv.gz": lambda columns, rows: gzip.compress(delimited(columns, rows, ",")),
    ".jsonl": lines,
    ".json": lines,
    ".jsonl.zst": lambda columns, rows: zstandard.compress(lines(columns, rows)),
    ".parquet": parquet,
}


def table(path, columns):
    return table_of(path, columns={name: Column(required=False) for name in columns})


def by_one(of):
    return [(number, *row.values()) for number, row in of.rows()]


def by_sql(of):
    chosen = ", ".join('"' + name.replace('"', '""') + '"' for name in of.columns)
    database = Database({"people": of})
    return database.sql(f"SELECT row, {chosen} FROM people ORDER BY row").fetchall()


def read(how, of):
    try:
        return how(of)
    except DataError as error:
        return str(error)


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("folder", ["user=bob", "item=3/c0=bob", "user=bob/x"])
def test_a_folder_that_looks_like_a_partition_changes_no_value(
    tmp_path, monkeypatch, folder, ending
):
    monkeypatch.delattr(Table, "columns_of")  # reading by rows fails
    rows = [["u1", "tea"], ["u2", "rum"]]
    file = put(tmp_path / folder / f"ratings{ending}", WRITERS[ending](["user", "item"], rows))
    assert by_sql(table(file, ["user", "item"])) == [(1, "u1", "tea"), (2, "u2", "rum")]


@pytest.mark.parametrize("ending", [".csv.gz", ".jsonl.zst"])
def test_nor_does_the_folder_of_temporary_files(tmp_path, monkeypatch, ending):
    temporary = tmp_path / "user=bob" / "c0=bob"
    temporary.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    file = put(tmp_path / f"ratings{ending}", WRITERS[ending](["user", "item"], [["u1", "tea"]]))
    assert by_sql(table(file, ["user", "item"])) == [(1, "u1", "tea")]


@given(data=st.data(), ending=st.sampled_from([*WRITERS]), held=tables())
def test_sql_has_the_rows_that_are_read_one_by_one(data, ending, held):
    columns, rows = held
    partitions = st.sampled_from([*columns, "c0", "line"]).map(lambda name: f"{name}=bob")
    folder = data.draw(st.lists(partitions.filter(is_name) | folders, min_size=1, max_size=2))
    stem = data.draw(parts)
    with tempfile.TemporaryDirectory() as root:
        matched = Path(root, *(re.sub(r"[*?]|\[.*\]", "a", part) for part in folder))
        wrong = [["wrong"] * len(columns)]
        put(matched / f"{re.sub(r'[*?]', 'a', stem)}{ending}", WRITERS[ending](columns, wrong))
        file = Path(root, *folder, f"{stem}{ending}")
        of = table(put(file, WRITERS[ending](columns, rows)), columns)
        assert read(by_sql, of) == read(by_one, of)
