"""Export of stored runs to the files of lm-evaluation-harness, for tools that read those."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import NormalDist
from typing import Any

import msgspec

from harness.analysis.exported_runs import (
    UnitRecords,
    candidates_calls,
    folders_of_runs,
    in_file_name,
    model_name,
    score_names,
)
from harness.analysis.run_tables import messages_json, missing_column
from harness.runs.atomic_files import atomic_write, atomic_writer
from harness.scoring.finished_task import FinishedTask

NONE = "none"
"""The name of the only filter: parsing is part of a benchmark here."""


def write_lm_eval(folder: Path, tasks: Sequence[FinishedTask]) -> list[Path]:
    """The files written: of each run one of results, and one of samples per task."""
    written = []
    for into, own in folders_of_runs(folder, tasks, model_name):
        began = datetime.fromisoformat(own[0].manifest.sessions[0].started)
        stamp = began.strftime("%Y-%m-%dT%H-%M-%S.%f")
        written.append(into / f"results_{stamp}.json")
        results = json.dumps(_results(own), indent=2, ensure_ascii=False)
        atomic_write(written[-1], results.encode(), option="--out")
        for task in own:
            written.append(into / f"samples_{in_file_name(task.task.name)}_{stamp}.jsonl")
            with atomic_writer(written[-1], option="--out") as file:
                for sample in samples_of(task):
                    file.write(json.dumps(sample, ensure_ascii=False).encode() + b"\n")
    return written


def _results(tasks: Sequence[FinishedTask]) -> dict[str, Any]:
    """The content of the file of results; `harness` holds what the format has no place for."""
    manifest = tasks[0].manifest
    settings, sessions = manifest.settings, manifest.sessions
    began = datetime.fromisoformat(sessions[0].started)
    ended = datetime.fromisoformat(sessions[-1].ended or sessions[-1].started)
    summaries = {task.task.name: task.summary for task in tasks}
    better = {
        name: {metric: found.higher_is_better for metric, found in summary.metrics.items()}
        for name, summary in summaries.items()
    }
    name = model_name(manifest)
    return {
        "results": {name: _values(task) for name, task in zip(summaries, tasks, strict=True)},
        "group_subtasks": {**manifest.groups, **{name: [] for name in summaries}},
        "configs": {task.task.name: _config(task, better[task.task.name]) for task in tasks},
        "versions": {name: summary.version for name, summary in summaries.items()},
        "n-shot": dict.fromkeys(summaries),
        "higher_is_better": better,
        "n-samples": {
            name: {"original": _offered(summary.data, summary.units), "effective": summary.units}
            for name, summary in summaries.items()
        },
        "config": {
            **dict.fromkeys(("batch_size", "device", "use_cache", "numpy_seed", "torch_seed")),
            "model": settings.get("model"),
            "model_args": settings.get("model_args"),
            "batch_sizes": [],
            "limit": manifest.limit,
            "bootstrap_iters": tasks[0].task.interval.draws,
            "gen_kwargs": settings.get("sampling") or None,
            "random_seed": manifest.seed,
        },
        "git_hash": manifest.commits.get("harness"),
        "date": began.timestamp(),
        "model_source": settings.get("model"),
        "model_name": name,
        "model_name_sanitized": in_file_name(name),
        **dict.fromkeys(("system_instruction", "chat_template", "fewshot_as_multiturn")),
        "total_evaluation_time_seconds": str((ended - began).total_seconds()),
        "harness": {
            "run": manifest.run_id,
            "versions": manifest.versions,
            "summaries": msgspec.to_builtins(summaries),
        },
    }


def _values(task: FinishedTask) -> dict[str, Any]:
    name = task.task.name
    found: dict[str, Any] = {"name": name, "alias": name, "sample_len": task.summary.units}
    for metric, result in task.summary.metrics.items():
        # That of a normal interval that is as wide as the bootstrap's.
        low, high = result.interval or (None, None)
        normal = 2 * NormalDist().inv_cdf(0.5 + result.confidence / 2)
        stderr = "N/A" if low is None or high is None else (high - low) / normal
        found |= {f"{metric},{NONE}": result.value, f"{metric}_stderr,{NONE}": stderr}
    return found


def _config(task: FinishedTask, better: Mapping[str, bool]) -> dict[str, Any]:
    summary = task.summary
    return {
        "task": task.task.name,
        "dataset_path": str(summary.data.get("origin", "")),
        "output_type": "generate_until",
        "num_fewshot": None,
        "metric_list": [{"metric": name, "higher_is_better": one} for name, one in better.items()],
        "metadata": {
            "version": summary.version,
            "benchmark": summary.benchmark,
            "content": summary.content,
            "options": task.task.options,
        },
    }


def _offered(data: Mapping[str, Any], units: int) -> int:
    """The units of the whole data, if the summary has the number of ids before the choice."""
    return next((one["of"] for one in data["chosen"].values() if one.get("chosen") == units), units)


def samples_of(task: FinishedTask) -> Iterator[dict[str, Any]]:
    """A sample for each scored unit: the candidate's prompts and replies, and the scores.

    `target` is empty: each benchmark has references of its own kind.
    """
    names = score_names(task)
    records = UnitRecords(task)
    for number, score in enumerate(task.scores()):
        lines = records.of(score)
        doc = {
            "id": score.id,
            "user": score.user,
            "items": [msgspec.to_builtins(line.item) for _, line in lines],
        }
        asked = [
            (call, stage.components["roles"][call.role].get("sampling"))
            for stage, line in lines
            for call in candidates_calls(stage, line)
        ]
        prompts = [messages_json(call.messages) for call, _ in asked]
        yield {
            "doc_id": number,
            "doc": doc,
            "target": "",
            "arguments": {
                f"gen_args_{place}": {"arg_0": prompt, "arg_1": sampling}
                for place, (prompt, (_, sampling)) in enumerate(zip(prompts, asked, strict=True))
            },
            "resps": [[call.text] for call, _ in asked],
            "filtered_resps": [None if call.failure else call.text for call, _ in asked],
            "filter": NONE,
            "metrics": names,
            "doc_hash": _hash(json.dumps(doc, indent=2, ensure_ascii=False)),
            "prompt_hash": _hash(prompts[0] if prompts else ""),
            "target_hash": _hash(""),
            **{name: score.values.get(name) for name in names},
            **{missing_column(name): score.missing.get(name) for name in names},
            **({"slices": score.slices} if score.slices else {}),
        }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
