"""Sends the result of each run to MLflow, if `MLFLOW_TRACKING_URI` is set."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

import harness
from harness import hookimpl
from harness_trackers import config_of, numbers_of

if TYPE_CHECKING:
    from harness.registry.hookspecs import RunEnded

ENDS = {"done": "FINISHED", "interrupted": "KILLED"}
MOST_AT_ONCE = 1000
LONGEST = 500
"""The numbers that MLflow takes at once, and the length of a parameter that all versions take."""


@hookimpl
def on_run_end(event: RunEnded) -> None:
    """Send the result. A run that is continued updates its result there."""
    if not os.environ.get("MLFLOW_TRACKING_URI"):
        return
    # A server that does not answer must not hold the result up for minutes.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    result = harness.load(event.folder)
    client = MlflowClient()
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "Default")
    found = client.get_experiment_by_name(name)
    experiment = found.experiment_id if found else client.create_experiment(name)
    run_id, label = result.manifest.run_id, result.manifest.label
    before = client.search_runs([experiment], f"tags.harness_run = '{run_id}'")
    if before:
        run = before[0].info.run_id
    else:
        tags = {**result.manifest.tags, "harness_run": run_id}
        run = client.create_run(experiment, run_name=label, tags=tags).info.run_id
        params = [Param(key, str(value)[:LONGEST]) for key, value in config_of(result).items()]
        client.log_batch(run, params=params)
    client.set_tag(run, "status", event.status)
    now = int(time.time() * 1000)
    metrics = [
        Metric(re.sub(r"[^\w\-./ ]", "_", key), value, now, 0)
        for key, value in numbers_of(result).items()
    ]
    for start in range(0, len(metrics), MOST_AT_ONCE):
        client.log_batch(run, metrics=metrics[start : start + MOST_AT_ONCE])
    client.set_terminated(run, ENDS.get(event.status, "FAILED"))
