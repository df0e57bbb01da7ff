"""Real reviews from raw files to tables of Task 1: a smoke test, not numbers."""

from pathlib import Path

import pytest
from builders.horizon import TAU, built, read_build
from builders.horizon_reviews import amazon_in, inputs_of, write_multicat
from harness_horizon.curation.ledger import read_manifest

from harness.cli.main import main

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="session")
def amazon(real_data):
    return amazon_in(real_data)


@pytest.mark.parametrize(
    ("untitled", "counts"), [("A thing", (354, 108, 80)), (None, (349, 103, 75))]
)
def test_users_of_many_categories_have_one_history(amazon, tmp_path, untitled, counts):
    users, eligible, longest = counts
    write_multicat(amazon, tmp_path, untitled=untitled)
    out = built(tmp_path, least_items=100)
    made = read_build(out)
    found = {"with a usable review": 354, "left without an item": 354 - users, "left": users}
    assert read_manifest(out).totals["users"] == found
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


@pytest.fixture
def harness(tmp_path, monkeypatch, capsys):
    """Runs a command in a folder of the test's own: what it prints, or why it failed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "calls"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words, fails=False):
        code = main(words)
        out, err = capsys.readouterr()
        assert bool(code) == fails, err
        return err if fails else out

    return run


def test_real_reviews_end_in_a_table(amazon, harness, tmp_path):
    pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")
    out = ("--out", "data", "--memory", "2GB")
    harness("data", "horizon", *inputs_of(amazon, "All_Beauty", tmp_path), *out)
    assert "Table 7" in harness("data", "horizon-describe", "--data", "data")
    small = ("--preset", "small", "--epochs", "1", "--device", "cpu")
    for model, options in {"popular": (), "sasrec": small}.items():
        given = ("--model", model, "--data", "data", "--out", model)
        assert "next: harness --model" in harness("horizon", "train", *given, *options)
        run = ("--model", f"recommender:{model}", "--data", "data", "--limit", "20")
        tasks = ",".join(f"horizon_next_item_{setting}" for setting in ("1a", "1c", "1d"))
        harness(*run, "--tasks", tasks, "--output_path", f"runs-{model}")
    # Nobody held out of All_Beauty has two items before 2020.
    said = harness(*run, "--tasks", "horizon_next_item", fails=True)
    assert "this data has no case of setting 1b" in said
    runs = [str(next(Path(f"runs-{model}").iterdir())) for model in ("popular", "sasrec")]
    shown = harness("analyse", "horizon-next-item", *runs)
    for number, setting in enumerate(("1a", "1b", "1c", "1d"), 1):
        assert (f"Table {number}: setting {setting}" in shown) == (setting != "1b")
    assert "Drops from setting 1a" in shown
    for model in ("popular", "sasrec"):
        assert shown.count(f"{model} ") >= 3 * 3
