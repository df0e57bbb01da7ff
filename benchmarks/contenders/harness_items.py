"""The harness over made-up items and a model that costs nothing; store and journal on."""

from __future__ import annotations

import argparse
from pathlib import Path

import harness


def evaluate(count: int, workers: int, folder: Path) -> None:
    """Runs so many items and checks that each was answered."""
    unread = folder / "unread.jsonl"
    unread.touch()
    result = harness.evaluate(
        ["speed"],
        model="free",
        data=str(unread),
        set={"made_up": count},
        output_path=folder / "runs",
        store=folder / "store.sqlite",
        **({"executor": "ray", "workers": workers} if workers else {}),
    )
    [summary] = result.summaries
    metric = summary.metrics["right"]
    assert (metric.value, metric.n) == (1.0, count), metric


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--workers", type=int, default=0, help="on Ray; 0 for this process alone")
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    evaluate(arguments.count, arguments.workers, arguments.folder)
