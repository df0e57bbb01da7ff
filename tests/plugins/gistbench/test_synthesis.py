"""Synthetic users of a log, from its rows to its report, and what is told of a log."""

import csv
import json
from collections import defaultdict

import numpy as np
import pyarrow.parquet as pq
import pytest
from builders.processes import run_here, run_python
from builders.texts import read_csv
from harness_gistbench.log_index import CODES, Log, LogIndex
from harness_gistbench.synthesis import describe, validation
from harness_gistbench.synthesis.clusters import NONE, Clusters, by_k_means
from harness_gistbench.synthesis.cohorts import Cohort, cohorts, draw, form, membership
from harness_gistbench.synthesis.reading import Real, read, texts_of
from harness_gistbench.synthesis.settings import Settings
from harness_gistbench.synthesis.synthesize import run
from harness_gistbench.synthesis.writing import rows_of

from harness.base.errors import UsageError
from harness.data.database import Database

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
def log_file(tmp_path):
    return write_log(tmp_path / "log.csv", real_rows())


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """The folder of the users of the log, and the report on them."""
    folder = tmp_path_factory.mktemp("made")
    log = write_log(folder / "log.csv", real_rows())
    return folder / "out", run(chosen_for(log, folder / "out"))


@pytest.fixture
def made(reported):
    return reported[0]


def chosen_for(log_file, out, **changed):
    return Settings(log=log_file, out=out, **{"clusters_column": "topic", **changed})


def written(folder):
    return read_csv(folder / "engagements.csv")


def bytes_in(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_users_are_made_of_cohorts_with_an_account_and_nothing_real(reported):
    made, report = reported
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
        "user_id": "1", "people": 12, "clusters": GROUPS["sailors"], "pooled": 360, "wanted": 60,
        "drawn": 60,
    }  # fmt: skip
    assert told["filter"] == {"rows": 120, "dropped": 0, "replaced": 0}
    for name, content in bytes_in(made).items():
        assert not any(one in content for one in (b"real-", b"17000", bytes(made.parent))), name
    # The report compares the users with the people behind them.
    summary, tested, shares, lengths = report.sheets
    assert {
        ("cohorts, one synthetic user each", 2), ("people in cohorts", 24),
        ("engagements pooled", 720), ("engagements written", 120),
    } <= set(summary.rows)  # fmt: skip
    assert [(row[0], row[4]) for row in tested.rows] == [
        ("implicit positive", 19.0), ("implicit negative", 10.0), ("explicit positive", 1.0),
    ]  # fmt: skip
    assert [row[3] for row in shares.rows] == pytest.approx([63.33, 33.33, 3.33], abs=0.01)
    assert [row[:3] for row in lengths.rows] == [("synthetic", 2, 60.0), ("real", 24, 30.0)]
    assert [figure.title for figure in report.figures] == [
        "Lengths of histories", "Engagements a person by type",
    ]  # fmt: skip


def test_the_same_log_gives_the_same_bytes_in_any_order_and_format(made, tmp_path, log_file):
    log_file = write_log(tmp_path / "log.csv", list(real_rows())[::-1])
    run(chosen_for(log_file, tmp_path / "out"))
    assert bytes_in(tmp_path / "out")["engagements.csv"] == bytes_in(made)["engagements.csv"]
    run(chosen_for(log_file, tmp_path / "parquet", format="parquet"))
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


def test_another_process_with_another_hash_seed_gives_the_same_bytes(log_file, tmp_path):
    run_here(CODE, log_file, tmp_path / "here")
    run_python(CODE, log_file, tmp_path / "there", PYTHONHASHSEED="1")
    assert bytes_in(tmp_path / "here") == bytes_in(tmp_path / "there")


