"""What is said of data that cannot be read, word for word; DIR is the folder that was given."""

import gzip
import os

import pytest

from harness.data import open_dataset
from harness.errors import HarnessError
from harness.tasks.task import Column, DataSpec, TableSpec

ROWS = TableSpec(files=("a.*",), columns={"user": Column()})
ONE = DataSpec(tables={"rows": ROWS})
TWO = DataSpec(tables={"rows": ROWS, "items": TableSpec(files=("b.*",))})

FILES = {
    ("a.jsonl", b'{"user": "a"}\n{"user": }\n'): """\
DIR/a.jsonl, row 2 (line 2): malformed JSON
  found:    Expecting value at '}'
  expected: a JSON object""",
    ("a.jsonl", b'{"user": "a"}\n[1]\n'): """\
DIR/a.jsonl, row 2 (line 2): the line holds no object
  found:    a JSON list: [1] (list)
  expected: one JSON object, such as {"user": "u1"}""",
    ("a.jsonl", b'{"user": NaN}\n'): """\
DIR/a.jsonl, row 1 (line 1), column 'user': malformed JSON
  found:    NaN
  expected: a finite number, null or text in UTF-8""",
    ("a.jsonl", b'{"user": "\xff"}\n'): """\
DIR/a.jsonl, line 1: the text is not UTF-8
  found:    byte 0xff at offset 10
  expected: UTF-8
  to do:    write the file again as UTF-8; older exports are often Latin-1 or Windows-1252""",
    ("a.jsonl", b'{"other": 1}\n'): """\
DIR/a.jsonl, row 1 (line 1): column 'user' is missing
  found:    columns other
  expected: 'user'""",
    ("a.json", b'[{"user": "a"}, 3]'): """\
DIR/a.json, row 2 (line 1): malformed rows
  found:    an element that begins with '3'
  expected: an object""",
    ("a.json", b'[{"user": "a"}'): """\
DIR/a.json, row 1 (line 1): the array is never closed
  found:    the end of the file after 1 whole rows
  expected: a ] after the last row
  to do:    the file may have been cut off: fetch or write it again""",
    ("a.json", b'[{"user": }]'): """\
DIR/a.json, row 1 (line 1): malformed JSON
  found:    Expecting value at '}]'
  expected: a JSON object""",
    ("a.csv", b"user,x\na,1,2\n"): """\
DIR/a.csv, row 1 (line 2): the row has more cells than the header has columns
  found:    3 cells; the first too many: '2'
  expected: 2 cells
  to do:    put quotes around cells that hold the delimiter or a line end""",
    ("a.csv", b"user,x\na\n"): """\
DIR/a.csv, row 1 (line 2): the row has fewer cells than the header has columns
  found:    1 cells; 'x' is the first without one
  expected: 2 cells""",
    ("a.csv", b'user,x\n"a,1\n'): """\
DIR/a.csv, row 1 (line 2): a quoted cell is never closed
  expected: a closing " before the end of the file
  to do:    the quote was opened in this row; the file ends at line 2""",
    ("a.csv", b'user,x\n"a"b,1\n'): """\
DIR/a.csv, row 1 (line 2): a quoted cell goes on after its closing quote
  expected: cells in which a " is written twice, and which end in one""",
    ("a.csv", b"users,x\na,1\n"): """\
DIR/a.csv: column 'user' is missing
  found:    columns users, x
  expected: 'user'
  to do:    'users' is the nearest name: rename it if it is 'user'""",
    ("a.csv", b""): """\
DIR/a.csv: the file is empty
  found:    0 rows
  expected: at least one row""",
    ("a.csv", gzip.compress(b"user\na\n", mtime=0)): """\
DIR/a.csv: the file is gzip, which its name does not say
  found:    first bytes b'\\x1f\\x8b'
  expected: UTF-8 text
  to do:    name it with .gz at the end""",
    ("a.csv", b"PAR1abc"): """\
DIR/a.csv: the file is Parquet, which its name does not say
  found:    first bytes b'PAR1'
  expected: UTF-8 text
  to do:    name it with .parquet at the end""",
    ("a.parquet", b"user\n"): """\
DIR/a.parquet: the file cannot be read as Parquet
  found:    Parquet file size is 5 bytes, smaller than the minimum file footer (8 bytes)
  expected: a whole Parquet file
  to do:    fetch or write it again; it may be cut off, or its name may end wrongly""",
    ("a.xml", b"<a/>"): """\
DIR/a.xml: the file is of a format that is not read as a table
  found:    a name that ends in '.xml'
  expected: .jsonl, .ndjson, .json, .csv, .tsv, .parquet, each but .parquet also with .gz \
or .zst""",
}


def said(folder, spec=ONE, place="", read=None, **options):
    given = {"limit": None, "seed": 0, "package": None, "task": "quiz", **options}

    def all_rows(data):
        return list(data.table("rows").rows())

    with pytest.raises(HarnessError) as caught:
        (read or all_rows)(open_dataset(spec, data=str(folder / place), **given))
    return str(caught.value).replace(str(folder), "DIR")


@pytest.mark.parametrize(("name", "content"), FILES)
def test_files(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert said(tmp_path) == FILES[name, content]


def test_places(tmp_path):
    (tmp_path / "a.csv").write_text("user\na\n")
    os.mkfifo(tmp_path / "pipe")
    assert (
        said(tmp_path, place="none")
        == """\
DIR/none: there is no such file or folder
  expected: the file or folder that --data names"""
    )
    assert (
        said(tmp_path, place="pipe")
        == """\
DIR/pipe: this is no ordinary file, and a run reads its data more than once
  expected: a file or folder on disk"""
    )
    assert (
        said(tmp_path, TWO, place="a.csv")
        == """\
DIR/a.csv: one file was given, and task 'quiz' has 2 tables
  expected: a folder that holds, for each table, one of its files:
      rows: a.*
      items: b.*
  to do:    give the folder with --data DIR"""
    )
    assert (
        said(tmp_path, limit=0)
        == """\
the limit keeps nothing
  found:    --limit 0
  expected: 1 or more"""
    )


def test_tables(tmp_path):
    (tmp_path / "a.csv").write_text("user\na\n")
    (tmp_path / "a.tsv").write_text("user\nb\n")
    (tmp_path / "b.csv").write_text("x\n1\n")
    assert (
        said(tmp_path, TWO, read=lambda data: data.table())
        == """\
task 'quiz' has several tables, and none was named
  expected: one of: rows, items"""
    )
    assert (
        said(tmp_path, TWO, read=lambda data: data.table("row"))
        == """\
task 'quiz' has no table 'row'
  expected: one of: rows, items
  to do:    'rows' is the nearest name"""
    )
    assert (
        said(tmp_path, TWO, read=lambda data: data.path("rows"))
        == """\
table 'rows' of task 'quiz' is in several files
  found:    DIR/a.csv, DIR/a.tsv
  expected: one file"""
    )
    assert (
        said(tmp_path, TWO, read=lambda data: data.choose([]))
        == """\
DIR/a.csv, DIR/a.tsv, DIR/b.csv: the data of task 'quiz' leaves no users to choose from
  expected: at least one of the users"""
    )
