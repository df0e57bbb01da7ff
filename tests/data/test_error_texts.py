"""What is said of data that cannot be read, word for word; DIR is the folder that was given."""

import gzip
import os
import re
from functools import partial

import pytest
from builders.tables import data_in
from inline_snapshot import snapshot

from harness.base.errors import DataError, Unavailable, UsageError
from harness.contracts.task import Column, DataSpec, HubSpec, SourceSpec, TableSpec
from harness.data import open_dataset
from harness.data.dataset import TaskData
from harness.data.read import Table

ROWS = TableSpec(files=("a.*",), columns={"user": Column()})
ONE = DataSpec(tables={"rows": ROWS})
TWO = DataSpec(tables={"rows": ROWS, "items": TableSpec(files=("b.*",))})

FILES = {
    ("a.jsonl", b'{"user": "a"}\n{"user": }\n'): (
        "DIR/a.jsonl, row 2", "JSON is malformed: invalid character (byte 9)",
        snapshot("""\
malformed JSON
expected: a JSON object\
""")),
    ("a.jsonl", b'{"user": "a"}\n[1]\n'): ("DIR/a.jsonl, row 2", "a JSON list: [1] (list)",
        snapshot("""\
the row is not an object
expected: one JSON object, such as {"user": "u1"}\
""")),
    ("a.jsonl", b'{"user": NaN}\n'): (
        "DIR/a.jsonl, row 1, column 'user'", "JSON is malformed: invalid character (byte 9)",
        snapshot("""\
malformed JSON
expected: a finite number, null or text in UTF-8\
""")),
    ("a.jsonl", b'{"user": "\xff"}\n'): ("DIR/a.jsonl, row 1", "Invalid UTF-8 encoded string",
        snapshot("""\
malformed JSON
expected: a JSON object\
""")),
    ("a.jsonl", b'{"other": 1}\n'): ("DIR/a.jsonl, row 1", "columns other", snapshot("""\
column 'user' is missing
expected: 'user'\
""")),
    ("a.json", b'[{"user": "a"}, 3]'): (
        "DIR/a.json, row 2", "a JSON integer: 3 (integer)",
        snapshot("""\
the row is not an object
expected: one JSON object, such as {"user": "u1"}\
""")),
    ("a.json", b'[{"user": "a"}'): (
        "DIR/a.json", "Input data was truncated",
        snapshot("""\
the file cannot be read as JSON
expected: a whole file of this format
to do: fetch or write it again; it may be cut off, or have the wrong extension\
""")),
    ("a.csv", b"user,x\na,1,2\n"): ("DIR/a.csv, row 1", "3 cells, the last of which is '2'",
        snapshot("""\
the row has more cells than the header has columns
expected: 2 cells, separated by ','\
""")),
    ("a.csv", b"user,x\na\n"): (
        "DIR/a.csv, row 1", "1 cells, the last of which is 'a'",
        snapshot("""\
the row has fewer cells than the header has columns
expected: 2 cells, separated by ','\
""")),
    ("a.csv", b'user,x\n"a,1\n'): ("DIR/a.csv, row 1", None, snapshot("""\
a quoted cell is never closed
expected: a closing " before the end of the file
to do: the quote was opened in this row\
""")),
    ("a.csv", b'user,x\n"a"b,1\n'): ("DIR/a.csv, row 1", None, snapshot("""\
a quoted cell continues after its closing quote
expected: a quoted cell in which each " is doubled, and one " closes it\
""")),
    ("a.csv", b"users,x\na,1\n"): ("DIR/a.csv", "columns users, x", snapshot("""\
column 'user' is missing
expected: 'user'
to do: 'users' is the nearest name: rename it if it is 'user'\
""")),
    ("a.csv", b"user,x,user\n"): ("DIR/a.csv, line 1", "2 columns of this name",
        snapshot("""\
two columns have the name 'user'
expected: a header that names each column once
to do: rename or remove one of them\
""")),
    ("a.csv", b"user,x\na\rb,1\n"): ("DIR/a.csv, row 1", None, snapshot("""\
a cell without quotes contains a carriage return
expected: lines that end in LF or CRLF, and quotes around cells that hold line ends
to do: old Macintosh files end lines with CR only: convert the line ends\
""")),
    ("a.csv", b"user,x\n,1\n"): ("DIR/a.csv, row 1, column 'user'", "''", snapshot("""\
the value is missing
expected: a value in every row
to do: complete or remove the row\
""")),
    ("a.csv", b"user\n"): ("DIR/a.csv", None, snapshot("""\
table 'rows' has no rows
expected: at least one row\
""")),
    ("a.csv", b"user;x\na;1\n"): ("DIR/a.csv", "columns user;x", snapshot("""\
column 'user' is missing
expected: 'user'
to do: the header seems to be separated by ';'; CSV needs commas, TSV tabs\
""")),
    ("a.csv", b""): ("DIR/a.csv", "0 rows", snapshot("""\
the file is empty
expected: at least one row\
""")),
    ("a.csv.gz", gzip.compress(b"user\na\n", mtime=0)[:-4]): (
        "DIR/a.csv.gz", "Truncated compressed stream",
        snapshot("""\
the file cannot be read as gzip
expected: a whole file of this format
to do: fetch or write it again; it may be cut off, or have the wrong extension\
""")),
    ("a.json", b'{\n"data": []}'): ("DIR/a.json, row 1", "Input data was truncated",
        snapshot("""\
malformed JSON
expected: a JSON object
to do: a whole file of one object is read with `rows_at` or `entries` in the task\
""")),
    ("a.csv", gzip.compress(b"user\na\n", mtime=0)): ("DIR/a.csv", "first bytes b'\\x1f\\x8b'",
        snapshot("""\
the file is gzip, unlike its name
expected: UTF-8 text
to do: name it with .gz at the end\
""")),
    ("a.parquet", b"user\n"): (
        "DIR/a.parquet",
        "Invalid Input Error: File 'DIR/a.parquet' too small to be a Parquet file",
        snapshot("""\
the file cannot be read as Parquet
expected: a whole file of this format
to do: fetch or write it again; it may be cut off, or have the wrong extension\
""")),
    ("a.xml", b"<a/>"): ("DIR/a.xml", "the extension '.xml'", snapshot("""\
the format of the file is not supported
expected: .jsonl, .ndjson, .json, .csv, .tsv, .parquet; all except .parquet also with .gz or .zst\
""")),
}  # fmt: skip

