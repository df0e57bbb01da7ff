"""The benchmarks' own parts fit together: what they measure is whole, and no failure."""

import json
import os
from pathlib import Path

from builders.processes import run_python

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

SCORED_OVER_HTTP = """
import sys
from pathlib import Path

import histories
from harness_gist import evaluate
from measure import chat_server

folder = Path(sys.argv[1])
data = histories.write(folder / "histories.parquet", users=2, engagements=150)
with chat_server(by_rule=True) as url:
    evaluate(data, url=url, concurrency=8, limit=None, folder=folder)
"""


def test_the_server_that_answers_by_rule_is_asked_all_of_gistbench(tmp_path: Path) -> None:
    paths = (BENCHMARKS, BENCHMARKS / "contenders", BENCHMARKS / "plugin")
    run_python(SCORED_OVER_HTTP, tmp_path, PYTHONPATH=os.pathsep.join(map(str, paths)))
    # Two windows a user with one interest each; all interests fit into one question of taxonomy.
    assert json.loads((tmp_path / "calls.json").read_text()) == {
        "predict": 4, "verify": 4, "taxonomy": 1, "overlap": 2, "specificity": 4,
    }  # fmt: skip
