"""Real reviews from raw files to histories, and to tables of Task 1, which are looked at alone."""

from collections import defaultdict
from pathlib import Path

import pytest
from builders.horizon import built, read_build
from harness_horizon.curation.ledger import read_manifest

pytestmark = pytest.mark.real_data


@pytest.fixture
def amazon(real_data):
    folder = real_data / "amazon-2023"
    if not folder.is_dir():
        pytest.skip(f"no reviews in {folder}")
    return folder


def test_all_beauty_under_its_official_names(amazon, tmp_path):
    raw = amazon / "All_Beauty" / "raw"
    out = built(tmp_path, reviews=(raw,), meta=(raw,), least_items=100)
    assert read_manifest(out).totals["rows"] == {
        "read": 2544, "of an item without a title": 0, "again in the category": 9,
        "again in another category": 0, "left": 2535,
    }  # fmt: skip
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


@pytest.mark.usefixtures("elsewhere", "own_cache")
def test_real_reviews_end_in_a_table(amazon, printed, monkeypatch):
    pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")
    monkeypatch.setenv("COLUMNS", "200")
    raw = str(amazon / "All_Beauty" / "raw")
    out = ("--out", "data", "--memory", "2GB")
    printed("data", "horizon", "--reviews", raw, "--meta", raw, *out)
    assert "Table 7" in printed("data", "horizon-describe", "--data", "data").out
    small = ("--preset", "small", "--epochs", "1", "--device", "cpu")
    for model, options in {"popular": (), "sasrec": small}.items():
        given = ("--model", model, "--data", "data", "--out", model)
        assert "next: harness --model" in printed("horizon", "train", *given, *options).out
        run = ("--model", f"recommender:{model}", "--data", "data", "--limit", "20")
        tasks = ",".join(f"horizon_next_item_{setting}" for setting in ("1a", "1c", "1d"))
        printed(*run, "--tasks", tasks, "--output_path", f"runs-{model}")
    # Nobody held out of All_Beauty has two items before 2020.
    said = printed(*run, "--tasks", "horizon_next_item", code=1).err
    assert "this data has no case of setting 1b" in said
    runs = [str(next(Path(f"runs-{model}").iterdir())) for model in ("popular", "sasrec")]
    shown = printed("analyse", "horizon-next-item", *runs).out
    for number, setting in enumerate(("1a", "1b", "1c", "1d"), 1):
        assert (f"Table {number}: setting {setting}" in shown) == (setting != "1b")
    assert "Drops from setting 1a" in shown
    for model in ("popular", "sasrec"):
        assert shown.count(f"{model} ") >= 3 * 3
