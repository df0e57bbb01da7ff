"""The harness over the messages: a run as users make it, store and journal on, then scored."""

from __future__ import annotations

import argparse
from pathlib import Path

import harness


def evaluate(url: str, data: Path, concurrency: int, workers: int, folder: Path) -> None:
    """Runs the task and checks that every message was answered."""
    result = harness.evaluate(
        ["speed"],
        model="openai",
        model_args={"base_url": url, "model": "bench"},
        data=str(data),
        concurrency=concurrency,
        output_path=folder / "runs",
        store=folder / "store.sqlite",
        **({"executor": "ray", "workers": workers} if workers else {}),
    )
    [summary] = result.summaries
    metric = summary.metrics["right"]
    assert metric.value == 1.0, metric
    assert not metric.missing, metric.missing


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--workers", type=int, default=0, help="on Ray; 0 for this process alone")
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    evaluate(
        arguments.url,
        arguments.data,
        arguments.concurrency,
        arguments.workers,
        arguments.folder,
    )