ENTRIES = {
    b'{"a": 1, "b": 2, "a": 3}': ("DIR/a.json", "'a'", snapshot("""\
a key occurs twice
expected: each key once\
""")),
    b'{"a": 1}\n{"b": 2}\n': ("DIR/a.json", "one object a line", snapshot("""\
the file has no rows
expected: one JSON object with the rows in it\
""")),
}  # fmt: skip


@pytest.fixture
def opened(tmp_path):
    """The data of a task in this folder, or in a place in it."""

    def of(spec=ONE, place="", **options):
        return data_in(tmp_path / place, spec, **{"task": "quiz", **options})

    return of


@pytest.fixture
def read(opened):
    return lambda *given, **options: list(opened(*given, **options).table("rows").rows())


@pytest.mark.parametrize(("name", "content"), FILES)
def test_files(name, content, tmp_path, read, raised):
    (tmp_path / name).write_bytes(content)
    where, found, wording = FILES[name, content]
    assert raised(DataError, read, where=where, found=found) == wording


@pytest.mark.parametrize("content", ENTRIES)
def test_entries(content, tmp_path, read, raised):
    columns = {"user": Column(), "history": Column(type="any")}
    rows = TableSpec(files=("a.*",), columns=columns, entries=("user", "history"))
    spec = DataSpec(tables={"rows": rows})
    (tmp_path / "a.json").write_bytes(content)
    where, found, wording = ENTRIES[content]
    assert raised(DataError, read, spec, where=where, found=found) == wording


def test_columns(tmp_path, read, opened, raised):
    columns = {"user": Column(), "n": Column(type="integer")}
    spec = DataSpec(tables={"rows": TableSpec(files=("a.*",), columns=columns)})
    file, where = tmp_path / "a.csv", "DIR/a.csv, row 1, column "
    file.write_text("user,n\na,x\n")
    assert raised(DataError, read, spec, where=f"{where}'n'", found="'x'") == snapshot("""\
not an integer
expected: a whole number, such as 42\
""")
    file.write_text("use,m\na,1\n")
    found = "columns use, m"
    assert raised(DataError, read, spec, where="DIR/a.csv", found=found) == snapshot("""\
columns user, n are missing
expected: 'user', 'n'
to do: 'use' is the nearest name: rename it if it is 'user'\
""")

    def refused_by_a_benchmark():
        raise opened(spec).table("rows").bad(1, "user", "a", "an id of letters and digits")

    wording = raised(DataError, refused_by_a_benchmark, where=f"{where}'user'", found="'a'")
    assert wording == snapshot("""\
a value that cannot be used
expected: an id of letters and digits\
""")


