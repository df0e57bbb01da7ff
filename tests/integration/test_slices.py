"""The parts of the data and the paper's results, in each benchmark's summary and tables."""

import json

import pytest
from builders.texts import read_csv, read_json_lines

RECORDED = {
    ("gistbench", "gist_synthetic"): ({"dataset", "history"}, 28),
    ("perrecbench", "perrec_easy_pairwise"): ({"users"}, 19),
    ("usersumbench", "usersum_movielens"): ({"history"}, 3),
    ("horizon_items", "horizon_next_item_1a"): ({"history", "target"}, 36),
    ("behaviour", "behaviour_movies_a"): ({"proxy", "history", "users", "entropy"}, 0),
}
"""A task of each benchmark, its slices, and how many results of the paper are of its metrics; the
paper of the last one prints its results as figures alone."""


@pytest.mark.parametrize(("run", "task"), RECORDED)
def test_summaries_and_exports_have_slices_and_published_results(harness, recorded, run, task):
    slices, published = RECORDED[run, task]
    summary = json.loads((recorded / run / task / "summary.json").read_text())
    scores = read_json_lines(recorded / run / task / "scores.jsonl")
    for name in slices:
        counted = summary["slices"][name]
        assert sum(counted.values()) == summary["units"]
        for value, units in counted.items():
            assert sum(one["slices"][name] == value for one in scores) == units
    assert summary["slices"].keys() == slices
    assert len(summary.get("published", ())) == published
    assert {one["task"] for one in summary.get("published", ())} <= {task}

    out = ("--task", task, "--format", "csv", "--out", "out")
    files = harness.here("export", str(recorded / run), *out).ok().out.split()
    assert ("out/published.csv" in files) is bool(published)
    rows = read_csv(harness.folder / "out" / "scores.csv")
    assert [{name: row[f"slice_{name}"] for name in slices} for row in rows] == [
        one["slices"] for one in scores
    ]
    if published:
        values = [float(one["value"]) for one in read_csv(harness.folder / "out" / "published.csv")]
        assert values == [one["value"] for one in summary["published"]]
