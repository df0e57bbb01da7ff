import gc
import gzip
import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from builders.disks import room_for
from builders.tables import data_in, refused, table_of

from harness.base.errors import DataError
from harness.contracts.task import Column, DataSpec, TableSpec
from harness.data.database import Database, _new_folder

COLUMNS = {
    "user": Column(aliases=("customer",)),
    "age": Column(type="integer", required=False),
    "score": Column(type="number", required=False),
    "kind": Column(required=False, one_of=("a", "b c")),
    "member": Column(type="boolean", required=False),
    "tags": Column(type="list", required=False),
}
CSV = (
    "customer,age,score,kind,member,tags\n"
    'u1,7,1.5,a,true,"[1, ""x""]"\n'
    "\n"
    '"u,""2""", 42 ,.5,"b c",0,\n'
    "üb,7.0,1e3,,FALSE,[]\n"
    "u4,,,,,\n"
)
EXPECTED = [
    ("u1", 7, 1.5, "a", True, [1, "x"]),
    ('u,"2"', 42, 0.5, "b c", False, None),
    ("üb", 7, 1000.0, None, False, []),
    ("u4", None, None, None, None, None),
]
LINES = "".join(
    json.dumps(dict(zip(("user", *list(COLUMNS)[1:]), row, strict=True))) + "\n" for row in EXPECTED
)


def table(*paths, columns=COLUMNS, **written):
    return table_of(*paths, columns=columns, **written)


def file(place, content):
    place.write_bytes(content.encode() if isinstance(content, str) else content)
    return place


@pytest.fixture
def by_duckdb(monkeypatch):
    """What DuckDB does not read itself fails."""
    monkeypatch.delattr("harness.data.database._insert")


def rows(of):
    """The rows of the database in order, with their numbers."""
    names = [f'"{name}"' for name in of.columns]
    database = Database({of.name: of})
    found = database.sql(f"SELECT row, {', '.join(names)} FROM people ORDER BY row")
    json_columns = [kind == "JSON" for kind in map(str, found.types)]
    return [
        tuple(
            json.loads(cell) if decode and cell is not None else cell
            for cell, decode in zip(row, json_columns, strict=True)
        )
        for row in found.fetchall()
    ]


def numbered(expected):
    return [(number, *row) for number, row in enumerate(expected, 1)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("people.csv", CSV),
        ("people.csv", "\ufeff" + CSV.replace("\n", "\r\n")),
        ("people.csv.gz", gzip.compress(CSV.encode())),
        ("people.jsonl", LINES),
        ("people.jsonl.zst", zstandard.compress(LINES.encode())),
    ],
    ids=itertools.count(),
)
def test_files_are_read_with_the_values_of_their_columns(tmp_path, name, content):
    read = table(file(tmp_path / name, content))
    assert rows(read) == numbered(EXPECTED)
    assert [tuple(row.values()) for _, row in read.rows()] == EXPECTED


@pytest.mark.usefixtures("by_duckdb")
@pytest.mark.parametrize(("name", "headed"), [("a.csv", True), ("a.csv", False), ("a.tsv", True)])
def test_plain_text_is_read_by_duckdb_itself(tmp_path, name, headed):
    columns = {**COLUMNS, "kind": Column(required=False, one_of=("a", "b c"), values={"b": "b c"})}
    del columns["tags"]
    text = "x,customer,age,score,kind,member\n" * headed
    text += "0,u1,7,1.5,a,true\n0,1.0,+42.0,.5,b c,0\n0,üb,007,1e3,,FALSE\n0,u4,,,b,\n"
    mark = "\t" if name == "a.tsv" else ","
    header = () if headed else ("x", *columns)
    read = table(file(tmp_path / name, text.replace(",", mark)), columns=columns, header=header)
    expected = [
        ("u1", 7, 1.5, "a", True),
        ("1.0", 42, 0.5, "b c", False),
        ("üb", 7, 1000.0, None, False),
        ("u4", None, None, "b c", None),
    ]
    assert [tuple(row.values()) for _, row in read.rows()] == expected
    assert rows(read) == numbered(expected)