def test_a_filter_drops_keeps_and_replaces_and_is_counted(made, log_file, tmp_path, monkeypatch):
    (tmp_path / "filter_of_a_whole_log.py").write_text(
        "def tidy(row):\n"
        "    if row['interaction_type'] == 'implicit_negative':\n"
        "        return None\n"
        "    return row | {'object_text': row['object_text'].replace('bread0', 'bun')}\n"
    )
    monkeypatch.chdir(tmp_path)
    tidy = "filter_of_a_whole_log:tidy"
    report = run(chosen_for(log_file, tmp_path / "out", filter=tidy))
    rows = written(tmp_path / "out")
    assert rows == [
        {**row, "object_text": row["object_text"].replace("bread0", "bun")}
        for row in written(made)
        if row["interaction_type"] != "implicit_negative"
    ]
    dropped, replaced = 120 - len(rows), sum("bun" in row["object_text"] for row in rows)
    assert dropped > 0 and replaced > 0
    assert (
        dict(report.sheets[0].rows).items()
        >= {
            "engagements dropped by the filter": dropped,
            "engagements replaced by the filter": replaced,
            "engagements written": len(rows),
        }.items()
    )
    account = json.loads((tmp_path / "out/synthesis.json").read_bytes())
    assert account["filter"] == {"rows": 120, "dropped": dropped, "replaced": replaced}


def test_without_a_column_like_texts_are_clusters_also_by_an_embedder(log_file, tmp_path):
    chosen = {"clusters_column": None, "clusters": 2, "clusters_together": 1}

    def told(folder, **more):
        run(chosen_for(log_file, tmp_path / folder, **chosen, **more))
        return json.loads((tmp_path / folder / "synthesis.json").read_bytes())

    own = told("out")
    assert own["clusters"]["number"] == 2
    assert set(own["clusters"]["libraries"]) == {"numpy", "scipy", "scikit-learn"}
    assert [one["people"] for one in own["synthetic_users"]] == [12, 12]
    method = told("embedded", embedding="hashing:dimensions=32")["clusters"]["method"]
    assert method == "k-means over an embedding of the texts"
    with pytest.raises(UsageError, match="the function that --embedding names"):
        told("new", embedding="hash:words")


LIKE, WATCH, SKIP = (CODES["explicit_positive"], CODES["implicit_positive"],
                     CODES["implicit_negative"])  # fmt: skip


def settings(**changed):
    return Settings(log="log.csv", out="out", **changed)


def values(rows, columns, kinds):
    """A query for these rows."""
    cells = (
        ", ".join(f"{'NULL' if one is None else repr(one)}::{kind}" for one, kind in pairs)
        for pairs in (zip(row, kinds, strict=True) for row in rows)
    )
    return f"SELECT * FROM (VALUES {', '.join(f'({row})' for row in cells)}) AS t({columns})"


def log(rows, texts=(("x", "text"),)):
    """A log from (user, object, code, time or None)."""
    engagements = values(
        [(place, *row, "text") for place, row in enumerate(rows)],
        'row, "user", object, signal, time, text',
        ("BIGINT", "VARCHAR", "VARCHAR", "INTEGER", "BIGINT", "VARCHAR"),
    )
    about = [(place, *row) for place, row in enumerate(texts)]
    told = values(about, "row, object, text", ("BIGINT", "VARCHAR", "VARCHAR"))
    return LogIndex(Database({}), Log(engagements=engagements, texts=told, joined=False))


def real(*histories):
    """Real people from words: each letter an object that was liked, capital ones skipped."""
    objects = tuple(sorted({letter.lower() for history in histories for letter in history}))
    return Real(
        users=tuple(f"p{number}" for number in range(len(histories))),
        objects=objects,
        starts=np.cumsum([0, *map(len, histories)]),
        object=np.array([objects.index(one.lower()) for h in histories for one in h]),
        signal=np.array([SKIP if one.isupper() else LIKE for h in histories for one in h]),
        total=sum(map(len, histories)),
        untimed=0,
        unit="seconds",
    )


