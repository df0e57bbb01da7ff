"""GISTBench whole, over made-up histories: five stages, store and journal on, then scored."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import harness

CANDIDATE, JUDGE = "candidate", "judge"


def evaluate(data: Path, *, url: str | None, concurrency: int, limit: int | None, folder: Path):
    """Runs the task and checks that every user was scored; the calls of each stage are noted."""
    if url is None:
        asked = {"model": "free", "model_args": {"model": CANDIDATE}}
        roles = {"judge": f"free:model={JUDGE}"}
    else:
        pinned = f"base_url={url},revision=1"
        asked = {
            "model": "openai",
            "model_args": {"base_url": url, "model": CANDIDATE, "revision": "1"},
        }
        roles = {"judge": f"openai:model={JUDGE},{pinned}"}
    result = harness.evaluate(
        ["gist_synthetic"],
        **asked,
        role=roles,
        data=str(data),
        limit=limit,
        concurrency=concurrency,
        output_path=folder / "runs",
        store=folder / "store.sqlite",
    )
    [summary] = result.summaries
    metric = summary.metrics["mean_is"]
    assert metric.value is not None, metric
    assert not metric.missing, metric.missing
    calls = {
        name: sum(use.calls for use in stage.roles.values())
        for name, stage in summary.stages.items()
    }
    (folder / "calls.json").write_text(json.dumps(calls), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    evaluate(
        arguments.data,
        url=arguments.url,
        concurrency=arguments.concurrency,
        limit=arguments.limit,
        folder=arguments.folder,
    )