@pytest.mark.usefixtures("by_duckdb")
def test_parquet_is_read_by_duckdb_itself_and_numbers_become_texts_and_fractions(tmp_path):
    columns = dict(list(COLUMNS.items())[:5])
    values = dict(zip(columns, zip(*(row[:5] for row in EXPECTED), strict=True), strict=True))
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(values), path)
    assert rows(table(path, columns=columns)) == numbered([row[:5] for row in EXPECTED])
    columns = {"user": Column(), "score": Column(type="number")}
    numbers = {"user": pa.array([7, 2**62]), "score": pa.array([1, 2], pa.uint8())}
    pq.write_table(pa.table(numbers), path)
    assert rows(table(path, columns=columns)) == [(1, "7", 1.0), (2, str(2**62), 2.0)]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("people.json", '[{"user": "u1", "age": 3.0}, {"user": 7}]', [("u1", 3), ("7", None)]),
        (
            "people.jsonl",
            '{"user": 12345678901234567890123}\n',
            [("12345678901234567890123", None)],
        ),
        ("people.csv", "user,age\nu1,\u00a07\n", [("u1", 7)]),
        ("people[1].csv", "user,age\nu1,7\n", [("u1", 7)]),
        ("people.csv", 'age,user\n7, "u1"\n', [(' "u1"', 7)]),
        # Not with ages, which a header line read as a row would not fit.
        ("people.csv", "\nuser,note\nu1,x\n", [("u1", None)]),
        ("people.csv", "\ufeff\nuser,note\nu1,x\n", [("u1", None)]),
        # Null under the first name of a column hides what stands under another.
        (
            "people.jsonl",
            '{"userId": "u1"}\n{"userId": null, "userid": "u2"}\n{"userid": "u3"}\n',
            [("u1", None), (None, None), ("u3", None)],
        ),
    ],
    ids=itertools.count(),
)
def test_what_duckdb_would_read_otherwise_is_read_as_by_rows(tmp_path, name, content, expected):
    user = Column(aliases=("userId", "userid"), required=False)
    columns = {"user": user, "age": Column(type="integer", required=False)}
    assert rows(table(file(tmp_path / name, content), columns=columns)) == numbered(expected)


def test_decimals_of_parquet_are_numbers(tmp_path):
    pq.write_table(pa.table({"score": [Decimal("1.5")]}), tmp_path / "a.parquet")
    columns = {"score": Column(type="number")}
    assert rows(table(tmp_path / "a.parquet", columns=columns)) == [(1, 1.5)]


@pytest.mark.parametrize("name", ["row", "unfit", "USER"])
def test_a_name_that_a_database_has_already_is_an_error(tmp_path, name):
    columns = {"user": Column(), name: Column()}
    read = table(file(tmp_path / "a.csv", f"user,{name}\nu1,7\n"), columns=columns)
    with pytest.raises(DataError, match="cannot be those of a database"):
        rows(read)


def test_rows_of_several_files_are_numbered_in_their_order(tmp_path):
    columns = {"user": Column()}
    many = "".join(f'{{"user": "u{number}"}}\n' for number in range(300_000))
    first = file(tmp_path / "1.jsonl", many)
    none = file(tmp_path / "2.json", "[]")
    last = file(tmp_path / "3.json", '[{"user": "last"}]')
    found = rows(table(first, none, last, columns=columns))
    assert found == [*((n + 1, f"u{n}") for n in range(300_000)), (300_001, "last")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("people.csv", "user,age\nu1,1\nu2,4.5\nu3,x\n"),
        ("people.csv", "user,age\nu1,1\n,2\n"),
        ("people.csv", "user,member\nu1,yes\n"),
        ("people.csv", "user,score\nu1,nan\n"),
        ("people.csv", "user,tags\nu1,[1\n"),
        ("people.csv", "age\n1\n"),
        ("people.csv", "user,age\nu1,1,2\n"),
        ("people.csv", "user,age\n"),
        ("people.jsonl", '{"user": "u1", "age": 4}\n{"user": "u2", "age": 4.5}\n'),
        ("people.parquet", b"PAR1"),
        # What only DuckDB takes.
        ("people.csv", "user,age\nu\r1,1\n"),
        ("people.csv", b"user,age\n\xc3\xa9\xff,1\n"),
        ("people.csv", 'user,tags\n"u1" ,[1]\n'),
    ],
    ids=itertools.count(),
)
def test_a_value_that_does_not_fit_is_the_error_of_the_rows(tmp_path, name, content):
    read = table(file(tmp_path / name, content))
    with pytest.raises(DataError) as found:
        rows(read)
    assert str(found.value) == str(refused(read))