def test_places(tmp_path, opened, raised):
    (tmp_path / "a.csv").write_text("user\na\n")
    os.mkfifo(tmp_path / "pipe")
    assert raised(DataError, opened, ONE, "none", where="DIR/none") == snapshot("""\
the file or folder of --data does not exist
expected: an existing file or folder\
""")
    assert raised(DataError, opened, ONE, "pipe", where="DIR/pipe") == snapshot("""\
not a regular file; a run reads its data more than once
expected: a file or folder on disk\
""")
    assert raised(DataError, opened, TWO, "a.csv", where="DIR/a.csv") == snapshot("""\
one file was given, but task 'quiz' has 2 tables
expected: a folder with one of these files for each table:
      rows: a.*
      items: b.*
to do: give the folder with --data DIR\
""")
    assert raised(UsageError, partial(opened, limit=0), found="--limit 0") == snapshot("""\
the limit is too small
expected: 1 or more\
""")


def test_tables(tmp_path, opened, read, raised):
    for name in ("a.csv", "a.tsv", "b.csv"):
        (tmp_path / name).write_text("user\na\n")
    data, files = opened(TWO), "DIR/a.csv, DIR/a.tsv"
    assert raised(DataError, data.table) == snapshot("""\
task 'quiz' has several tables: name one of them
expected: one of: rows, items\
""")
    assert raised(DataError, data.table, "row") == snapshot("""\
task 'quiz' has no table 'row'
expected: one of: rows, items
to do: 'rows' is the nearest name\
""")
    assert raised(DataError, data.path, "rows", found=files) == snapshot("""\
table 'rows' of task 'quiz' is in several files
expected: one file\
""")
    assert raised(DataError, data.choose, [], where=f"{files}, DIR/b.csv") == snapshot("""\
the data of task 'quiz' leaves no users to choose from
expected: data that leaves at least one of the users\
""")
    (tmp_path / "b.csv").unlink()
    optional = DataSpec(tables={"rows": ROWS, "items": TableSpec(files=("b.*",), required=False)})
    assert raised(DataError, opened(optional).table, "items") == snapshot("""\
this data has no table 'items', which task 'quiz' needs with its options
expected: b.* in DIR\
""")
    outside = DataSpec(tables={"rows": TableSpec(files=("../a.*",))})
    assert raised(DataError, read, outside, found="'../a.*'") == snapshot("""\
table 'rows' of task 'quiz' looks for files outside its folder
expected: a name or glob inside the folder\
""")


