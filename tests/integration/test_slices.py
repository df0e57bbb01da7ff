"""The parts of the data and the paper's results, from each benchmark to its summary and tables."""

from __future__ import annotations

import csv
import json

import pytest

BENCHMARKS = {
    "gist_synthetic": ({"dataset", "history"}, 28),
    "perrec_easy_pairwise": ({"users"}, 19),
    "usersum_movielens": ({"history"}, 3),
    "horizon_next_item_1a": ({"history", "target"}, 36),
    "behaviour_movies_a": ({"proxy", "history", "users", "entropy"}, 0),
}
"""A task of each benchmark, its slices, and how many results of the paper are of its metrics; the
paper of the last one prints its results as figures alone."""


@pytest.mark.parametrize("task", BENCHMARKS)
def test_scores_summaries_and_exports_have_slices_and_published_results(harness, task):
    slices, published = BENCHMARKS[task]
    run = harness.here("--model", "baseline", "--judge", "lexical", "--tasks", task,
                       "--data", "sample", "--limit", "6", "--json").ok().json  # fmt: skip
    (summary,) = run["summaries"]
    lines = (harness.folder / run["folder"] / task / "scores.jsonl").read_text().splitlines()
    scores = [json.loads(line) for line in lines]
    for name in slices:
        counted = summary["slices"][name]
        assert sum(counted.values()) == summary["units"]
        for value, units in counted.items():
            assert sum(one["slices"][name] == value for one in scores) == units
    assert summary["slices"].keys() == slices
    assert len(summary.get("published", ())) == published
    assert {one["task"] for one in summary.get("published", ())} <= {task}

    out = ("--format", "csv", "--out", "out")
    files = harness.here("export", run["folder"], *out).ok().out.split()
    assert ("out/published.csv" in files) is bool(published)
    with (harness.folder / "out" / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [{name: row[f"slice_{name}"] for name in slices} for row in rows] == [
        one["slices"] for one in scores
    ]
    if published:
        with (harness.folder / "out" / "published.csv").open(encoding="utf-8") as file:
            assert [float(one["value"]) for one in csv.DictReader(file)] == [
                one["value"] for one in summary["published"]
            ]
