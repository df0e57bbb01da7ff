"""Real reviews from raw files to tables of Task 1: a smoke test, not numbers."""

from pathlib import Path

import pytest
from builders.horizon_reviews import amazon_in


@pytest.mark.real_data
@pytest.mark.usefixtures("elsewhere", "own_cache")
def test_real_reviews_end_in_a_table(real_data, printed, monkeypatch):
    pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")
    monkeypatch.setenv("COLUMNS", "200")
    raw = str(amazon_in(real_data) / "All_Beauty" / "raw")
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