def test_a_parquet_file_that_changes_after_it_was_loaded_is_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"user": ["u1"]}), path)
    held = Database({"people": table(path, columns={"user": Column()})})
    assert held.relation("people").fetchall() == [("u1", 1)]
    pq.write_table(pa.table({"user": ["u1", "u2"]}), path)
    with pytest.raises(DataError, match="changed while"):
        held.sql("SELECT * FROM people")


def test_a_rank_depends_on_text_and_seed_alone(tmp_path):
    read = table(file(tmp_path / "a.csv", CSV))
    database = Database({"people": read})
    found = database.sql("SELECT stable_rank(user, 3) FROM people ORDER BY row").fetchall()
    texts = ("3 u1", '3 u,"2"', "3 üb", "3 u4")
    assert found == [(hashlib.md5(text.encode()).hexdigest(),) for text in texts]
    assert database.sql("SELECT stable_rank(NULL, 3)").fetchall() == [(None,)]


def test_the_files_of_a_database_go_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    database = Database({"people": table(file(tmp_path / "a.csv", CSV))})
    assert database.relation("people").count("*").fetchall() == [(4,)]
    assert len(list((tmp_path / "temporary").iterdir())) == 1
    del database
    gc.collect()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_pipe_in_the_place_of_a_lock_holds_nothing_up(tmp_path, monkeypatch):
    folder = tmp_path / "harness-tables-other"
    folder.mkdir()
    os.mkfifo(folder / "lock")  # opening it waits for a writer, without end
    (tmp_path / "harness-tables-link").mkdir()
    (tmp_path / "harness-tables-link" / "lock").symlink_to(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made, lock = _new_folder()
    lock.close()
    assert made.parent == tmp_path
    assert folder.is_dir()


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import os, signal; from harness.data.database import Database; kept = Database({});"
        "print(kept.sql('SELECT 1').fetchall(), flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert killed.stdout.strip() == "[(1,)]"
    [left] = tmp_path.glob("harness-tables-*")
    first = Database({})
    [used] = tmp_path.glob("harness-tables-*")
    assert used != left
    second = Database({})
    assert len(list(tmp_path.glob("harness-tables-*"))) == 2
    assert [one.sql("SELECT 1").fetchall() for one in (first, second)] == [[(1,)]] * 2


def test_a_full_disk_is_an_error_that_names_the_temporary_folder(tmp_path):
    many = "user\n" + "".join(f"user-{n}-{n**3}\n" for n in range(100_000))
    database = Database({"t": table(file(tmp_path / "many.csv", many), columns={"user": Column()})})
    with room_for(400_000), pytest.raises(DataError, match="cannot be held in") as caught:
        database.relation("t")
    assert "TMPDIR" in str(caught.value)


def test_tasks_with_the_same_tables_share_one_database(tmp_path):
    file(tmp_path / "people.csv", "user,age\nu1,1\n")
    columns = {"user": Column(), "age": Column(type="integer")}
    spec = DataSpec(tables={"people": TableSpec(columns=columns)})
    shared: dict[Any, Any] = {}
    first, second = (data_in(tmp_path, spec, shared=shared) for _ in range(2))
    assert first.relation("people").fetchall() == [("u1", 1, 1)]
    assert first.database is second.database
    assert first.database is not data_in(tmp_path, spec, shared={}).database
