"""Synthetic users of a whole log, as the command makes them."""

import csv
import json
from collections import defaultdict

import pyarrow.parquet as pq
import pytest
from builders.processes import run_here, run_python
from builders.texts import read_csv
from harness_gistbench.synthesis.settings import Settings
from harness_gistbench.synthesis.synthesize import run

from harness.base.errors import UsageError

HEADER = ["user_id", "object_id", "object_text", "interaction_type", "interaction_time", "topic"]
GROUPS = {"bakers": [f"bread{n}" for n in range(10)], "sailors": [f"boat{n}" for n in range(10)]}
"""Of two groups of a dozen people each the ten topics that they like."""
WORDS = {"bread": "oven crust flour dough", "boat": "sail harbour wave rope"}


def real_rows():
    """Everybody watches two things of each own topic, likes one and skips one of the others'."""
    for group, liked in GROUPS.items():
        others = next(topics for name, topics in GROUPS.items() if name != group)
        for person in range(12):
            user = f"real-{group}-{person}"
            time = 1_700_000_000 + 1000 * person
            for place, topic in enumerate(liked):
                for copy in range(2):
                    kind = "explicit_positive" if place == copy == 0 else "implicit_positive"
                    yield thing(user, topic, copy, kind, time + place)
            for place, topic in enumerate(others):
                yield thing(user, topic, 0, "implicit_negative", time + place)


def thing(user, topic, copy, kind, time):
    word = topic.rstrip("0123456789")
    text = f"#{word} {WORDS[word]} {topic} {topic}x{copy}"
    return (user, f"real-object-{topic}-{copy}", text, kind, str(time), topic)


def write_log(file, rows):
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([HEADER, *rows])
    return file


@pytest.fixture
def log(tmp_path):
    return write_log(tmp_path / "log.csv", real_rows())


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """The folder of the users of the log, and the report on them."""
    folder = tmp_path_factory.mktemp("made")
    log = write_log(folder / "log.csv", real_rows())
    return folder / "out", run(settings(log, folder / "out"))


@pytest.fixture
def made(reported):
    return reported[0]


def settings(log, out, **changed):
    return Settings(log=log, out=out, **{"clusters_column": "topic", **changed})


def written(folder):
    return read_csv(folder / "engagements.csv")


