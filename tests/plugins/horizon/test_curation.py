"""Histories, splits and cases against plain dictionaries; damaged files, leaks, killed builds."""

import json
import os
import shutil
from itertools import count
from random import Random

import pytest
from builders.disks import room_for
from builders.horizon import (
    TAU,
    YEAR_2019,
    built,
    contents,
    expected,
    random_log,
    read_build,
    settings_of,
    write_lines,
    write_log,
)
from harness_horizon.curation import build, describe, splits
from harness_horizon.curation import engine as engines
from harness_horizon.curation.engine import Engine, engine
from harness_horizon.curation.ledger import Ledger, complete_manifest, read_manifest
from harness_horizon.curation.sources import raw_rows
from harness_horizon.recommenders.training_data import read_training, validation_cases

from harness.base.errors import DataError, Interrupted, StorageError, UsageError

DAY = 86_400_000
PEOPLE = [f"p{number:02}" for number in range(20)]


def told(*rows):
    """Reviews such as "once b1 -9": of a user, of an item, so many days after the cutoff."""
    parts = (row.split() for row in rows)
    return [(user, item, TAU + int(float(day) * DAY)) for user, item, day in parts]


def of_people(item, first, step=0):
    return [(one, item, TAU + (first + step * number) * DAY) for number, one in enumerate(PEOPLE)]


REVIEWS = {
    "Books": [
        *told("once b1 -9", "never-after b1 -3", "never-after b2 -2", "never-before b2 2"),
        *told("never-before b1 1"), ("at", "b1", TAU - 1), ("at", "b2", TAU),
        *told("ties b2 -5", "ties b1 -5", "three b1 -6", "twice b1 -4", "twice b1 -7"),
        *told("twice b2 -8", "twice b2 -8", "both shared -2", "again shared -2"),
        *told("untitled-only no-title -1", "untitled-too no-title -1", "untitled-too b2 -2"),
        *of_people("b1", -40), *of_people("b2", -30),
    ],
    "Games": [
        *told("ties g1 -5", "three g1 -7", "both shared -2", "again shared 2"),
        *of_people("g1", -20), *of_people("g2", -10),
    ],
    "Toys": [*told("three t1 -5", "ties t1 -5"), *of_people("t1", 0, step=1)],
}  # fmt: skip
TITLES = {
    "Books": {"b1": "Book  one\n", "b2": "Book two", "no-title": None, "shared": "Of books"},
    "Games": {"g1": "Game one", "g2": "Game two", "no-title": "None", "shared": "Of games"},
    "Toys": {"t1": "Toy one", "b1": "A later title", "nobody's": "Never reviewed"},
}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A folder with this log and its build."""
    folder = tmp_path_factory.mktemp("log")
    write_log(folder, REVIEWS, TITLES, packed=True)
    built(folder)
    return folder


@pytest.fixture(scope="module")
def made(log):
    return read_build(log / "out")


def test_a_history_is_ordered_by_time_category_and_row_and_all_is_as_dictionaries_give(made, log):
    assert {user: [item for item, _ in rows] for user, rows in made["histories"].items()} == {
        "once": ["b1"], "never-after": ["b1", "b2"], "never-before": ["b1", "b2"],
        "at": ["b1", "b2"], "ties": ["b2", "b1", "g1", "t1"],  # rows, then categories
        "three": ["g1", "b1", "t1"], "twice": ["b2", "b1"], "both": ["shared"],
        "again": ["shared", "shared"], "untitled-too": ["b2"],
        **{one: ["b1", "b2", "g1", "g2", "t1"] for one in PEOPLE},
    }  # fmt: skip
    wanted = expected(REVIEWS, TITLES)
    assert {name: made[name] for name in wanted} == wanted
    # One has reviewed nothing with a title.
    users = {"with a usable review": 31, "left without an item": 1, "left": 30}
    assert read_manifest(log / "out").totals["users"] == users


@pytest.mark.parametrize("part", range(2))
def test_random_logs_give_what_plain_dictionaries_give(tmp_path, part, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda file: None)  # most of the time of so small a build
    for number in range(part * 4, part * 4 + 4):
        rng = Random(number)
        reviews, titles = random_log(rng, size=3)
        options = {
            "seed": rng.randrange(3),
            "held_out": rng.choice([1, 2, 1000]),
            "trained": rng.choice([5, 1000]),
            "tested": rng.choice([2, 5]),
            "validation": rng.choice(["last", "2019"]),
            "published": rng.random() < 0.5,
            "least_interactions": rng.choice([None, None, 2, 3]),
        }
        folder = tmp_path / str(number)
        write_log(folder, reviews, titles)
        out = built(folder, partitions=rng.choice([1, 3]), **options)
        made, wanted = read_build(out), expected(reviews, titles, **options)
        assert {name: made[name] for name in wanted} == wanted


@pytest.mark.parametrize("packed", [False, True])
def test_no_folder_is_taken_for_a_pattern_or_a_partition(tmp_path, made, packed):
    odd, matched = (tmp_path / "user_id=bob" / name / "part=1" for name in ("a[b]*'?", "ab'x"))
    write_log(odd, REVIEWS, TITLES, packed=packed)
    write_log(matched, {**REVIEWS, "Toys": [("wrong", "t1", TAU)]}, TITLES, packed=packed)
    built(matched)
    assert read_build(built(odd).rename(tmp_path / "out")) == made
    file = odd / "Books.csv"
    file.write_text("user_id,parent_asin,rating,timestamp\nu1,b1,4.0,5\n")
    with engine(tmp_path, 500_000_000) as database:
        assert database.rows(raw_rows(database, file, "reviews")) == [("u1", "b1", "5")]


def test_the_same_options_give_the_same_bytes_and_the_second_time_nothing_is_done(log, tmp_path):
    out = log / "out"
    for memory in ("500MB", "4GB"):
        assert contents(built(log, out=tmp_path / memory, memory=memory)) == contents(out)
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.name != ".lock"}
    assert build.run(settings_of(log)).notes[-1] == "nothing was left to do"
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert not (out / "work").exists()


OLD, LAST, OF_2020 = YEAR_2019 - 9 * DAY, YEAR_2019 + 9 * DAY, TAU + 9 * DAY
LIVES = {
    "tests": [OLD - 2, OLD - 1, OLD, LAST, OF_2020],
    "validates": [OLD - 3, OLD - 2, OLD - 1, OLD, LAST],
    "short": [OLD - 1, OLD, LAST, OF_2020],
    "new": [LAST, LAST + 1, LAST + 2, OF_2020, OF_2020 + 1],
    "later": [OLD - 1, OLD, TAU + 400 * DAY, TAU + 401 * DAY, TAU + 402 * DAY],
    "old": [OLD - 4, OLD - 3, OLD - 2, OLD - 1, OLD],
}
"""When somebody buys, for each kind of user that the authors' scripts treat differently."""


