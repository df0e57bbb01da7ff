"""Histories: who is kept, in which order, with which texts; and the pool."""

import hashlib
import json
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders.gistbench import LIKED, SKIPPED, WATCHED
from builders.texts import write_csv, write_json_lines
from harness_gistbench.histories import Engagement
from harness_gistbench.records import PoolObject

from harness.data import database


@pytest.fixture
def plain(load_histories, tmp_path):
    """Loads rows of user, object, signal and, where given, time; texts are `about OBJECT`."""

    def read(*rows, **settings):
        names = ("user_id", "object_id", "interaction_type", "interaction_time")
        lines = [
            {"object_text": f"about {row[1]}", **dict(zip(names, row, strict=False))}
            for row in rows
        ]
        file = write_json_lines(tmp_path / "log.jsonl", lines)
        return load_histories("gist_synthetic", file, **settings)

    return read


@pytest.fixture(params=["whole", "in parts"])
def read_at_once(request, monkeypatch):
    """The data is read in one go, and again three rows at a time."""
    if request.param == "in parts":
        monkeypatch.setattr("harness.data.read.BATCH_ROWS", 3)


def objects(found, user):
    return [one.object for one in found.history(user)]


def test_the_order_is_by_time_or_that_of_the_file(plain):
    found = plain(
        ("u", "old", LIKED, 9), ("v", "other", SKIPPED, 1), ("u", "new", WATCHED, 100),
        ("u", "mid", LIKED, "10.5"),
    )  # fmt: skip
    assert found.history("u") == [
        Engagement("new", "about new", WATCHED),
        Engagement("mid", "about mid", LIKED),
        Engagement("old", "about old", LIKED),
    ]
    assert found.history("v") == [Engagement("other", "about other", SKIPPED)]
    assert (found.count("u"), found.count("v")) == (3, 1)


def test_engagements_without_a_time_are_the_oldest_and_noted(plain, load_histories):
    found = plain(
        ("u", "a", LIKED), ("v", "x", LIKED, ""), ("u", "b", LIKED, None), ("u", "c", LIKED, " ")
    )
    assert objects(found, "u") == ["a", "b", "c"]
    assert load_histories.notes == {"engagements in the order of the data, as none has a time": 4}
    found = plain(
        ("u", "none-1", LIKED), ("u", "a", LIKED, -5), ("u", "none-2", LIKED, ""),
        ("u", "b", LIKED, 3),
    )  # fmt: skip
    assert objects(found, "u") == ["b", "a", "none-1", "none-2"]
    assert load_histories.notes == {"engagements without a time, taken as the oldest": 2}


def test_the_other_names_of_columns_will_do(load_histories, tmp_path):
    file = write_csv(
        tmp_path / "log.csv",
        "dataset,user_mock_id,object_id,engagement_type,object_text,timestamp",
        f"synthetic,1,10,{LIKED},Night trains,2024-05-30",
        f"synthetic,1,11,{SKIPPED},Rye bread,2024-05-31",
    )
    assert load_histories("gist_synthetic", file).history("1") == [
        Engagement("11", "Rye bread", SKIPPED),
        Engagement("10", "Night trains", LIKED),
    ]


NOON, EAST = "2024-05-31T12:00:00Z", "2024-05-31T12:30:00+02:00"


@pytest.mark.parametrize(
    ("times", "newest_first"),
    [
        pytest.param((5, 7, 5, 7, 5), "bdace", id="then as in the file"),
        pytest.param((NOON, "2024-05-31", EAST, "2024-05-31 11:00:00.5"), "adcb", id="moments"),
        pytest.param((NOON, "2024-W22-4", "2024-05-31T01:00:00,5"), "acb", id="rarer spellings"),
        pytest.param((9, "10", " 9.5 "), "bca", id="numbers in texts"),
        pytest.param((2**60 + 2, "+5", "-0"), "abc", id="signs"),
        pytest.param((2**60 + 1, 2**60 + 2), "ba", id="exactly"),
        pytest.param(
            (f"{2**60 + 1}.0", 2**60 + 2, f"{2**60 + 3}", "0.5e1"), "cbad", id="in every spelling"
        ),
    ],
)
def test_times_compare_as_moments_and_numbers(plain, times, newest_first):
    found = plain(*(("u", name, LIKED, when) for name, when in zip("abcde", times, strict=False)))
    assert "".join(objects(found, "u")) == newest_first


