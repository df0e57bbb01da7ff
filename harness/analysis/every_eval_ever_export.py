"""Export of stored runs as records of Every Eval Ever, the shared data set of evaluations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from harness.analysis.exported_runs import in_file_name, model_name
from harness.base.hashing import digest
from harness.base.home import without_home
from harness.base.redaction import without_key_material
from harness.contracts.identity import path_parts
from harness.runs.atomic_files import atomic_write
from harness.scoring.finished_task import FinishedTask
from harness.scoring.summary import MetricResult

SCHEMA = "0.3.0"
LOCAL = "local"
"""The developer of a model whose name has none: the format files each model under one."""


def write_every_eval_ever(folder: Path, tasks: Sequence[FinishedTask]) -> list[Path]:
    """The records written, one for each task of each run, under data/BENCHMARK/DEVELOPER/MODEL.

    No record has a key or the name of the home folder.
    """
    written = []
    for task in tasks:
        record = _record(task)
        developer, model = record["model_info"]["id"].split("/")
        name = UUID(hex=digest([task.run, task.task.name]), version=4)
        into = folder / "data" / in_file_name(task.summary.benchmark) / developer / model
        into.mkdir(parents=True, exist_ok=True)
        path = into / f"{name}.json"
        text = json.dumps(without_key_material(record), indent=2, ensure_ascii=False)
        atomic_write(path, without_home(text).encode(), option="--out")
        written.append(path)
    return written


def _record(task: FinishedTask) -> dict[str, Any]:
    manifest, summary = task.manifest, task.summary
    name = model_name(manifest)
    # Of a path of weights, others need only the end.
    names = [LOCAL, *(path_parts(name)[-1:] or name.split("/"))][-2:]
    model = "/".join(map(in_file_name, names))
    began, ended = manifest.sessions[0].started, manifest.sessions[-1].ended
    source: dict[str, Any] = {"dataset_name": summary.benchmark, "source_type": "other"}
    if repo := summary.data.get("repo"):
        source |= {"source_type": "hf_dataset", "hf_repo": repo, "samples_number": summary.units}
    about = {
        "run": task.run,
        "task": summary.task,
        "version": summary.version,
        "content": summary.content,
        "seed": summary.seed,
        "limit": summary.limit,
        "comparable": summary.comparable,
        "not_comparable_because": "; ".join(summary.not_comparable_because),
        **{f"role {role}": player for role, player in summary.roles.items()},
    }
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{summary.task}/{model.replace('/', '_')}/{_seconds(began)}",
        "evaluation_timestamp": began,
        "retrieved_timestamp": _seconds(ended or began),
        "source_metadata": {
            "source_name": "harness",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
            "additional_details": _texts(about),
        },
        "eval_library": {
            "name": "user-understanding-harness",
            "version": manifest.versions.get("user-understanding-harness", "unknown"),
        },
        "model_info": {
            "name": manifest.label,
            "id": model,
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": [
            {
                "evaluation_name": summary.task,
                "source_data": source,
                "metric_config": {
                    "evaluation_description": task.task.description,
                    "metric_id": f"{summary.benchmark}.{name}",
                    "metric_name": metric.description or name,
                    "lower_is_better": not metric.higher_is_better,
                },
                "score_details": _score(metric),
            }
            for name, metric in summary.metrics.items()
            if metric.value is not None and not metric.baseline
        ],
    }


def _score(metric: MetricResult) -> dict[str, Any]:
    uncertainty: dict[str, Any] = {"num_samples": metric.n}
    if metric.interval is not None:
        low, high = metric.interval
        uncertainty["confidence_interval"] = {
            "lower": low,
            "upper": high,
            "confidence_level": metric.confidence,
            "method": f"bootstrap, {metric.interval_method}",
        }
    about = {
        "users": metric.users,
        "missing": json.dumps(metric.missing),
        "counted_as_worst": metric.counted_as_worst,
    }
    return {"score": metric.value, "details": _texts(about), "uncertainty": uncertainty}


def _texts(values: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}


def _seconds(time: str) -> str:
    return str(int(datetime.fromisoformat(time).timestamp()))
