"""Histories of each layout: who is kept, which signals, in which order, with which texts."""

import gzip
import hashlib
import json
import time
from collections import Counter
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from builders.gistbench import LIKED, SKIPPED, WATCHED
from builders.texts import write_csv, write_json_lines
from harness_gistbench.histories import Engagement
from harness_gistbench.records import SIGNALS, PoolObject

from harness.contracts.task import DataSpec
from harness.data import database, open_dataset


@pytest.fixture
def plain(load_histories, tmp_path):
    """Loads rows of user, object, signal and, where given, time; texts are `about OBJECT`."""

    def read(*rows, **settings):
        names = ("user_id", "object_id", "interaction_type", "interaction_time")
        told = (dict(zip(names, row, strict=False)) for row in rows)
        lines = [{"object_text": f"about {one['object_id']}", **one} for one in told]
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
    mine = (("u", name, LIKED, when) for name, when in zip("abcde", times, strict=False))
    found = plain(("v", "other", SKIPPED, times[0]), *mine)
    assert found.history("u") == [Engagement(one, f"about {one}", LIKED) for one in newest_first]
    assert found.history("v") == [Engagement("other", "about other", SKIPPED)]
    assert (found.count("u"), found.count("v")) == (len(times), 1)


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
    fact = "users without a positive engagement, who score 0 whoever is asked"
    assert load_histories.notes == {fact: 2}
    plain(*rows[1:3])
    assert load_histories.notes == {}
    # Those with too few engagements are left out before the choice.
    assert list(plain(*rows, min_engagements=2).users) == ["v"]
    assert load_histories.notes == {"users left out with fewer than 2 engagements": 3}


@pytest.mark.usefixtures("read_at_once")
def test_signals_and_pool_are_those_of_the_whole_data_whatever_the_limit(plain):
    rows = [(f"u{n}", f"o{n}", LIKED, 1) for n in range(9)] + [("u9", "o9", SKIPPED, 1)]
    everybody, one = plain(*rows, pool=4), plain(*rows, pool=4, limit=1)
    assert len(everybody.users) == 10
    assert len(one.users) == 1
    assert everybody.signals == one.signals == (LIKED, SKIPPED)
    assert everybody.pool == one.pool
    smallest = sorted(
        (f"o{n}" for n in range(10)), key=lambda one: hashlib.md5(f"0 {one}".encode()).hexdigest()
    )[:4]
    assert everybody.pool == tuple(PoolObject(one, f"about {one}") for one in smallest)


@pytest.mark.usefixtures("read_at_once")
def test_what_a_person_engaged_with_is_known_of_the_pool(plain):
    rows = [("u", "a", LIKED), ("u", "b", SKIPPED), ("u", "a", SKIPPED), ("v", "c", LIKED)]
    for options in ({}, {"limit": 1}, {"pool": 1}):
        found = plain(*rows, **options)
        pool = {one.object for one in found.pool}
        assert len(pool) == options.get("pool", 3)
        for user in found.users:
            assert found.own_of_pool(user) == pool & {"u": {"a", "b"}, "v": {"c"}}[user]