def test_a_level_too_high_or_too_low(tmp_path, opened, raised):
    for name in ("a.csv", "x/b.csv", "y/b.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("user\na\n")
    found = "a folder with a.csv, x/, y/"
    assert raised(DataError, opened, TWO, where="DIR", found=found) == snapshot("""\
no file for table 'items' of task 'quiz'
expected: b.*; each may be packed (.gz or .zst)
to do: such files are in DIR/x, DIR/y: give one of them\
""")
    found = "a folder with b.csv"
    assert raised(DataError, opened, TWO, "x", where="DIR/x", found=found) == snapshot("""\
no file for table 'rows' of task 'quiz'
expected: a.*; each may be packed (.gz or .zst)
to do: such files are in the folder above, DIR: give that folder\
""")


def test_samples(tmp_path, raised):
    opened = partial(open_dataset, limit=None, seed=0, task="quiz", package=tmp_path)
    sample = partial(opened, data="sample")
    assert raised(DataError, sample, ONE, found="--data sample") == snapshot("""\
task 'quiz' has no bundled sample
expected: a file or folder with the data, or a data set on the hub
to do: for a folder with the name sample, use --data ./sample\
""")
    spec = DataSpec(tables={"rows": ROWS}, sample="little")
    assert raised(DataError, sample, spec, where="DIR/little") == snapshot("""\
the bundled sample of task 'quiz' is not installed
expected: the folder that the task's `data.sample` names inside its package
to do: report this to the plugin's authors: the package lacks its sample files\
""")
    assert raised(DataError, partial(opened, data=None), spec) == snapshot("""\
task 'quiz' needs data that is not on the hub
expected: --data FILE or --data DIR; the task's documentation says where to get the data
to do: for a first try, use the bundled sample: --data sample\
""")


def test_places_on_the_hub(raised):
    opened = partial(open_dataset, data=None, package=None, limit=None, seed=0, task="quiz")
    spec = DataSpec(tables={"rows": ROWS}, sources=(SourceSpec(hub=HubSpec(repo="a/b")),))
    assert raised(DataError, opened, spec) == snapshot("""\
task 'quiz' has no place of table 'rows' in the hub's 'a/b'
expected: `split` or `hub_files` in the task's table
to do: give the data with --data, or correct the task file\
""")
    split = TaskData(
        origin="hub", task="quiz", about={}, files={}, pinned={}, size=None, limit=None, seed=0,
        tables={"rows": Table(name="rows", columns={}, sources=())},
    )  # fmt: skip
    found = "a split that the datasets library prepared"
    assert raised(DataError, split.paths, "rows", found=found) == snapshot("""\
table 'rows' of task 'quiz' has no file of its own
expected: a table with `hub_files`, or data given with --data\
""")


FIRST, SECOND = "1" * 40, "2" * 40

HUB = {
    "no file": (
        {"repo": "people/notes", "hub_files": ["*.csv"]},
        None, "files extra/labels.csv, train.jsonl at revision main", snapshot("""\
no file of the hub's 'people/notes' matches '*.csv' (table 'notes')
to do: correct `hub_files` of task 'notes'\
""")),
    "no split": (
        {"repo": "people/notes", "split": "trian"},
        None, "splits train in configuration 'default'", snapshot("""\
the hub's 'people/notes' has no split 'trian'
expected: the split that task 'notes' names
to do: 'train' is the nearest name\
""")),
    "private": (
        {"repo": "people/absent", "hub_files": ["a.csv"]},
        "HUB", "it does not exist, or is private", snapshot("""\
task 'notes': the hub refused the data set 'people/absent'
to do: check the name; for a private data set log in (hf auth login) or set HF_TOKEN; or give the data with --data\
""")),
    "gated": (
        {"repo": "people/secret", "hub_files": ["a.csv"]},
        "HUB", "access must be requested first", snapshot("""\
task 'notes': the hub refused the data set 'people/secret'
to do: request access on its page on the hub, then log in (hf auth login) or set HF_TOKEN; or give the data with --data\
""")),
    "no revision": (
        {"repo": "people/notes", "revision": "v9", "hub_files": ["a.csv"]},
        "HUB", "it has no revision 'v9'", snapshot("""\
task 'notes': the hub refused the data set 'people/notes'
to do: correct the task's revision; or give the data with --data\
""")),
}  # fmt: skip


@pytest.fixture
def refused(hub, load, raised):
    """The words of the error with which loading from the hub ends."""

    def of(repo, revision=None, *, where=None, found=None, environment=(), kind=DataError, **table):
        source = {"hub": {"repo": repo, "revision": revision}}
        spec = {"sources": [source], "tables": {"notes": table}}
        loaded = partial(load, spec, endpoint=hub.url, **dict(environment))
        folders = {"HUB": hub.url, "FIRST": FIRST, "SECOND": SECOND}
        return raised(kind, loaded, where=where, found=found, **folders)

    return of


@pytest.mark.parametrize("case", HUB)
def test_hub(case, hub, refused):
    hub.gated.add("people/secret")
    asked, where, found, wording = HUB[case]
    kind = Unavailable if "the hub refused" in wording else DataError
    assert refused(**asked, where=where, found=found, kind=kind) == wording


def test_what_the_library_cannot_prepare(hub, refused):
    hub.repos["people/broken"] = {FIRST: {"train.jsonl": b"]"}}
    # What was found is told in the words of the library that reads JSON.
    found = re.compile("ArrowInvalid: JSON parse error.*")
    assert refused("people/broken", split="train", found=found) == snapshot("""\
task 'notes': the hub's data set 'people/broken': the datasets library cannot prepare it
to do: give a local copy with --data FILE or --data DIR\
""")


def test_a_hub_that_goes_away(hub, load, refused):
    known = {
        "sources": [{"hub": {"repo": "people/notes", "revision": "v1"}}],
        "tables": {"notes": {"split": "train"}},
    }
    load(known, endpoint=hub.url)
    hub.forbidden.add(SECOND)
    forbidden = re.compile("HTTPStatusError: Client error '403 Forbidden'.*")
    wording = refused("people/notes", split="train", found=forbidden, kind=Unavailable)
    assert wording == snapshot("""\
task 'notes': the hub's data set 'people/notes': its files could not be fetched
to do: give a local copy with --data FILE or --data DIR\
""")
    found = "the hub was not asked, because HF_HUB_OFFLINE is set; looked in DIR/hf/hub"
    offline = {"HF_HUB_OFFLINE": "1"}
    wording = refused(
        "people/other", "v1", split="train", found=found, environment=offline, kind=Unavailable
    )
    assert wording == snapshot("""\
task 'notes' needs the hub's data set 'people/other' at revision 'v1', which is neither reachable nor cached
expected: a connection to the hub, or a cache that an earlier run filled
to do: give a local copy with --data FILE or --data DIR, or run once with a network\
""")