def published(folder, lives=LIVES, *, many=30, **options):
    """The folder of a published build of many users of each kind."""
    rows = [(f"{kind}-{number}", f"b{place}", time) for kind, times in lives.items()
            for number in range(many) for place, time in enumerate(times)]  # fmt: skip
    write_log(folder, {"Books": rows}, {"Books": {f"b{n}": f"Book {n}" for n in range(5)}})
    return built(folder, published=True, **options)


def test_published_draws_users_as_the_authors_scripts(tmp_path):
    made = read_build(published(tmp_path / "many", held_out=70))
    roles = ("held_out", "trained", "tested", "validating")
    kinds = {role: {one.partition("-")[0] for one in made[role]} for role in roles}
    assert kinds["held_out"] <= {"tests", "short", "new"}
    assert (kinds["tested"], kinds["validating"]) == ({"tests"}, {"validates"})
    assert kinds["trained"] == {"tests", "validates", "new", "later", "old"}
    # A tenth of the 90 users of 2020 is held out.
    assert len(made["held_out"]) == 9
    assert made["tested"] | made["validating"] <= made["trained"]
    assert {user.partition("-")[0] for user, *_ in made["1b"]} <= {"tests", "new"}
    # Those set aside need no item before 2019.
    early = [TAU - 500 * DAY + place for place in range(5)]
    lives = {"late": [LAST, LAST + 1, LAST + 2, TAU, TAU + DAY], "old": early}
    made = read_build(published(tmp_path / "late", lives, many=100))
    # Ten of 100 users of 2020 are held out, and nine of the 90 who are left are set aside.
    left = set(made["histories"]) - made["held_out"] - made["trained"]
    assert len(made["held_out"]) == 10
    assert (len(left), {user.partition("-")[0] for user in left}) == (9, {"late"})
    # Fewer are tested where fewer are trained on.
    assert settings_of(tmp_path, trained=5000).most_tested == 5000
    assert settings_of(tmp_path).rules()["tested"] == 25_000
    with pytest.raises(ValueError, match="tested=6000 is more than trained=5000"):
        settings_of(tmp_path, trained=5000, tested=6000)