def test_ids_and_texts_come_back_as_they_were(load_histories, tmp_path):
    objects, texts = ["12:ab", "ß:", "5"], ["ü: 3:\n “two” lines", "🎸", "x" * 70_000]
    columns = {
        "user_id": ["7:x"] * 3, "object_id": objects, "object_text": texts,
        "interaction_type": [LIKED] * 3, "interaction_time": [3, 2, 1],
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    found = load_histories("gist_synthetic", tmp_path / "log.parquet").history("7:x")
    assert [one.object for one in found] == objects
    assert [one.text for one in found] == texts


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


LOVED, FINE, _, BAD = SIGNALS
STARS = [(1.0, BAD), (2.0, BAD), (2.5, BAD), (3.0, FINE), (3.5, FINE), (4.5, FINE), (5.0, LOVED)]


def amazon(folder, reviews, *products):
    """The files of one category: users, products, stars and times; products and their titles."""
    names = ("user_id", "parent_asin", "rating", "timestamp")
    usual = {"title": "Review title", "text": "Review text"}
    rows = [usual | dict(zip(names, row, strict=True)) for row in reviews]
    write_json_lines(folder / "Digital_Music.jsonl", rows)
    usual = {"store": None, "description": []}
    described = ({**usual, "parent_asin": asin, "title": title, **more}
                 for asin, title, more in products)  # fmt: skip
    write_json_lines(folder / "meta_Digital_Music.jsonl", described)


def test_amazon_stars_are_signals_and_ratings_without_reviews_will_do(load_histories, tmp_path):
    reviews = [(f"u{stars}", "a", stars, 1) for stars, _ in STARS]
    amazon(tmp_path, reviews, ("a", "Blue", {}), ("b", "Hejira", {}))
    found = load_histories("gist_amazon_music", tmp_path)
    for stars, signal in STARS:
        assert found.history(f"u{stars}") == [Engagement("a", "Blue", signal)]
    assert found.signals == (LOVED, FINE, BAD)
    (tmp_path / "Digital_Music.jsonl").unlink()
    header = "user_id,parent_asin,rating,timestamp"
    write_csv(tmp_path / "Digital_Music.csv", header, "u,a,5.0,1", "u,b,3.0,2")
    found = load_histories("gist_amazon_music", tmp_path)
    assert [one.signal for one in found.history("u")] == [FINE, LOVED]


def test_amazon_texts_are_the_products_and_rows_without_one_are_counted(load_histories, tmp_path):
    reviews = (("a", 5.0), ("gone", 5.0), ("silent", 4.0), ("b", 2.0))
    about = {"store": "Joni  Mitchell", "description": ["Her fourth.", "A classic"]}
    amazon(
        tmp_path, [("u", asin, stars, n) for n, (asin, stars) in enumerate(reviews)],
        ("a", " Blue ", about), ("silent", "  ", {}), ("b", "Hejira", {}),
        ("never-bought", "Mingus", {}),
    )  # fmt: skip
    found = load_histories("gist_amazon_music", tmp_path)
    assert found.history("u") == [
        Engagement("b", "Hejira", BAD),
        Engagement("a", "Blue | Joni Mitchell | Her fourth. | A classic", LOVED),
    ]
    assert {one.object for one in found.pool} == {"a", "b"}
    assert load_histories.notes == {"engagements left out as their object has no text": 2}


def test_goodreads_books_are_joined_by_a_list_and_unrated_ones_counted(load_histories, tmp_path):
    write_csv(
        tmp_path / "goodreads_interactions.csv", "user_id,book_id,is_read,rating,is_reviewed",
        "0,948,1,5,0", "0,949,1,0,0", "0,1000,1,3,1", "0,77,1,4,0", "1,949,0,0,0", "0,949,1,2,0",
    )  # fmt: skip
    write_csv(tmp_path / "book_id_map.csv", "book_id_csv,book_id", "948,11", "1000,12", "949,9")
    books = (("12", "Persuasion", "A novel."), ("9", "Ulysses", ""), ("11", "Emma", ""))
    write_json_lines(
        tmp_path / "goodreads_books.json",
        ({"book_id": number, "title": title, "description": said, "authors": []}
         for number, title, said in books),
    )  # fmt: skip
    found = load_histories("gist_goodreads", tmp_path)
    assert list(found.users) == ["0"]
    assert found.history("0") == [
        Engagement("948", "Emma", LOVED),
        Engagement("1000", "Persuasion | A novel.", FINE),
        Engagement("949", "Ulysses", BAD),
    ]
    assert load_histories.notes == {
        "engagements left out for want of a rating": 2,
        "engagements left out as their object has no text": 1,
        "engagements in the order of the data, as none has a time": 3,
        "users left out with fewer than 1 engagements": 1,
    }


def test_yelp_texts_are_the_businesses(load_histories, tmp_path):
    said = (("b1", 5.0, "2014-02-05 20:30:30"), ("b2", 4.0, "2018-07-07 22:09:11"),
            ("b1", 1.0, "2016-01-01 00:00:00"))  # fmt: skip
    write_json_lines(
        tmp_path / "yelp_academic_dataset_review.json",
        ({"user_id": "u", "business_id": business, "stars": stars, "date": date}
         for business, stars, date in said),
    )  # fmt: skip
    write_json_lines(
        tmp_path / "yelp_academic_dataset_business.json",
        [
            {"business_id": "b1", "name": "Turning Point", "city": "Reading", "state": "PA",
             "stars": 4.5, "categories": "Cafes, Breakfast & Brunch", "hours": None},
            {"business_id": "b2", "name": "Body Cycle", "city": "Ardmore", "state": "PA",
             "stars": 5.0, "categories": None, "hours": None},
        ],
    )  # fmt: skip
    turning_point = "Turning Point | Cafes, Breakfast & Brunch | Reading | PA"
    assert load_histories("gist_yelp", tmp_path).history("u") == [
        Engagement("b2", "Body Cycle | Ardmore | PA", FINE),
        Engagement("b1", turning_point, BAD),
        Engagement("b1", turning_point, LOVED),
    ]


MATRIX = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"
CAPTIONS = (
    "video_id,manual_cover_text,caption,topic_tag,first_level_category_id,"
    "first_level_category_name,second_level_category_id,second_level_category_name,"
    "third_level_category_id,third_level_category_name\n"
)


def watched(video, ratio, when="1593878903.438"):
    return f"14,{video},4381,6067,2020-07-05 05:27:48.378,20200705.0,{when},{ratio}\n"


def test_watch_ratios_are_signals(load_histories, tmp_path):
    ratios = {"0.0": SKIPPED, "0.2999999": SKIPPED, "0.3": WATCHED, "0.9": WATCHED,
              "0.9000001": LIKED, "5.11": LIKED}  # fmt: skip
    rows = [watched(1, ratio).replace("14,", f"u{place},", 1) for place, ratio in enumerate(ratios)]
    (tmp_path / "small_matrix.csv").write_text(MATRIX + "".join(rows))
    (tmp_path / "kuairec_caption_category.csv").write_text(
        f"{CAPTIONS}1,UNKNOWN,Rain,[],1,Nature,-124,UNKNOWN,-124,UNKNOWN\n"
    )
    found = load_histories("gist_kuairec", tmp_path)
    for number, signal in enumerate(ratios.values()):
        assert found.history(f"u{number}") == [Engagement("1", "Rain | Nature", signal)]
    assert found.signals == (LIKED, WATCHED, SKIPPED)


def test_captions_with_bare_returns_keep_their_rows(load_histories, tmp_path):
    (tmp_path / "small_matrix.csv").write_text(
        MATRIX + watched(1, 1) + watched(2, 0.5, "1593878904.0") + watched(3, 1, "") + watched(4, 1)
    )
    (tmp_path / "kuairec_caption_category.csv").write_bytes(
        CAPTIONS.encode()
        + b'1,Cover,So\rlong,"[a,b]",1,Nature,2,Rain,-124,UNKNOWN\n'
        + b"2,UNKNOWN,,[],-124,UNKNOWN,-124,UNKNOWN,-124,UNKNOWN\n"
        + b"3,UNKNOWN,End\r,[],1,Nature,1,Nature,-124,UNKNOWN\n"
    )
    found = load_histories("gist_kuairec", tmp_path)
    assert found.history("14") == [
        Engagement("1", "So long | Cover | [a,b] | Nature | Rain", LIKED),
        Engagement("3", "End | Nature", LIKED),
    ]
    assert load_histories.notes == {
        "engagements left out as their object has no text": 2,
        "engagements without a time, taken as the oldest": 1,
    }


def test_the_small_matrix_is_read_where_both_are_there(load_histories, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "small_matrix.csv").write_text(MATRIX + watched(1, 1))
    (data / "big_matrix.csv").write_text(MATRIX + watched(2, 1))
    (data / "kuairec_caption_category.csv").write_text(
        CAPTIONS + "1,,Small,[],1,A,2,B,3,C\n2,,Big,[],1,A,2,B,3,C\n"
    )
    assert [one.object for one in load_histories("gist_kuairec", tmp_path).history("14")] == ["1"]
    big = {"interactions": {"files": ["data/big_matrix.csv"]}}
    found = load_histories("gist_kuairec", tmp_path, tables=big)
    assert [one.object for one in found.history("14")] == ["2"]


NEWS = (
    'N1\tsports\tmore\t"Home run, he said\tIt went far.\thttps://x/1\t[]\t[]\n'
    "N2\tnews\tworld\tTrains stop\t\thttps://x/2\t[]\t[]\n"
    "N3\tnews\tworld\tBread rises\tIn price\thttps://x/3\t[]\t[]\n"
)
BEHAVIORS = (
    "1\tU1\t11/12/2019 2:14:46 PM\tN3 N2\tN1-0 N2-1\n"
    "2\tU1\t11/9/2019 12:05:00 AM\tN3 N2\tN2-0\n"
    "3\tU1\t11/12/2019 9:00:00 AM\tN3 N2\tN3-1\n"
    "4\tU2\t11/12/2019 9:00:00 AM\t\tN1-1 N9-0\n"
)


@pytest.fixture
def mind(load_histories, tmp_path):
    """Loads MIND from these behaviors."""

    def read(behaviors=BEHAVIORS, **options):
        (tmp_path / "behaviors.tsv").write_text(behaviors)
        (tmp_path / "news.tsv").write_text(NEWS)
        return load_histories("gist_mind", tmp_path, **options)

    return read


def test_clicks_are_explicit_and_what_was_passed_over_implicit(mind, load_histories):
    found = mind()
    assert found.history("U1") == [
        Engagement("N1", '"Home run, he said | It went far.', SKIPPED),
        Engagement("N2", "Trains stop", LIKED),
        Engagement("N3", "Bread rises | In price", LIKED),
        Engagement("N2", "Trains stop", SKIPPED),
    ]
    assert [one.object for one in found.history("U2")] == ["N1"]
    assert found.signals == (LIKED, SKIPPED)
    assert load_histories.notes == {"engagements left out as their object has no text": 1}


def test_the_history_comes_once_and_as_the_oldest_where_it_is_asked_for(mind):
    rows = (
        "1\tU1\t11/12/2019 2:14:46 PM\tN3 N2\tN1-0 N2-0\n"
        "2\tU1\t11/9/2019 12:05:00 AM\tN3 N2\tN1-1\n"
        "3\tU2\t11/12/2019 9:00:00 AM\t\tN1-1 N9-0\n"
    )
    found = mind(rows, untimed_history=True)
    assert [(one.object, one.signal) for one in found.history("U1")] == [
        ("N1", SKIPPED), ("N2", SKIPPED), ("N1", LIKED), ("N2", LIKED), ("N3", LIKED),
    ]  # fmt: skip
    assert found.count("U2") == 1


def test_of_two_files_the_history_of_the_earliest_impression_holds(load_histories, tmp_path):
    """The later file's history holds what was opened in the earlier file's impressions."""
    files = {
        "dev": "1\tU1\t11/15/2019 8:00:00 AM\tN1 N2 N3\tN2-0\n"
               "2\tU2\t11/15/2019 8:00:00 AM\tN2\tN1-1\n",
        "train": "1\tU1\t11/10/2019 9:00:00 AM\tN1 N2\tN3-1\n"
                 "2\tU1\t11/9/2019 9:00:00 AM\tN1 N2\tN1-1\n",
    }  # fmt: skip
    for name, rows in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "behaviors.tsv").write_text(rows)
        (tmp_path / name / "news.tsv").write_text(NEWS)
    found = load_histories("gist_mind", tmp_path, untimed_history=True)
    assert [(one.object, one.signal) for one in found.history("U1")] == [
        ("N2", SKIPPED), ("N3", LIKED), ("N1", LIKED), ("N2", LIKED),
    ]  # fmt: skip
    assert [one.object for one in found.history("U2")] == ["N1", "N2"]
    few = load_histories("gist_mind", tmp_path, untimed_history=True, min_engagements=4)
    assert list(few.users) == ["U1"]