def test_dates_without_a_zone_do_not_depend_on_where_the_machine_stands(plain, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        found = plain(
            ("u", "one", LIKED, "2024-05-31T11:00:00Z"), ("u", "two", LIKED, "2024-05-31T12:00:00")
        )
    finally:
        monkeypatch.undo()
        time.tzset()
    assert objects(found, "u") == ["two", "one"]


def test_people_without_a_positive_engagement_are_kept_and_noted(plain, load_histories):
    rows = [("u", "a", SKIPPED, 1), ("v", "a", SKIPPED, 2), ("v", "b", LIKED, 3),
            ("w", "b", SKIPPED, 4), ("x", "c", WATCHED, 5)]  # fmt: skip
    assert sorted(plain(*rows).users) == ["u", "v", "w", "x"]
    assert load_histories.notes == {
        "users without a positive engagement, who score 0 whoever is asked": 2
    }
    plain(*rows[1:3])
    assert load_histories.notes == {}


def test_people_with_too_few_engagements_are_left_out_before_the_choice(plain, load_histories):
    rows = [("few", "a", LIKED, 1), ("many", "a", LIKED, 1), ("many", "b", LIKED, 2)]
    found = plain(*rows, min_engagements=2)
    assert list(found.users) == ["many"]
    assert load_histories.notes == {"users left out with fewer than 2 engagements": 1}


@pytest.mark.usefixtures("read_at_once")
def test_signals_and_pool_are_those_of_the_whole_data_whatever_the_limit(plain):
    rows = [(f"u{n}", f"o{n}", LIKED, 1) for n in range(9)] + [("u9", "o9", SKIPPED, 1)]
    everybody, one = plain(*rows, pool=4), plain(*rows, pool=4, limit=1)
    assert len(everybody.users) == 10
    assert len(one.users) == 1
    assert everybody.signals == one.signals == (LIKED, SKIPPED)
    assert everybody.pool == one.pool
    smallest = sorted(
        (f"o{n}" for n in range(10)),
        key=lambda one: hashlib.md5(f"0 {one}".encode()).hexdigest(),
    )[:4]
    assert everybody.pool == tuple(PoolObject(one, f"about {one}") for one in smallest)


@pytest.mark.usefixtures("read_at_once")
def test_what_a_person_engaged_with_is_known_of_the_pool(plain):
    rows = [("u", "a", LIKED), ("u", "b", SKIPPED), ("u", "a", SKIPPED), ("v", "c", LIKED)]
    everybody, one = plain(*rows), plain(*rows, limit=1)
    assert everybody.own_of_pool("u") == {"a", "b"}
    assert everybody.own_of_pool("v") == {"c"}
    [only] = one.users
    assert one.own_of_pool(only) == ({"a", "b"} if only == "u" else {"c"})
    [first] = plain(*rows, pool=1).pool
    assert [first.object in plain(*rows, pool=1).own_of_pool(user) for user in "uv"] == [
        first.object in "ab",
        first.object == "c",
    ]


def test_ids_and_texts_come_back_as_they_were(load_histories, tmp_path):
    rows = [
        ("7:x", "12:ab", "ü: 3:\n “two” lines"),
        ("7:x", "ß:", "🎸"),
        ("7:x", "5", "x" * 70_000),
    ]
    names = ("user_id", "object_id", "object_text")
    columns = {
        name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    columns |= {"interaction_type": [LIKED] * 3, "interaction_time": [3, 2, 1]}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    found = load_histories("gist_synthetic", tmp_path / "log.parquet")
    assert [(one.object, one.text) for one in found.history("7:x")] == [row[1:] for row in rows]


def test_tasks_that_share_a_log_read_and_hold_it_once(load_histories, tmp_path, monkeypatch):
    """With another window they share the histories too, with another pool the log alone."""
    header = "user_id,object_id,object_text,interaction_type,interaction_time"
    rows = (f"u{n % 3},o{n},about {n},{LIKED},{n}" for n in range(30))
    file = write_csv(tmp_path / "log.csv", header, *rows)
    loaded = []
    load = database._by_sql

    def counted(*given):
        loaded.append(given)
        return load(*given)

    monkeypatch.setattr(database, "_by_sql", counted)
    options = {"one": {"window": 5}, "alike": {"window": 9}, "other": {"pool": 3}}
    shared = {}
    one, alike, other = (
        load_histories("gist_synthetic", file, name=name, shared=shared, **changed)
        for name, changed in options.items()
    )
    assert len(loaded) == 1
    assert alike is one
    assert (len(one.pool), len(other.pool)) == (30, 3)
    assert [other.history(user) for user in other.users] == [one.history(u) for u in one.users]


@pytest.mark.usefixtures("read_at_once")
def test_objects_with_several_texts_have_the_first_and_are_counted(tmp_path, load_histories):
    texts = [("a", "one"), ("b", "same"), ("a", "one"), ("c", "x"), ("a", "two"), ("c", "y"),
             ("a", "three"), ("b", "same"), ("c", "x")]  # fmt: skip
    rows = [f"{user},{thing},{text},{LIKED}" for thing, text in texts for user in "uv"]
    file, header = tmp_path / "log.csv", "user_id,object_id,object_text,interaction_type"
    found = load_histories("gist_synthetic", write_csv(file, header, *rows))
    for user in "uv":
        first = {(one.object, one.text) for one in found.history(user)}
        assert first == {("a", "one"), ("b", "same"), ("c", "x")}
    fact = "objects with several texts, of which the first is taken"
    assert load_histories.notes[fact] == 2
    rows = [row for row in rows if "two" not in row and "three" not in row and "y" not in row]
    load_histories("gist_synthetic", write_csv(file, header, *rows))
    assert fact not in load_histories.notes


def test_what_was_noted_of_the_data_stays_with_the_run(tmp_path, printed, monkeypatch):
    """At its start, in the manifest, summary and table, after going on and scoring anew."""
    monkeypatch.chdir(tmp_path)
    rows = [f"u,o{n},about {n},{LIKED},{n or ''}" for n in range(5)] + [f"v,o1,x,{LIKED},7"]
    header = "user_id,object_id,object_text,interaction_type,interaction_time"
    write_csv(Path("log.csv"), header, *rows)
    command = [
        "--model", "baseline", "--judge", "lexical", "--tasks", "gist_synthetic", "--data",
        "log.csv", "--set", "min_engagements=2", "--set", "taxonomy=[about]",
        "--store", "calls.sqlite", "--verbose",
    ]  # fmt: skip
    noted = {
        "engagements without a time, taken as the oldest": 1,
        "users left out with fewer than 2 engagements": 1,
        "objects with several texts, of which the first is taken": 1,
    }
    lines = [f"{fact}: 1" for fact in noted]

    def told(*arguments):
        shown = printed(*arguments)
        [folder] = Path("runs").iterdir()
        assert all(f"  {line}\n" in shown.out for line in lines)
        summary = json.loads((folder / "gist_synthetic" / "summary.json").read_text())
        manifest = json.loads((folder / "manifest.json").read_text())
        assert summary["data"]["notes"] == noted
        assert manifest["tasks"]["gist_synthetic"]["data"]["notes"] == noted
        return str(folder), [line for line in shown.err.splitlines() if "gist_synthetic: " in line]

    folder, said = told(*command)
    assert said == [f"gist_synthetic: {line}" for line in lines]
    assert told(*command, "--resume", folder)[1] == said
    assert told(*command, "--resume", folder, "--quiet")[1] == []
    assert "gist_synthetic: " not in printed("score", folder).err
    assert told("show", folder)[1] == []
