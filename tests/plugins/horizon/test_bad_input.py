"""Raw files that are damaged, incomplete or odd: dropped rows are counted, the rest is an error."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from builders.disks import room_for
from builders.horizon import TAU, built, read_build, settings_of, write_lines, write_log
from harness_horizon.curation import build
from harness_horizon.curation.ledger import read_manifest
from inline_snapshot import snapshot

from harness.base.errors import DataError, StorageError, UsageError

DAY = 86_400_000
PEOPLE = [f"p{number:02}" for number in range(20)]
ROWS = [(one, f"b{n}", TAU + (n - 4) * DAY) for one in PEOPLE for n in range(7)]
TITLES = {f"b{number}": f"Book {number}" for number in range(7)}


@pytest.fixture
def log(tmp_path):
    write_log(tmp_path, {"Books": ROWS}, {"Books": TITLES})
    return tmp_path


def said(error, folder):
    return re.sub(r"[\d.]+ GB free", "N GB free", str(error.value).replace(str(folder), "DIR"))


def failed(folder, kind=DataError, **options):
    with pytest.raises(kind) as error:
        build.run(settings_of(folder, **options))
    return said(error, folder)


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
    clean = log / "clean"
    write_log(clean, {}, {"Books": TITLES})
    (clean / "reviews").mkdir(exist_ok=True)
    good = [row for row in rows if row not in BAD.values()]
    write_lines(clean / "reviews" / "Books.jsonl", good)
    made = built(log)
    assert read_build(made) == read_build(built(clean))
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


def test_more_than_one_in_a_hundred_is_an_error(log):
    rows = [line(timestamp=TAU // 1000), line(user_id=None), *([line()] * 98)]
    write_lines(log / "reviews" / "Books.jsonl", rows)
    assert failed(log) == snapshot("""\
Books.jsonl: too many rows cannot be used
  found:    2 of 100 rows:
      1 with a time in seconds
      1 with no user
  expected: at most 1%; times in milliseconds since 1970\
""")


def test_a_category_without_metadata(log):
    write_log(log, {"Toys": ROWS, "Pets": ROWS}, {"Toys": TITLES})
    assert failed(log) == snapshot("""\
--meta: 1 of 3 categories have no metadata
  found:    Pets
  expected: a file such as meta_Pets.jsonl.gz for each
  to do:    fetch these files, or take the reviews of these categories away\
""")


def test_a_file_cut_in_its_gzip(log):
    (log / "reviews" / "Books.jsonl").unlink()
    write_log(log, {"Books": ROWS}, {}, packed=True)
    file = log / "reviews" / "Books.jsonl.gz"
    file.write_bytes(file.read_bytes()[:-20])
    assert failed(log) == snapshot("""\
DIR/reviews/Books.jsonl.gz: the file cannot be unpacked as gzip
  found:    Compressed file ended before the end-of-stream marker was reached
  expected: a whole gzip file
  to do:    fetch or pack it again; it may be cut off, or have the wrong extension\
""")


def test_titles_that_are_none(log):
    odd = {"b1": None, "b2": "", "b3": " \n\t ", "b4": "None", "b5": "Two\nlines \u00a0 here"}
    write_log(log, {}, {"Books": TITLES | odd})
    made = built(log)
    titles = {item: title for item, (title, _) in read_build(made)["items"].items()}
    assert titles == {"b0": "Book 0", "b5": "Two lines here", "b6": "Book 6"}
    assert read_manifest(made).totals["metadata"]["untitled"] == 4


def test_no_item_has_a_title(log):
    write_log(log, {}, {"Books": dict.fromkeys(TITLES)})
    assert failed(log) == snapshot("""\
DIR/meta: there are too few items to rank
  found:    0 items with a title that somebody reviewed
  expected: at least 1 (--least_items)\
""")


def test_fewer_than_a_hundred_items(log):
    assert failed(log, least_items=100) == snapshot("""\
DIR/meta: there are too few items to rank
  found:    7 items with a title that somebody reviewed
  expected: at least 100 (--least_items)\
""")


def test_no_user_is_active_after_the_cutoff(log):
    write_log(log, {"Books": [row for row in ROWS if row[2] < TAU]}, {})
    assert failed(log) == snapshot("""\
DIR/reviews: no user is active after the cutoff, so nothing can be tested
  found:    0 users with a review dated 2020 or later
  expected: reviews dated 2020 or later\
""")


def test_published_and_no_user_of_2020(log):
    rows = [(user, item, time + 400 * DAY if time >= TAU else time) for user, item, time in ROWS]
    write_log(log, {"Books": rows}, {})
    assert failed(log, published=True) == snapshot("""\
DIR/reviews: no user is active after the cutoff, so nothing can be tested
  found:    20 users with a review dated 2020 or later
  expected: reviews of the calendar year 2020\
""")


def test_too_little_memory_names_the_least(log):
    assert failed(log, UsageError, memory="100MB") == snapshot("""\
--memory: the memory is too small for this work
  found:    100MB
  expected: 500MB or more\
""")


def test_memory_that_is_no_size(log):
    assert failed(log, UsageError, memory="much") == snapshot("""\
the value of --memory is not valid
  found:    much
  expected: 8GB, 500MB …\
""")


def test_the_least_memory_works(log):
    assert built(log, memory="500MB").is_dir()


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


def test_two_files_of_a_category(log):
    (log / "reviews" / "Books.csv").write_text("user_id,parent_asin,rating,timestamp\n")
    assert failed(log) == snapshot("""\
--reviews: the category Books has two files
  found:    Books.csv, Books.jsonl
  expected: one file for each category\
""")


def test_a_folder_without_files(log):
    (log / "reviews" / "Books.jsonl").unlink()
    assert failed(log) == snapshot("""\
--reviews: there are no files of reviews
  found:    DIR/reviews
  expected: files that end in .jsonl, .csv, .parquet, .jsonl.gz, .csv.gz\
""")


def test_a_folder_that_does_not_exist(log):
    assert failed(log, meta=(log / "nowhere",)) == snapshot("""\
--meta: the folder does not exist
  found:    DIR/nowhere\
""")


def test_a_file_without_a_column(log):
    (log / "reviews" / "Books.jsonl").unlink()
    (log / "reviews" / "Books.csv").write_text("user,parent_asin,rating\nu,b0,5\n")
    assert failed(log) == snapshot("""\
DIR/reviews/Books.csv: the file has no column user_id, timestamp
  found:    user, parent_asin, rating
  expected: user_id, parent_asin, timestamp\
""")


def test_an_empty_file(log):
    (log / "reviews" / "Books.jsonl").write_text("")
    assert failed(log) == snapshot("""\
Books.jsonl: the file has no rows
  expected: at least one row\
""")


def test_a_file_that_is_packed_unlike_its_name(log):
    file = log / "reviews" / "Books.jsonl"
    file.write_bytes(gzip.compress(file.read_bytes()))
    assert failed(log) == snapshot("""\
DIR/reviews/Books.jsonl: the file is gzip, unlike its name
  found:    first bytes b'\\x1f\\x8b'
  expected: UTF-8 text
  to do:    name it with .gz at the end\
""")


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
        write_log(folder, {}, {"Books": TITLES})
        (folder / "reviews").mkdir(exist_ok=True)
        duckdb.execute(f"COPY ({read}) TO '{folder}/reviews/Books.{ending}' ({options})")
        assert read_build(built(folder)) == wanted, ending


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