def test_the_window_ends_at_the_latest_time_in_any_unit_and_is_the_whole_log_without_times():
    day = 86_400
    rows = [("b", "x", LIKE, 10 + day), ("a", "y", SKIP, 11), ("a", "x", WATCH, 10)]
    found = read(log(rows), days=1, unit="auto")
    assert (found.unit, found.total, found.users) == ("seconds", 3, ("a", "b"))
    assert found.user.tolist() == [0, 1]
    assert [found.objects[one] for one in found.object] == ["y", "x"]
    assert found.signal.tolist() == [SKIP, LIKE]
    # The unit of times shows in their size.
    for thousands, unit in enumerate(("seconds", "milliseconds", "microseconds")):
        latest = 1_700_000_000 * 1000**thousands
        assert read(log([("a", "x", LIKE, latest)]), days=1, unit="auto").unit == unit
    # A missing time among others is left out.
    logs = (log([("a", "x", LIKE, None), ("a", "y", LIKE, time)]) for time in (None, 5))
    untimed, partly = (read(one, days=1, unit="auto") for one in logs)
    assert (len(untimed.signal), untimed.unit) == (2, None)
    assert (len(partly.signal), partly.untimed) == (1, 1)


def test_of_several_texts_the_first_by_letters_is_taken():
    texts = [("x", "pear"), ("x", "apple"), ("y", "plum"), ("z", "fig")]
    given = log([("a", "x", LIKE, 1)], texts)
    assert texts_of(given, ["x", "y"]) == {"x": "apple", "y": "plum"}


def test_like_texts_or_embeddings_are_clusters():
    texts = ["red apple", "green apple pie", "fast train", "slow train ride", "red apple"]
    found = by_k_means(texts, many=2, seed=0)
    assert found.names == ("1", "2")
    assert found.of_object.tolist() == [1, 1, 0, 0, 1]
    found = by_k_means(
        ["a", "bb", "c", "dd"], many=2, seed=0, embed=lambda texts: [[len(one)] for one in texts]
    )
    assert found.of_object.tolist() == [0, 1, 0, 1]


def test_people_belong_to_clusters_and_cohorts_to_the_numbers_of_the_log():
    people = real("aB", "ab", "Ab", "c")
    clusters = Clusters(names=("one", "two"), of_object=np.array([0, 1, NONE]), method="")
    found = membership(people, clusters, settings(clusters_together=1, least_people=2))
    assert found.people.tolist() == [0, 1, 2]
    assert found.clusters.tolist() == [0, 1]
    assert found.table.tolist() == [[True, False], [True, True], [False, True]]
    both = settings(clusters_together=2, least_people=2)
    assert membership(people, clusters, both).people.tolist() == [1]
    people = real("c", "ab", "ab", "ab")
    clusters = Clusters(names=("z", "a", "b"), of_object=np.array([1, 2, 0]), method="")
    found = cohorts(membership(people, clusters, both), both)
    assert found == [Cohort(people=(1, 2, 3), clusters=(1, 2))]


def table(*rows):
    return np.array([[mark == "x" for mark in row] for row in rows])


def test_the_largest_cohort_comes_first_and_everybody_is_in_one_at_most():
    belongs = table("..xx", "..xx", "xx..", "xx..", "xxx.", "x..x")
    found = form(belongs, settings(clusters_together=2, least_people=2))
    assert found == [
        Cohort(people=(2, 3, 4), clusters=(0, 1)), Cohort(people=(0, 1), clusters=(2, 3)),
    ]  # fmt: skip
    # A common cluster that leads nowhere does not hide a cohort.
    rows = table("xx......", "x.x.....", "x..x....", "x...x...", ".....xx.", ".....xx.", ".....xxx")
    found = form(rows, settings(clusters_together=2, least_people=3))
    assert found == [Cohort(people=(4, 5, 6), clusters=(5, 6))]