def test_published_validates_with_every_item_of_2019(tmp_path):
    out = published(tmp_path, {"p": [OLD, LAST, LAST + 1, LAST + 2, OF_2020]})
    data = read_training(out)
    [(histories, targets)] = validation_cases(data).batches(10**6, 9)
    # Only b0 is trained on: it is the history of b1 and b2, which nobody can recommend.
    assert histories.tolist() == [[1]] * len(targets) and not targets.any()
    assert len(targets) == 2 * len(read_build(out)["tested"]) > 0
    assert read_manifest(out).totals["audit"]["looked_for_validation_targets"] == len(targets)


LAST_ROW = "SELECT user_id, items[first + 1:], times[first + 1:] FROM '{{}}/{}.parquet' LIMIT 1"
PLANTED = {
    "a held-out user": (
        "SELECT user_id, items[:1], times[:1] FROM '{}/cases-1b.parquet' LIMIT 1",
        "1 of users who are held out",
    ),
    "a date after the cutoff": (
        "SELECT user_id, items[first + 1:first + 1], times[first + 1:first + 1] "
        "FROM '{}/cases-1c.parquet' LIMIT 1",
        "1 dated at or after the end of training",
    ),
    "a target of 1a": (LAST_ROW.format("cases-1a"), "1 that are targets of 1a or 1b"),
    "a target of validation": (LAST_ROW.format("validation"), "1 that are targets of validation"),
}


@pytest.mark.parametrize("leak", PLANTED)
def test_a_build_with_a_planted_leak_is_not_complete(books, monkeypatch, leak):
    query, said = PLANTED[leak]

    def leaking(database, out, settings):
        train, more = out / "train.parquet", out / "more.parquet"
        database.run(f"COPY (FROM '{train}' UNION ALL ({query.format(out)})) TO '{more}'")
        more.replace(train)
        return splits.audit(database, out, settings)

    monkeypatch.setattr(build, "audit", leaking)
    with pytest.raises(DataError, match="the audit failed") as error:
        built(books)
    assert error.value.found == f"of {18 * 2 + 1} training rows: {said}"
    with pytest.raises(DataError, match="no complete build"):
        complete_manifest(books / "out")


ROWS = [(one, f"b{n}", TAU + (n - 4) * DAY) for one in PEOPLE for n in range(7)]
BOOKS = {f"b{number}": f"Book {number}" for number in range(7)}


@pytest.fixture
def books(tmp_path):
    write_log(tmp_path, {"Books": ROWS}, {"Books": BOOKS})
    return tmp_path


def failed(folder, kind, **options):
    with pytest.raises(kind) as error:
        build.run(settings_of(folder, **options))
    return str(error.value).replace(str(folder), "DIR")


def line(**changes):
    row = {"user_id": "p00", "parent_asin": "b0", "timestamp": TAU} | changes
    return json.dumps({name: value for name, value in row.items() if value != "absent"})


BAD = [
    '{"user_id": "p00", "parent', "[1, 2]", line(parent_asin="absent"), '{"user": "p00"}',
    line(timestamp=TAU // 1000), line(timestamp=TAU + 0.5), line(timestamp=float(TAU)),
    line(timestamp="2020-01-01"), line(timestamp=None), line(timestamp=1000), line(user_id=None),
    line(user_id=" "),
]  # fmt: skip


def test_rows_that_cannot_be_used_are_dropped_and_counted_by_cause(books):
    rows = [line(user_id=f"p{n % 20:02}", parent_asin=f"b{n % 7}") for n in range(1500)]
    for place, bad in enumerate(BAD):
        rows.insert(place * 100, bad)
    write_lines(books / "reviews" / "Books.jsonl", rows)
    made = built(books)
    write_lines(books / "reviews" / "Books.jsonl", [row for row in rows if row not in BAD])
    assert read_build(made) == read_build(built(books, out=books / "clean"))
    assert read_manifest(made).parts["reviews/Books"].counts == {
        "read": 1512, "a time before 1990 or after 2100": 1, "a time in seconds": 1,
        "a time that is no whole number": 3, "no JSON object, or none of its keys": 3, "no item": 1,
        "no time": 1, "no user": 2,
    }  # fmt: skip


def test_a_full_disk_and_one_with_too_little_room(books, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10})())
        assert "the disk has too little room" in failed(books, StorageError)
    assert read_manifest(books / "out").parts == {}
    rows = [(f"{n * 7919:x}", f"b{n % 7}", TAU + n) for n in range(20_000)]
    write_log(books, {"Books": rows}, {})
    with room_for(20_000):
        told = failed(books, StorageError, out=books / "full")
    assert told.splitlines()[0] == "DIR/full: cannot write"
    assert "repeat the same command: it continues where it stopped" in told
    assert len(read_build(built(books, out=books / "full"))["histories"]) == 20_000


