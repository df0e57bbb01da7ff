"""Real reviews from raw files to a table of Task 1: a smoke test, not numbers."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from builders.horizon import TAU, built, read_build, write_lines
from harness_horizon.curation.ledger import read_manifest

from harness.cli.main import main

pytestmark = pytest.mark.real_data


def lines(file: Path) -> Iterator[Any]:
    with gzip.open(file, "rt") as stream:
        yield from map(json.loads, stream)


@pytest.fixture(scope="session")
def amazon(real_data):
    folder = real_data / "amazon-2023"
    if not folder.is_dir():
        pytest.skip(f"no reviews in {folder}")
    return folder


def test_all_beauty_under_its_official_names(amazon, tmp_path):
    raw = amazon / "All_Beauty" / "raw"
    out = built(tmp_path, reviews=(raw,), meta=(raw,), least_items=100)
    manifest = read_manifest(out)
    assert manifest.totals["rows"] == {
        "read": 2544,
        "of an item without a title": 0,
        "again in the category": 9,
        "again in another category": 0,
        "left": 2535,
    }
    made = read_build(out)
    assert (len(made["histories"]), len(made["items"])) == (253, 356)
    wanted = defaultdict[str, list[tuple[int, str]]](list)
    with (amazon / "All_Beauty/benchmark/5core/rating_only/All_Beauty.csv").open() as file:
        next(file)
        for line in file:
            user, item, _, time = line.strip().split(",")
            wanted[user].append((int(time), item))
    assert {
        user: sorted((time, item) for item, time in rows)
        for user, rows in made["histories"].items()
    } == {user: sorted(rows) for user, rows in wanted.items()}


def write_multicat(amazon: Path, folder: Path, *, untitled: str | None) -> None:
    """Writes the log of 24 categories in the official layout; `untitled` replaces no title."""
    reviews: dict[str, list[Any]] = defaultdict(list)
    meta: dict[str, dict[str, Any]] = defaultdict(dict)
    for file in sorted((amazon / "multicat").iterdir()):
        for row in lines(file):
            for one in (*row["history"], row["heldout"]):
                reviews[row["category"]].append(review(row["user_id"], one))
                meta[row["category"]][one["parent_asin"]] = {
                    "main_category": one["product"]["main_category"],
                    "title": one["product"]["title"] or untitled,
                    "parent_asin": one["parent_asin"],
                }
    for kind in ("reviews", "meta"):
        (folder / kind).mkdir()
    for name, rows in reviews.items():
        write_lines(folder / "reviews" / f"{name}.jsonl.gz", rows)
        write_lines(folder / "meta" / f"meta_{name}.jsonl.gz", list(meta[name].values()))


def review(user: str, one: Mapping[str, Any]) -> dict[str, Any]:
    """A review under the official names."""
    return {
        "rating": one["rating"],
        "title": one["review_title"],
        "text": one["review_full"],
        "parent_asin": one["parent_asin"],
        "user_id": user,
        "timestamp": one["timestamp_ms"],
    }


@pytest.mark.parametrize(
    ("untitled", "counts"), [("A thing", (354, 108, 80)), (None, (349, 103, 75))]
)
def test_users_of_many_categories_have_one_history(amazon, tmp_path, untitled, counts):
    users, eligible, longest = counts
    write_multicat(amazon, tmp_path, untitled=untitled)
    out = built(tmp_path, least_items=100)
    made = read_build(out)
    assert read_manifest(out).totals["users"] == {
        "with a usable review": 354,
        "left without an item": 354 - users,
        "left": users,
    }
    assert max(map(len, made["histories"].values())) == longest
    fit = {
        user
        for user, rows in made["histories"].items()
        if sum(time < TAU for _, time in rows) >= 3 and rows[-1][1] >= TAU
    }
    assert len(fit) == eligible
    assert len(made["held_out"]) == 29
    assert made["tested"] == fit - made["held_out"]
    assert {user for user, *_ in made["1a"]} == {user for user, *_ in made["1c"]} == made["tested"]
    shutil.rmtree(out)
    assert read_build(built(tmp_path, least_items=100, partitions=7)) == made


SETTINGS = {"All_Beauty": ("1a", "1c", "1d"), "multicat": ("1a", "1b", "1c", "1d")}
"""The settings that have cases: nobody held out of All_Beauty has two items before 2020."""


@pytest.mark.slow
@pytest.mark.parametrize("log", SETTINGS)
def test_real_reviews_end_in_a_table(amazon, tmp_path, monkeypatch, capsys, log):
    pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "calls"))
    monkeypatch.setenv("COLUMNS", "200")
    folders = {"reviews": "reviews", "meta": "meta"}
    if log == "All_Beauty":
        folders = dict.fromkeys(folders, str(amazon / "All_Beauty" / "raw"))
    else:
        write_multicat(amazon, tmp_path, untitled="A thing")

    def harness(*words, fails=False):
        code = main(words)
        out, err = capsys.readouterr()
        assert bool(code) == fails, err
        return err if fails else out

    inputs = (f"--{name}={folder}" for name, folder in folders.items())
    harness("data", "horizon", *inputs, "--out", "data", "--memory", "2GB")
    assert "Table 7" in harness("data", "horizon-describe", "--data", "data")
    small = ("--preset", "small", "--epochs", "2", "--device", "cpu")
    for model, options in {"popular": (), "sasrec": small}.items():
        given = ("--model", model, "--data", "data", "--out", model)
        assert "next: harness --model" in harness("horizon", "train", *given, *options)
        run = ("--model", f"recommender:{model}", "--data", "data")
        tasks = ",".join(f"horizon_next_item_{setting}" for setting in SETTINGS[log])
        harness(*run, "--tasks", tasks, "--output_path", f"runs-{model}")
    if "1b" not in SETTINGS[log]:
        said = harness(*run, "--tasks", "horizon_next_item", fails=True)
        assert "this data has no case of setting 1b" in said
    runs = [str(next(Path(f"runs-{model}").iterdir())) for model in ("popular", "sasrec")]
    shown = harness("analyse", "horizon-next-item", *runs)
    for number, setting in enumerate(("1a", "1b", "1c", "1d"), 1):
        assert (f"Table {number}: setting {setting}" in shown) == (setting in SETTINGS[log])
    assert "Drops from setting 1a" in shown
    for model in ("popular", "sasrec"):
        assert shown.count(f"{model} ") >= 3 * len(SETTINGS[log])


@pytest.mark.slow
@pytest.mark.parametrize("log", SETTINGS)
def test_real_titles_are_searched_in_words(amazon, tmp_path, monkeypatch, capsys, log):
    pytest.importorskip("faiss", reason="needs faiss: pip install '.[cpu]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "calls"))
    monkeypatch.setenv("COLUMNS", "200")
    reviews, meta = "reviews", "meta"
    if log == "All_Beauty":
        reviews = meta = str(amazon / "All_Beauty" / "raw")
    else:
        write_multicat(amazon, tmp_path, untitled="A thing")

    def harness(*words):
        code = main(words)
        out, err = capsys.readouterr()
        assert code == 0, err
        return out

    folders = ("--reviews", reviews, "--meta", meta, "--memory", "2GB")
    harness("data", "horizon", *folders, "--out", "data")
    shown = harness("horizon", "index", "--data", "data", "--embedder", "hashing", "--out", "index")
    assert "recall@10 against exact search" in shown
    run = ("--model", "baseline", "--role", "retriever=catalogue:index", "--data", "data")
    tasks = ["horizon_query"] if log == "All_Beauty" else ["horizon_query", "horizon_long"]
    harness(*run, "--tasks", ",".join(tasks), "--output_path", "runs")
    [folder] = Path("runs").iterdir()
    shown = harness("analyse", "horizon-text", str(folder))
    assert [name for name in ("Table 5", "Table 6") if f"{name}: " in shown] == [
        "Table 5", "Table 6"
    ][: len(tasks)]  # fmt: skip
    assert "titles by hashing:words, index " in shown
    written = harness("horizon", "sft-export", "--data", "data", "--out", "training")
    assert "train-next.jsonl" in written