def bytes_in(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_users_are_made_of_cohorts_with_an_account_and_nothing_real(made):
    users = defaultdict(list)
    for row in written(made):
        assert list(row) == HEADER[:-1]
        users[row["user_id"]].append(row)
    assert list(users) == ["1", "2"]
    for rows, own in zip(users.values(), ("boat", "bread"), strict=True):
        assert len(rows) == 60, "twice the thirty engagements that everybody has"
        kinds = defaultdict(set)
        for row in rows:
            kinds[row["interaction_type"]].add(row["object_text"].split()[0])
        assert kinds["implicit_positive"] == {f"#{own}"}
        assert kinds["implicit_negative"] == {"#boat" if own == "bread" else "#bread"}
    told = json.loads((made / "synthesis.json").read_bytes())
    assert told["log"]["files"][0]["file"] == "log.csv"
    assert (told["log"]["engagements"], told["log"]["people_in_window"]) == (720, 24)
    assert told["clusters"] == {"method": "the column topic", "number": 20, "libraries": {}}
    assert told["settings"]["least_people"] == 10
    assert told["synthetic_users"][0] == {
        "user_id": "1",
        "people": 12,
        "clusters": GROUPS["sailors"],
        "pooled": 360,
        "wanted": 60,
        "drawn": 60,
    }
    assert told["filter"] == {"rows": 120, "dropped": 0, "replaced": 0}
    for name, content in bytes_in(made).items():
        assert b"real-" not in content, name
        assert b"17000" not in content, name
        assert str(made.parent).encode() not in content, name


def test_the_report_compares_the_users_with_the_people_behind_them(reported):
    _, report = reported
    summary, tested, shares, lengths = report.sheets
    assert {
        ("cohorts, one synthetic user each", 2),
        ("people in cohorts", 24),
        ("engagements pooled", 720),
        ("engagements written", 120),
    } <= set(summary.rows)
    assert [(row[0], row[4]) for row in tested.rows] == [
        ("implicit positive", 19.0),
        ("implicit negative", 10.0),
        ("explicit positive", 1.0),
    ]
    assert [row[3] for row in shares.rows] == pytest.approx([63.33, 33.33, 3.33], abs=0.01)
    assert [row[:3] for row in lengths.rows] == [("synthetic", 2, 60.0), ("real", 24, 30.0)]
    assert [figure.title for figure in report.figures] == [
        "Lengths of histories",
        "Engagements a person by type",
    ]


def test_the_same_log_gives_the_same_bytes_in_any_order_and_format(made, tmp_path, log):
    log = write_log(tmp_path / "log.csv", list(real_rows())[::-1])
    run(settings(log, tmp_path / "out"))
    assert bytes_in(tmp_path / "out")["engagements.csv"] == bytes_in(made)["engagements.csv"]
    run(settings(log, tmp_path / "parquet", format="parquet"))
    table = pq.read_table(tmp_path / "parquet" / "engagements.parquet")
    assert str(table.schema.field("user_id").type) == "int64"
    rows = [{name: str(value) for name, value in row.items()} for row in table.to_pylist()]
    assert rows == written(made)


CODE = """
import pathlib, sys
from harness_gistbench.synthesis.settings import Settings
from harness_gistbench.synthesis.synthesize import run
chosen = {"clusters": 12, "least_people": 5, "clusters_together": 4}
run(Settings(log=sys.argv[1], out=pathlib.Path(sys.argv[2]), **chosen))
"""


def test_another_process_with_another_hash_seed_gives_the_same_bytes(log, tmp_path):
    run_here(CODE, log, tmp_path / "here")
    run_python(CODE, log, tmp_path / "there", PYTHONHASHSEED="1")
    assert bytes_in(tmp_path / "here") == bytes_in(tmp_path / "there")


def test_a_filter_drops_keeps_and_replaces_and_is_counted(made, log, tmp_path, monkeypatch):
    (tmp_path / "filter_of_a_whole_log.py").write_text(
        "def tidy(row):\n"
        "    if row['interaction_type'] == 'implicit_negative':\n"
        "        return None\n"
        "    return row | {'object_text': row['object_text'].replace('bread0', 'bun')}\n"
    )
    monkeypatch.chdir(tmp_path)
    report = run(settings(log, tmp_path / "out", filter="filter_of_a_whole_log:tidy"))
    rows = written(tmp_path / "out")
    assert rows == [
        {**row, "object_text": row["object_text"].replace("bread0", "bun")}
        for row in written(made)
        if row["interaction_type"] != "implicit_negative"
    ]
    told = dict(report.sheets[0].rows)
    assert told["engagements dropped by the filter"] == 120 - len(rows) > 0
    replaced = sum("bun" in row["object_text"] for row in rows)
    assert told["engagements replaced by the filter"] == replaced > 0
    assert told["engagements written"] == len(rows)
    account = json.loads((tmp_path / "out/synthesis.json").read_bytes())
    assert account["filter"] == {"rows": 120, "dropped": 120 - len(rows), "replaced": replaced}


def test_a_cohort_of_more_people_at_least_than_at_most_is_refused(log, tmp_path):
    with pytest.raises(ValueError, match="at most 3 people a cohort, and at least 10"):
        settings(log, tmp_path, most_people=3)


def test_without_a_column_like_texts_are_clusters_also_by_an_embedder(log, tmp_path):
    chosen = {"clusters_column": None, "clusters": 2, "clusters_together": 1}

    def told(folder, **more):
        run(settings(log, tmp_path / folder, **chosen, **more))
        return json.loads((tmp_path / folder / "synthesis.json").read_bytes())

    own = told("out")
    assert own["clusters"]["number"] == 2
    assert set(own["clusters"]["libraries"]) == {"numpy", "scipy", "scikit-learn"}
    assert [one["people"] for one in own["synthetic_users"]] == [12, 12]
    method = told("embedded", embedding="hashing:dimensions=32")["clusters"]["method"]
    assert method == "k-means over an embedding of the texts"
    with pytest.raises(UsageError, match="the function that --embedding names"):
        told("new", embedding="hash:words")