ROOT = Path(__file__).parents[3]


def table(task, name, data):
    """One table of a task, from a folder or file that holds it alone."""
    written = yaml.safe_load((ROOT / f"task_configs/gistbench/{task}.yaml").read_text())["data"]
    written["tables"] = {name: written["tables"][name]}
    spec = msgspec.convert(written, DataSpec)
    return open_dataset(spec, data=str(data), limit=None, seed=0, package=None, task=task).table()


@pytest.mark.real_data
def test_the_captions_of_kuairec_are_one_row_a_video(real_data):
    rows = [row for _, row in table("gist_kuairec", "videos", real_data / "kuairec").rows()]
    assert [row["video_id"] for row in rows] == [str(number) for number in range(10_728)]
    ending = {row["video_id"]: row["caption"] for row in rows if (row["caption"] or "")[-1:] == " "}
    assert {"1613", "5910", "6331"} <= set(ending)
    assert rows[1378]["caption"].endswith(" ！”")


@pytest.mark.real_data
def test_mind_is_read_whole(load_histories, real_data):
    news = [row for _, row in table("gist_mind", "news", real_data / "mind").rows()]
    assert len(news) == 2000
    assert sum(row["abstract"] is None for row in news) == 99
    behaviors = [row for _, row in table("gist_mind", "behaviors", real_data / "mind").rows()]
    assert len(behaviors) == 5000
    met = {shown[:-2] for row in behaviors for shown in row["impressions"].split()}
    met |= {clicked for row in behaviors for clicked in (row["history"] or "").split()}
    found = load_histories("gist_mind", real_data / "mind", untimed_history=True)
    assert len(found.pool) == len(met & {row["news_id"] for row in news})
    assert found.signals == ("explicit_positive", "implicit_negative")


@pytest.mark.real_data
def test_goodreads_interactions_are_read_whole(tmp_path, real_data):
    with gzip.open(real_data / "goodreads/goodreads_interactions_first200k.csv.gz") as packed:
        (tmp_path / "goodreads_interactions.csv").write_bytes(packed.read())
    rows = [row for _, row in table("gist_goodreads", "interactions", tmp_path).rows()]
    assert len(rows) == 200_000


@pytest.mark.real_data
def test_a_small_category_of_amazon_is_read_whole(load_histories, real_data):
    files = {"reviews": "All_Beauty.jsonl", "products": "meta_All_Beauty.jsonl"}
    tables = {name: {"files": [file]} for name, file in files.items()}
    raw = real_data / "amazon-2023/All_Beauty/raw"
    with gzip.open(raw / "All_Beauty.jsonl.gz", "rt") as lines:
        reviews = Counter(json.loads(line)["user_id"] for line in lines)
    found = load_histories("gist_amazon_music", raw, tables=tables)
    assert {user: found.count(user) for user in found.users} == dict(reviews)
    assert len(found.pool) == 356