def test_a_cohort_has_ten_people_or_more_and_those_above_the_most_are_left_to_later_cohorts():
    ten = table(*["x" * 10] * 10)
    assert len(form(ten, settings())[0].people) == 10
    assert form(ten[:9], settings()) == []
    assert form(ten[:, :9], settings()) == []
    assert settings().cohorts == 1000
    with pytest.raises(ValueError, match="at most 3 people a cohort, and at least 10"):
        settings(most_people=3)
    belongs, few = table(*["xx"] * 7), {"clusters_together": 2, "least_people": 2, "most_people": 3}
    found = form(belongs, settings(**few))
    assert [len(one.people) for one in found] == [3, 3]
    assert len({person for one in found for person in one.people}) == 6
    assert form(belongs, settings(**few, cohorts=1)) == found[:1]


def test_a_draw_is_as_long_as_one_history_times_the_factor_and_takes_nothing_twice():
    people = real("abc", "ABC", "zzzzzzzz")
    cohort = Cohort(people=(0, 1), clusters=())
    one = draw(people, cohort, settings(factor=1.5), number=1)
    assert (one.wanted, one.pooled, len(one.rows)) == (4, 6, 4)
    assert len(set(one.rows)) == 4
    assert set(one.rows) <= set(range(6))
    all_of_it = draw(people, cohort, settings(factor=3.0), number=1)
    assert (all_of_it.wanted, sorted(all_of_it.rows)) == (9, list(range(6)))
    assert all_of_it.rows != sorted(all_of_it.rows)


def test_rows_have_new_ids_and_times_within_the_window():
    people = real("ab", "aC")
    cohort = Cohort(people=(0, 1), clusters=())
    chosen = settings(factor=2.0, days=2)
    draws = [draw(people, cohort, chosen, number=number) for number in (1, 2)]
    texts = {"a": "apples", "b": "birds", "c": "cats"}
    first, second = rows_of(draws, people, texts, chosen)
    assert [row.user for row in first + second] == [1] * 4 + [2] * 4
    for rows in (first, second):
        assert sorted(row.text for row in rows) == ["apples", "apples", "birds", "cats"]
        assert [row.time for row in rows] == sorted(row.time for row in rows)
        assert all(0 <= row.time < 2 * 86_400 for row in rows)
        assert {row.text: row.signal for row in rows}["cats"] == "implicit_negative"
    assert {row.object for row in first} == {1, 2, 3}
    assert {row.text: row.object for row in first} == {row.text: row.object for row in second}
    assert first[0].object == 1


def compared(synthetic, real):
    """A comparison of people, each the numbers of the four types or of what they only watched."""
    sides = {
        name: np.array([[0, one, 0, 0] if isinstance(one, int) else one for one in people])
        for name, people in {"synthetic": synthetic, "real": real}.items()
    }
    return validation.Comparison(**sides)


def test_the_test_is_welchs_two_sided_one():
    # t = (4 - 2) / sqrt(4/3 + 1/3), with 50/17 degrees of freedom; p by numerical integration.
    [row] = validation.tests(compared([2, 4, 6], [1, 2, 3])).rows
    t = pytest.approx(1.5491933384829668)
    assert row == ("implicit positive", t, "2.21e-01", 4.0, 2.0, 2.0)
    # Where nothing can be tested there is no number.
    for synthetic, real_ones in (([3], [1, 2]), ([2, 2], [2, 2])):
        [row] = validation.tests(compared(synthetic, real_ones)).rows
        assert row[1:3] == (None, None)


def test_shares_are_told_with_their_order():
    sheet = validation.shares(compared([[1, 6, 3, 0], [0, 6, 4, 0]], [[2, 5, 3, 0]]))
    assert sheet.rows == (
        ("implicit positive", 60.0, 1, 50.0, 1),
        ("implicit negative", 35.0, 2, 30.0, 2),
        ("explicit positive", 5.0, 3, 20.0, 3),
    )
    assert sheet.notes == ("the order of the types is the same in both",)
    other = validation.shares(compared([[1, 2, 3, 0]], [[1, 3, 2, 0]]))
    assert other.notes == ("the order of the types is NOT the same in both",)


