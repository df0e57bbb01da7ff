"""The parts of the data and the paper's results, in the tables of each benchmark's runs."""

import json

import pytest
from builders.texts import read_csv, read_json_lines

RECORDED = {
    ("gistbench", "gist_synthetic"): {"dataset", "history"},
    ("perrecbench", "perrec_easy_pairwise"): {"users"},
    ("usersumbench", "usersum_movielens"): {"history"},
    ("horizon_items", "horizon_next_item_1a"): {"history", "target"},
    ("behaviour", "behaviour_movies_a"): {"proxy", "history", "users", "entropy"},
}
"""A task of each benchmark, and its slices; the last one's paper has its results in figures."""


@pytest.mark.parametrize(("run", "task"), RECORDED)
def test_exports_have_slices_and_published_results(harness, recorded, run, task):
    summary = json.loads((recorded / run / task / "summary.json").read_text())
    scores = read_json_lines(recorded / run / task / "scores.jsonl")
    assert summary["slices"].keys() == scores[0]["slices"].keys() == RECORDED[run, task]
    out = ("--task", task, "--format", "csv", "--out", "out")
    files = harness.here("export", str(recorded / run), *out).ok().out.split()
    assert ("out/published.csv" in files) is (run != "behaviour")
    rows = read_csv(harness.folder / "out" / "scores.csv")
    assert [{name: row[f"slice_{name}"] for name in RECORDED[run, task]} for row in rows] == [
        one["slices"] for one in scores
    ]
    if "out/published.csv" in files:
        values = [float(one["value"]) for one in read_csv(harness.folder / "out" / "published.csv")]
        assert values == [one["value"] for one in summary["published"]]
