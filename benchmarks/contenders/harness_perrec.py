"""All nine tasks of PerRecBench over made-up groups; store, journal and scoring on."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import harness

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    result = harness.evaluate(
        ["perrec"],
        model="free",
        data=str(arguments.data),
        concurrency=64,
        output_path=arguments.folder / "runs",
        store=arguments.folder / "store.sqlite",
    )
    assert len(result.summaries) == 9, result.summaries
    for summary in result.summaries:
        metric = summary.metrics["ptc"]
        assert metric.value is not None, metric
        assert not metric.missing, metric.missing
    calls = {
        summary.task: sum(
            use.calls for stage in summary.stages.values() for use in stage.roles.values()
        )
        for summary in result.summaries
    }
    (arguments.folder / "calls.json").write_text(json.dumps(calls), encoding="utf-8")