def test_both_distributions_are_drawn():
    lengths, boxes = validation.figures(compared([[1, 6, 3, 0]], [[1, 2, 1, 0]] * 2))
    sums = [(line.label, round(sum(line.y), 6)) for line in lengths.marks]
    assert sums == [("synthetic", 100), ("real", 100)]
    kinds = ("implicit positive", "explicit positive", "implicit negative")
    assert [(box.label, box.names, box.values) for box in boxes.marks] == [
        ("synthetic", kinds, ((6.0,), (1.0,), (3.0,))),
        ("real", kinds, ((2.0, 2.0), (1.0, 1.0), (1.0, 1.0))),
    ]


ROWS = """user_id,object_id,object_text,interaction_type,interaction_time
ann,1,one two three,explicit_positive,1
ann,2,four five,implicit_negative,2
ann,2,four five,implicit_positive,3
ben,1,another text of the first,explicit_positive,4
ben,3,six,implicit_positive,
"""


def test_a_log_is_counted_by_hand(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(ROWS)
    overview, signals, lengths = describe.run(describe.Options(data=str(file))).sheets
    assert dict(overview.rows) == {
        "users": 2,
        "engagements": 5,
        "objects": 3,
        "objects of more than one user": 1,
        "users with fewer than 100 engagements": 2,
        "users with fewer than 100 engagements, %": 100.0,
        "engagements without a time": 1,
        "left out: engagements without a rating": 0,
        "left out: engagements with objects without a text": 0,
        "left out: users without any other engagement": 0,
    }
    assert signals.rows == (
        ("explicit positive", 2, 40.0, 2, 1.0),
        ("implicit positive", 2, 40.0, 2, 1.0),
        ("implicit negative", 1, 20.0, 1, 0.5),
    )
    of_all = {row[0]: row[1:] for row in lengths.rows}
    assert lengths.columns[1:4] == ("of", "mean", "least")
    assert of_all["engagements a user"][:3] == (2, 2.5, 2.0)
    assert of_all["users an object"] == (3, pytest.approx(4 / 3), 1.0, 1.0, 1.0, 1.0, 1.5, 1.9, 2.0)
    assert of_all["characters a text"][1:3] == (pytest.approx((13 + 9 + 3) / 3), 3.0)
    assert (of_all["words a text"][1], of_all["words a text"][-1]) == (2.0, 3.0)
    # Own columns and values are named as for a run.
    file.write_text(ROWS.replace("user_id", "customer").replace("explicit_positive", "like"))
    own = {"columns": ("user_id=customer",), "values": ("interaction_type.like=explicit_positive",)}
    overview, *_ = describe.run(describe.Options(data=str(file), **own)).sheets
    assert dict(overview.rows)["users"] == 2


def test_a_layout_of_several_tables_is_described_under_its_task(tmp_path):
    (tmp_path / "behaviors.tsv").write_text(
        "1\tU1\t11/11/2019 9:05:58 AM\tN9\tN1-1 N2-0\n"
        "2\tU2\t11/12/2019 9:05:58 AM\t\tN1-0 N3-1\n"
        "3\tU3\t11/12/2019 9:05:58 AM\t\tN3-1\n"
    )
    news = "{}\tnews\tworld\t{}\tabstract\thttps://a\t[]\t[]\n"
    (tmp_path / "news.tsv").write_text(news.format("N1", "First") + news.format("N2", "Second"))
    size, signals, _ = describe.run(describe.Options(data=str(tmp_path), task="gist_mind")).sheets
    told = dict(size.rows)
    assert (told["users"], told["engagements"], told["objects"]) == (2, 3, 2)
    assert told["left out: engagements with objects without a text"] == 2
    assert told["left out: users without any other engagement"] == 1
    assert [row[:2] for row in signals.rows] == [("explicit positive", 1), ("implicit negative", 2)]
