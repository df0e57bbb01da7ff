"""What is said of data that cannot be read, word for word; DIR is the folder that was given."""

import csv
import gzip
import os

import pytest
import zstandard

from harness.data import delimited, open_dataset
from harness.data.dataset import Dataset
from harness.data.table import Table
from harness.errors import HarnessError
from harness.tasks.task import Column, DataSpec, HubSpec, TableSpec

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
    ("a.csv", b"user,x,user\n"): """\
DIR/a.csv, line 1: two columns are called 'user'
  found:    columns 1 and 3 of the header
  expected: a header that names each column once
  to do:    rename or remove one of them""",
    ("a.csv", b"user,x\na\rb,1\n"): """\
DIR/a.csv, row 1 (line 2): a carriage return stands inside a cell that is not quoted
  expected: lines that end in LF or CRLF, and quotes around cells that hold line ends
  to do:    old Macintosh files end lines in CR alone: convert the line ends""",
    ("a.csv", b"user,x\n,1\n"): """\
DIR/a.csv, row 1 (line 2), column 'user': the value is missing
  found:    ''
  expected: a value in every row""",
    ("a.csv", b"user\n"): """\
DIR/a.csv: table 'rows' has no rows
  expected: at least one row""",
    ("a.csv", b"user;x\na;1\n"): """\
DIR/a.csv: column 'user' is missing
  found:    columns user;x
  expected: 'user'
  to do:    the header seems to be separated by ';'; CSV takes commas, TSV tabs""",
    ("a.csv", b""): """\
DIR/a.csv: the file is empty
  found:    0 rows
  expected: at least one row""",
    ("a.csv.gz", gzip.compress(b"user\na\n", mtime=0)[:-4]): """\
DIR/a.csv.gz: the file cannot be unpacked as gzip
  found:    Compressed file ended before the end-of-stream marker was reached
  expected: a whole gzip file
  to do:    fetch or pack it again; it may be cut off, or its name may end wrongly""",
    ("a.csv.zst", zstandard.ZstdCompressor().compress(b"user\na\n")[:-4]): """\
DIR/a.csv.zst: the file cannot be unpacked as zstd
  found:    the file ends in the middle of a frame
  expected: a whole zstd file
  to do:    fetch or pack it again; it may be cut off, or its name may end wrongly""",
    ("a.json", b'{\n"data": []}'): """\
DIR/a.json: the file is neither an array of objects nor one object a line
  found:    a first line that is no whole object
  expected: [{…}, {…}] or one {…} on each line
  to do:    write the list of rows alone, without an object around it""",
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