def test_csv_and_parquet_give_what_json_lines_give(books):
    import duckdb

    wanted = read_build(built(books))
    read = f"SELECT user_id, parent_asin, rating, timestamp FROM '{books}/reviews/Books.jsonl'"
    for ending, options in {
        "csv": "HEADER",
        "csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
        "parquet": "FORMAT parquet",
    }.items():
        folder = books / ending
        folder.mkdir()
        duckdb.execute(f"COPY ({read}) TO '{folder}/Books.{ending}' ({options})")
        assert read_build(built(books, reviews=(folder,), out=folder / "out")) == wanted, ending


def test_odd_lines_of_csv_are_dropped_and_counted(books):
    (books / "reviews" / "Books.jsonl").unlink()
    rows = [f"p{n % 20:02},b{n % 7},5.0,{TAU + n}" for n in range(1400)]
    odd = ["p01,b1", "p01,b2,4.0,1.5e12", ",b1,4.0,1577836800000", ""]
    lines = ["user_id,parent_asin,rating,timestamp", *rows[:50], *odd, *rows[50:]]
    (books / "reviews" / "Books.csv").write_text("\n".join(lines) + "\n")
    made = built(books)
    assert read_manifest(made).parts["reviews/Books"].counts == {
        "read": 1403, "a time that is no whole number": 1, "no time": 1, "no user": 1,
    }  # fmt: skip


@pytest.fixture(scope="module")
def drawn_log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    write_log(folder, *random_log(Random(3)), packed=True)
    built(folder, partitions=3)
    return folder


@pytest.fixture
def copy(drawn_log, tmp_path):
    """A log and its build that a test may change."""
    return shutil.copytree(drawn_log, tmp_path / "copy")


@pytest.mark.parametrize(
    "at", [(engines, "_keep", 4), (Ledger, "finish", 8), (Ledger, "forget_files", 4)]
)
def test_a_killed_build_continues_and_ends_in_the_same_bytes(drawn_log, tmp_path, monkeypatch, at):
    """A copy of the folder at a moment is what a kill leaves: before a file has its name, before a
    part is recorded, and before files that are spent are removed."""
    holder, moment, number = at
    real, calls, out = getattr(holder, moment), count(1), tmp_path / "killed"

    def copying(*given):
        if next(calls) == number:
            shutil.copytree(tmp_path / "whole", out)
        return real(*given)

    monkeypatch.setattr(holder, moment, copying)
    built(drawn_log, out=tmp_path / "whole", partitions=3)
    unfinished = read_manifest(out)
    assert unfinished is not None and not unfinished.complete
    counted, items = len(unfinished.parts), out / "items.parquet"
    finished = items.stat().st_ino if "items" in unfinished.parts else None
    assert (finished is None) <= (moment != "finish")
    built(drawn_log, out=out, partitions=3)
    assert finished in (None, items.stat().st_ino), "a finished part was done again"
    assert counted < len(read_manifest(out).parts)
    assert contents(out) == contents(drawn_log / "out")


def test_other_options_and_contents_are_refused_with_what_differs(drawn_log, tmp_path):
    with pytest.raises(UsageError) as error:
        build.run(settings_of(drawn_log, partitions=3, seed=1, published=True))
    assert str(error.value).splitlines()[1:5] == [
        "  found:    published: True instead of False",
        "      least_interactions: 5 instead of None",
        "      seed: 1 instead of 0",
        "  expected: the inputs and options of manifest.json, or another folder (--out)",
    ]
    write_log(tmp_path, {"Zoo": [("u", "i1", TAU)]}, {"Zoo": {"i1": "A thing"}})
    with pytest.raises(DataError):
        built(tmp_path, least_items=2)  # begun, and stopped by an error
    write_log(tmp_path, {"Zoo": [("you", "i1", TAU)]}, {})
    with pytest.raises(UsageError) as error:
        built(tmp_path, least_items=2)
    changed = "reviews Zoo.jsonl: 83 bytes with another content, instead of 81 bytes"
    assert error.value.found == changed


