"""inspect_ai over the same messages: one task of `generate()` with its own log."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def evaluate(url: str, data: Path, concurrency: int, folder: Path) -> None:
    """Runs the task and checks that every message was answered."""
    os.environ["BENCH_API_KEY"] = "none"
    os.environ["BENCH_BASE_URL"] = url
    os.environ["XDG_DATA_HOME"] = str(folder / "share")

    from inspect_ai import Task, eval
    from inspect_ai.dataset import FieldSpec, json_dataset
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate

    task = Task(
        dataset=json_dataset(
            str(data), FieldSpec(input="text", id="id", target="target"), auto_id=False
        ),
        solver=generate(),
        scorer=includes(),
    )
    [log] = eval(
        task,
        model="openai-api/bench/bench",
        max_connections=concurrency,
        temperature=0.0,
        max_tokens=16,
        log_dir=str(folder / "logs"),
        display="none",
    )
    assert log.status == "success", log.error
    assert log.results is not None
    assert log.results.completed_samples == log.results.total_samples


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    evaluate(arguments.url, arguments.data, arguments.concurrency, arguments.folder)