ENTRIES = {
    b'{"a": 1, "b": 2, "a": 3}': """\
DIR/a.json, row 3 (line 1), column 'user': a key stands twice
  found:    'a'
  expected: each key once""",
    b"[1]": """\
DIR/a.json: the rows of this table are the entries of one JSON object
  found:    an array
NO_OBJECT""",
    b"3": """\
DIR/a.json: the rows of this table are the entries of one JSON object
  found:    a file that begins with '3'
NO_OBJECT""",
    b'{"a": 1}\n{"b": 2}\n': """\
DIR/a.json: the rows of this table are the entries of one JSON object
  found:    one object a line
NO_OBJECT""",
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


@pytest.mark.parametrize("content", ENTRIES)
def test_entries(content, tmp_path):
    columns = {"user": Column(), "history": Column(type="any")}
    rows = TableSpec(files=("a.*",), columns=columns, entries=("user", "history"))
    (tmp_path / "a.json").write_bytes(content)
    assert said(tmp_path, DataSpec(tables={"rows": rows})) == ENTRIES[content].replace(
        "NO_OBJECT",
        '  expected: {"KEY": VALUE, …}, where each key is a user and its value the history',
    )


def test_columns(tmp_path):
    columns = {"user": Column(), "n": Column(type="integer")}
    spec = DataSpec(tables={"rows": TableSpec(files=("a.*",), columns=columns)})
    (tmp_path / "a.csv").write_text("user,n\na,x\n")
    assert (
        said(tmp_path, spec)
        == """\
DIR/a.csv, row 1 (line 2), column 'n': not an integer
  found:    'x'
  expected: a whole number, such as 42"""
    )
    (tmp_path / "a.csv").write_text("use,m\na,1\n")
    assert (
        said(tmp_path, spec)
        == """\
DIR/a.csv: columns user, n are missing
  found:    columns use, m
  expected: 'user', 'n'
  to do:    'use' is the nearest name: rename it if it is 'user'"""
    )

    def refused_by_a_benchmark(data):
        raise data.table("rows").bad(1, "user", "a", "an id of letters and digits")

    assert (
        said(tmp_path, spec, read=refused_by_a_benchmark)
        == """\
DIR/a.csv, row 1 (line 2), column 'user': a value that cannot be used
  found:    'a'
  expected: an id of letters and digits"""
    )


def test_a_cell_that_is_longer_than_csv_allows(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "LONGEST_FIELD", 8)
    usual = csv.field_size_limit(8)
    (tmp_path / "a.csv").write_text("user\na\nlonger than eight\n")
    try:
        assert (
            said(tmp_path)
            == """\
DIR/a.csv, row 2 (line 3): the row cannot be read (field larger than field limit (8))
  expected: CSV as RFC 4180 describes it"""
        )
    finally:
        csv.field_size_limit(usual)


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
    (tmp_path / "b.csv").unlink()
    optional = DataSpec(tables={"rows": ROWS, "items": TableSpec(files=("b.*",), required=False)})
    assert (
        said(tmp_path, optional, read=lambda data: data.table("items"))
        == """\
this data holds no table 'items', which task 'quiz' can do without
  expected: b.* in DIR"""
    )
    outside = DataSpec(tables={"rows": TableSpec(files=("../a.*",))})
    assert (
        said(tmp_path, outside)
        == """\
table 'rows' of task 'quiz' looks for files outside its folder
  found:    '../a.*'
  expected: a name or glob inside the folder"""
    )


def refused(spec, **options):
    with pytest.raises(HarnessError) as caught:
        open_dataset(spec, limit=None, seed=0, task="quiz", **options)
    return str(caught.value)


def test_samples(tmp_path):
    assert (
        refused(ONE, data="sample", package=tmp_path)
        == """\
task 'quiz' has no bundled sample
  found:    --data sample
  expected: a file or folder with the data, or a data set on the hub
  to do:    a folder that is called sample is given as --data ./sample"""
    )
    spec = DataSpec(tables={"rows": ROWS}, sample="little")
    assert (
        refused(spec, data="sample", package=tmp_path)
        == f"""\
{tmp_path}/little: the bundled sample of task 'quiz' is not installed
  expected: the folder that the task's `data.sample` names inside its package
  to do:    this is a fault of the plugin's package: its sample files were left out"""
    )
    assert (
        refused(spec, data=None, package=tmp_path)
        == """\
task 'quiz' needs data that is on no hub
  expected: --data FILE or --data DIR: the data, as the task's documentation says where to get it
  to do:    for a first try, --data sample takes the bundled sample"""
    )


def test_places_on_the_hub():
    assert (
        refused(DataSpec(tables={"rows": ROWS}, hub=HubSpec(repo="a/b")), data=None, package=None)
        == """\
task 'quiz' does not say where the hub's 'a/b' holds table 'rows'
  expected: `split` or `hub_files` in the task's table
  to do:    give the data with --data, or mend the task file"""
    )
    with pytest.raises(HarnessError) as caught:
        split_of_the_hub().paths("rows")
    assert (
        str(caught.value)
        == """\
table 'rows' of task 'quiz' is in no file
  found:    a split that the datasets library prepared
  expected: a table with `hub_files`, or data given with --data"""
    )


def split_of_the_hub():
    return Dataset(
        origin="hub",
        task="quiz",
        about={},
        tables={"rows": Table(name="rows", columns={}, sources=())},
        files={},
        pinned={},
        size=None,
        limit=None,
        seed=0,
    )


FIRST, SECOND = "1" * 40, "2" * 40
OR_DATA = "; or give the data with --data"

HUB = {
    "no file": (
        {"repo": "people/notes", "hub_files": ["*.csv"]},
        f"""\
no file of the hub's 'people/notes' fits '*.csv' (table 'notes')
  found:    files extra/labels.csv, train.jsonl at revision {SECOND}
  to do:    mend `hub_files` of task 'notes'""",
    ),
    "no split": (
        {"repo": "people/notes", "split": "trian"},
        """\
the hub's 'people/notes' has no split 'trian'
  found:    splits train in configuration 'default'
  expected: the split that task 'notes' names
  to do:    'train' is the nearest name""",
    ),
    "private": (
        {"repo": "people/absent", "hub_files": ["a.csv"]},
        f"""\
HUB: task 'notes': the hub does not give out the data set 'people/absent'
  found:    it is not there, or is private
  to do:    check the name; for a private data set log in (hf auth login) or set \
HF_TOKEN{OR_DATA}""",
    ),
    "gated": (
        {"repo": "people/secret", "hub_files": ["a.csv"]},
        f"""\
HUB: task 'notes': the hub does not give out the data set 'people/secret'
  found:    access must be asked for first
  to do:    ask for access on its page on the hub, then log in (hf auth login) or set \
HF_TOKEN{OR_DATA}""",
    ),
    "no revision": (
        {"repo": "people/notes", "revision": "v9", "hub_files": ["a.csv"]},
        f"""\
HUB: task 'notes': the hub does not give out the data set 'people/notes'
  found:    it has no revision 'v9'
  to do:    mend the task's revision{OR_DATA}""",
    ),
}


def declared(repo, revision=None, **table):
    return {"hub": {"repo": repo, "revision": revision}, "tables": {"notes": table}}


@pytest.mark.slow
@pytest.mark.parametrize("case", HUB)
def test_hub(case, hub, load):
    hub.gated.add("people/secret")
    asked, text = HUB[case]
    assert load(declared(**asked), endpoint=hub.url)["error"].replace(hub.url, "HUB") == text


@pytest.mark.slow
def test_what_the_library_cannot_prepare(hub, load):
    hub.repos["people/broken"] = {FIRST: {"train.jsonl": b"]"}}
    error = load(declared("people/broken", split="train"), endpoint=hub.url)["error"]
    # What was found is told in the words of the library that reads JSON.
    first, found, hint = error.splitlines()
    assert first == (
        "task 'notes': the hub's data set 'people/broken': the datasets library cannot prepare it"
    )
    assert found.startswith("  found:    ArrowInvalid: JSON parse error")
    assert hint == "  to do:    give a local copy with --data FILE or --data DIR"


@pytest.mark.slow
def test_a_hub_that_goes_away(hub, load, tmp_path):
    load(declared("people/notes", "v1", split="train"), endpoint=hub.url)
    hub.forbidden.add(SECOND)
    assert (
        load(declared("people/notes", split="train"), endpoint=hub.url)["error"]
        == f"""\
task 'notes': the hub went away, and another revision of 'people/notes' was cached
  found:    revision {FIRST}
  expected: revision {SECOND}
  to do:    run again when the hub can be reached, or give the data with --data"""
    )
    found = load(
        declared("people/other", "v1", split="train"), endpoint=hub.url, HF_HUB_OFFLINE="1"
    )
    assert (
        found["error"].replace(str(tmp_path), "DIR")
        == """\
task 'notes' needs the hub's data set 'people/other' at revision 'v1', which is neither \
reachable nor cached
  found:    the hub was not asked, because HF_HUB_OFFLINE is set; looked in \
DIR/hf/hub/datasets--people--other and DIR/hf/datasets/people___other
  expected: a way to the hub, or a cache that an earlier run with a way filled
  to do:    give a local copy with --data FILE or --data DIR, or run once with a network"""
    )
