"""The real files, where they are at hand: each is read whole through its task's description."""

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path

import msgspec
import pytest
import yaml

from harness.contracts.task import DataSpec
from harness.data import open_dataset

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.real_data


def table(task, name, data):
    """One table of a task, from a folder or file that holds it alone."""
    written = yaml.safe_load((ROOT / f"task_configs/gistbench/{task}.yaml").read_text())["data"]
    written["tables"] = {name: written["tables"][name]}
    spec = msgspec.convert(written, DataSpec)
    return open_dataset(spec, data=str(data), limit=None, seed=0, package=None, task=task).table()


def test_the_captions_of_kuairec_are_one_row_a_video(load_histories, tmp_path, real_data):
    rows = [row for _, row in table("gist_kuairec", "videos", real_data / "kuairec").rows()]
    assert [row["video_id"] for row in rows] == [str(number) for number in range(10_728)]
    ending = {row["video_id"]: row["caption"] for row in rows if (row["caption"] or "")[-1:] == " "}
    assert {"1613", "5910", "6331"} <= set(ending)
    assert rows[1378]["caption"].endswith(" ！”")
    for file in (real_data / "kuairec").iterdir():
        shutil.copy(file, tmp_path)
    matrix = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"
    lines = (f"0,{number},1,1,,,,0.5\n" for number in range(10_728))
    (tmp_path / "small_matrix.csv").write_text(matrix + "".join(lines))
    found = load_histories("gist_kuairec", tmp_path)
    assert found.count("0") > 10_000
    assert all(one.text and "UNKNOWN" not in one.text for one in found.history("0"))


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


def test_goodreads_interactions_are_read_whole(load_histories, tmp_path, real_data):
    with gzip.open(real_data / "goodreads/goodreads_interactions_first200k.csv.gz") as packed:
        (tmp_path / "goodreads_interactions.csv").write_bytes(packed.read())
    rows = [row for _, row in table("gist_goodreads", "interactions", tmp_path).rows()]
    assert len(rows) == 200_000
    numbers = sorted({int(row["book_id"]) for row in rows})
    (tmp_path / "book_id_map.csv").write_text(
        "book_id_csv,book_id\n" + "".join(f"{one},{one + 7}\n" for one in numbers)
    )
    (tmp_path / "goodreads_books.json").write_text(
        "".join(json.dumps({"book_id": str(n + 7), "title": f"Book {n}"}) + "\n" for n in numbers)
    )
    found = load_histories("gist_goodreads", tmp_path)
    rated = Counter(row["user_id"] for row in rows if row["rating"] > 0)
    assert {user: found.count(user) for user in found.users} == dict(rated)
    user = found.users[0]
    first = next(row for row in rows if row["user_id"] == user and row["rating"] > 0)
    assert found.history(user)[0].text == f"Book {first['book_id']}"


def test_a_small_category_of_amazon_is_read_whole(load_histories, real_data):
    tables = {
        "reviews": {"files": ["All_Beauty.jsonl"]},
        "products": {"files": ["meta_All_Beauty.jsonl"]},
    }
    raw = real_data / "amazon-2023/All_Beauty/raw"
    with gzip.open(raw / "All_Beauty.jsonl.gz", "rt") as lines:
        reviews = Counter(json.loads(line)["user_id"] for line in lines)
    found = load_histories("gist_amazon_music", raw, tables=tables)
    assert {user: found.count(user) for user in found.users} == dict(reviews)
    assert len(found.pool) == 356
