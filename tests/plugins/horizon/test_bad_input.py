"""Raw files that are damaged, incomplete or odd: dropped rows are counted, the rest is an error."""

import json

import pytest
from builders.disks import room_for
from builders.horizon import TAU, built, read_build, settings_of, write_lines, write_log
from harness_horizon.curation import build
from harness_horizon.curation.ledger import read_manifest

from harness.base.errors import StorageError

DAY = 86_400_000
PEOPLE = [f"p{number:02}" for number in range(20)]
ROWS = [(one, f"b{n}", TAU + (n - 4) * DAY) for one in PEOPLE for n in range(7)]
TITLES = {f"b{number}": f"Book {number}" for number in range(7)}


@pytest.fixture
def log(tmp_path):
    write_log(tmp_path, {"Books": ROWS}, {"Books": TITLES})
    return tmp_path


def failed(folder, kind, **options):
    with pytest.raises(kind) as error:
        build.run(settings_of(folder, **options))
    return str(error.value).replace(str(folder), "DIR")


def line(**changes):
    row = {"user_id": "p00", "parent_asin": "b0", "timestamp": TAU} | changes
    return json.dumps({name: value for name, value in row.items() if value != "absent"})


BAD = {
    "a broken line": '{"user_id": "p00", "parent',
    "another value": "[1, 2]",
    "a key that is absent": line(parent_asin="absent"),
    "no key that is known": '{"user": "p00"}',
    "a time in seconds": line(timestamp=TAU // 1000),
    "a float time": line(timestamp=TAU + 0.5),
    "a whole float": line(timestamp=float(TAU)),
    "a date": line(timestamp="2020-01-01"),
    "a null time": line(timestamp=None),
    "a null user": line(user_id=None),
    "a blank user": line(user_id=" "),
    "a time long ago": line(timestamp=1000),
}


def test_rows_that_cannot_be_used_are_dropped_and_counted_by_cause(log):
    rows = [line(user_id=f"p{n % 20:02}", parent_asin=f"b{n % 7}") for n in range(1500)]
    for place, bad in enumerate(BAD.values()):
        rows.insert(place * 100, bad)
    write_lines(log / "reviews" / "Books.jsonl", rows)
    made = built(log)
    write_lines(log / "reviews" / "Books.jsonl", [row for row in rows if row not in BAD.values()])
    assert read_build(made) == read_build(built(log, out=log / "clean"))
    assert read_manifest(made).parts["reviews/Books"].counts == {
        "read": 1512,
        "a time before 1990 or after 2100": 1,
        "a time in seconds": 1,
        "a time that is no whole number": 3,
        "no JSON object, or none of its keys": 3,
        "no item": 1,
        "no time": 1,
        "no user": 2,
    }


def test_a_full_disk(log):
    rows = [(f"{n * 7919:x}", f"b{n % 7}", TAU + n) for n in range(20_000)]
    write_log(log, {"Books": rows}, {})
    with room_for(20_000):
        told = failed(log, StorageError)
    assert told.splitlines()[0] == "DIR/out: cannot write"
    assert "repeat the same command: it continues where it stopped" in told
    assert len(read_build(built(log))["histories"]) == 20_000


def test_a_disk_with_too_little_room_is_told_before(log, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10})())
    assert "the disk has too little room" in failed(log, StorageError)
    assert read_manifest(log / "out").parts == {}


def test_csv_and_parquet_give_what_json_lines_give(log):
    import duckdb

    wanted = read_build(built(log))
    read = f"SELECT user_id, parent_asin, rating, timestamp FROM '{log}/reviews/Books.jsonl'"
    for ending, options in {
        "csv": "HEADER",
        "csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
        "parquet": "FORMAT parquet",
    }.items():
        folder = log / ending
        folder.mkdir()
        duckdb.execute(f"COPY ({read}) TO '{folder}/Books.{ending}' ({options})")
        assert read_build(built(log, reviews=(folder,), out=folder / "out")) == wanted, ending


def test_odd_lines_of_csv_are_dropped_and_counted(log):
    (log / "reviews" / "Books.jsonl").unlink()
    rows = [f"p{n % 20:02},b{n % 7},5.0,{TAU + n}" for n in range(1400)]
    odd = ["p01,b1", "p01,b2,4.0,1.5e12", ",b1,4.0,1577836800000", ""]
    lines = ["user_id,parent_asin,rating,timestamp", *rows[:50], *odd, *rows[50:]]
    (log / "reviews" / "Books.csv").write_text("\n".join(lines) + "\n")
    made = built(log)
    assert read_manifest(made).parts["reviews/Books"].counts == {
        "read": 1403,
        "a time that is no whole number": 1,
        "no time": 1,
        "no user": 1,
    }