def test_another_input_is_refused_and_a_new_date_or_memory_is_not(copy):
    file = sorted((copy / "reviews").iterdir())[0]
    os.utime(file, (1, 1))
    assert build.run(settings_of(copy, partitions=3, memory="3GB")).notes[-1].startswith("nothing")
    other = copy / "reviews" / "Zoo.jsonl"
    other.write_text('{"user_id":"u","parent_asin":"i1","timestamp":1577836800000}\n')
    (copy / "meta" / "meta_Zoo.jsonl").write_text('{"parent_asin":"i1","title":"A thing"}\n')
    file.unlink()
    file.with_suffix("").write_text(other.read_text())
    with pytest.raises(UsageError) as error:
        build.run(settings_of(copy, partitions=3))
    assert error.value.found.splitlines() == [
        f"reviews {file.name}: is gone",
        "      meta meta_Zoo.jsonl: is new",
        f"      reviews {file.stem}: is new",
        "      reviews Zoo.jsonl: is new",
    ]


def test_folders_of_others_of_two_builds_and_with_changed_files_are_refused(copy, tmp_path):
    import fcntl

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="the folder for the histories is not empty"):
        build.run(settings_of(copy, out=tmp_path / "mine"))
    with (copy / "out" / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another process builds in this folder"):
            build.run(settings_of(copy, partitions=3))
    file = copy / "out" / "train.parquet"
    data = bytearray(file.read_bytes())
    data[40] ^= 1
    file.write_bytes(data)
    with pytest.raises(DataError, match="a finished file is gone or was changed"):
        build.run(settings_of(copy, partitions=3))


def test_ctrl_c_says_what_is_kept(drawn_log, tmp_path, monkeypatch):
    write = Engine.write

    def interrupted(engine, query, file, *options):
        if file.name == "part-001.parquet":
            raise RuntimeError("Query interrupted")
        write(engine, query, file, *options)

    monkeypatch.setattr(Engine, "write", interrupted)
    with pytest.raises(Interrupted) as raised:
        build.run(settings_of(drawn_log, out=tmp_path, partitions=3))
    assert raised.value.hint == "all finished parts are kept: the same command continues from there"


TEN = PEOPLE[:10]
BOUGHT = {
    "Books": [
        *((one, "b1", TAU - 400 * DAY) for one in TEN),
        *((one, "b2", TAU - DAY) for one in TEN[:5]),
    ],
    "Toys": [*((one, "t1", TAU) for one in TEN[:8]), ("new", "t1", TAU + DAY)],
}
NAMED = {"Books": {"b1": "One", "b2": "Two"}, "Toys": {"t1": "Three"}}


def test_tables_stand_beside_those_of_the_paper_and_figures_hold_the_distributions(tmp_path):
    write_log(tmp_path, BOUGHT, NAMED)
    report = describe.run(describe.Settings(data=built(tmp_path), memory="2GB"))
    assert {sheet.title: sheet.rows for sheet in report.sheets} == {
        "Size, as in Table 7": (
            ("users", 11e-6, 54.51), ("mean length of a history", 24 / 11, 9.07),
            ("items", 3e-6, 34.52), ("interactions", 24e-6, 485.89),
        ),
        "Interactions of a user, as in appendix B": (
            ("interactions before 2020", 15 / 11, 1.5, 4.99),
            ("interactions from 2020 on", 9 / 11, 1.0, 4.09),
        ),
        "Interactions a year": (("2018", 10, 10), ("2019", 5, 5), ("2020", 9, 9)),
        "Long tails": (
            ("interactions of a user", 2, 3, 3, 3, 3),
            ("interactions of an item", 9, 10, 10, 10, 10),
        ),
        "Categories": (("Books", 2, 15, 0), ("Toys", 1, 0, 9)),
    }  # fmt: skip
    lengths, years, items = (figure.marks[0] for figure in report.figures)
    # Bins of one, of two and three, of four to seven, and of eight to fifteen: 3, 3 + 5 users.
    assert (lengths.x, lengths.y) == ((1.0, 2.5), (3.0, 4.0))
    assert (years.x, years.y) == ((2018.0, 2019.0, 2020.0), (10.0, 5.0, 9.0))
    assert (items.x, items.y) == ((5.5, 11.5), (1 / 4, 2 / 8))


def test_a_folder_that_is_not_complete_is_not_described(tmp_path):
    write_log(tmp_path, BOUGHT, NAMED)
    with pytest.raises(DataError):
        build.run(settings_of(tmp_path, least_items=100))
    for folder, found in ((tmp_path, "no manifest.json"), (tmp_path / "out", "4 finished parts")):
        with pytest.raises(DataError, match="no complete build") as error:
            describe.run(describe.Settings(data=folder))
        assert error.value.found == found
