"""Export of stored runs to the files of lm-evaluation-harness, for tools that read those."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from statistics import NormalDist
from typing import Any

import msgspec

from harness.analysis.run_tables import messages_json, missing_column, score_names
from harness.contracts.records import JournalLine, Score
from harness.runs.atomic_files import atomic_writer
from harness.runs.journal import Head, JournalFiles, check_number, scan
from harness.runs.manifest import Manifest, StageEntry
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped

NONE = "none"
"""The name of the only filter: parsing is part of a benchmark here."""

CANDIDATE = "candidate"

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""The categories of characters that control a terminal or change the direction of writing."""


def write_lm_eval(folder: Path, tasks: Sequence[FinishedTask]) -> list[Path]:
    """The files written: of each run one of results, and one of samples per task.

    They are in a folder for each model. A second run of a model that began in the same second has a
    folder with the run's name.
    """
    runs = grouped((task.run, task) for task in tasks)
    return [path for of_run in runs.values() for path in _write_run(folder, of_run)]


def _write_run(folder: Path, tasks: Sequence[FinishedTask]) -> list[Path]:
    manifest = tasks[0].manifest
    began = _time(manifest.sessions[0].started)
    stamp = began.strftime("%Y-%m-%dT%H-%M-%S.%f")
    into = folder / in_file_name(model_name(manifest))
    if (into / f"results_{stamp}.json").exists():
        into = folder / in_file_name(f"{model_name(manifest)} {manifest.run_id}")
    into.mkdir(parents=True, exist_ok=True)
    written = []
    hashes = {}
    for task in tasks:
        path = into / f"samples_{in_file_name(task.task.name)}_{stamp}.jsonl"
        seen = hashlib.sha256()
        with atomic_writer(path, option="--out") as file:
            for sample in samples_of(task):
                for part in ("doc_hash", "prompt_hash", "target_hash"):
                    seen.update(sample[part].encode())
                file.write(json.dumps(sample, ensure_ascii=False).encode() + b"\n")
        hashes[task.task.name] = seen.hexdigest()
        written.append(path)
    path = into / f"results_{stamp}.json"
    results = {**results_of(tasks), "task_hashes": hashes}
    with atomic_writer(path, option="--out") as file:
        file.write(json.dumps(results, indent=2, ensure_ascii=False).encode())
    return [path, *written]


def results_of(tasks: Sequence[FinishedTask]) -> dict[str, Any]:
    """The content of the file of results; `harness` holds what the format has no place for."""
    manifest = tasks[0].manifest
    settings = manifest.settings
    began, ended = _time(manifest.sessions[0].started), _time(manifest.sessions[-1].ended)
    name = model_name(manifest)
    return {
        "results": {task.task.name: _results(task) for task in tasks},
        "group_subtasks": {
            **{group: list(members) for group, members in manifest.groups.items()},
            **{task.task.name: [] for task in tasks},
        },
        "configs": {task.task.name: _config(task) for task in tasks},
        "versions": {task.task.name: task.summary.version for task in tasks},
        "n-shot": {task.task.name: None for task in tasks},
        "higher_is_better": {
            task.task.name: {
                metric: found.higher_is_better for metric, found in task.summary.metrics.items()
            }
            for task in tasks
        },
        "n-samples": {
            task.task.name: {"original": _offered(task), "effective": task.summary.units}
            for task in tasks
        },
        "config": {
            "model": settings.get("model"),
            "model_args": settings.get("model_args"),
            "batch_size": None,
            "batch_sizes": [],
            "device": None,
            "use_cache": None,
            "limit": manifest.limit,
            "bootstrap_iters": tasks[0].task.interval.draws,
            "gen_kwargs": settings.get("sampling") or None,
            "random_seed": manifest.seed,
            "numpy_seed": None,
            "torch_seed": None,
            "fewshot_seed": None,
        },
        "git_hash": manifest.commits.get("harness"),
        "date": began.timestamp(),
        "model_source": settings.get("model"),
        "model_name": name,
        "model_name_sanitized": in_file_name(name),
        "system_instruction": None,
        "system_instruction_sha": None,
        "fewshot_as_multiturn": None,
        "chat_template": None,
        "chat_template_sha": None,
        "total_evaluation_time_seconds": str((ended - began).total_seconds()),
        "harness": {
            "run": manifest.run_id,
            "versions": manifest.versions,
            "summaries": {task.task.name: msgspec.to_builtins(task.summary) for task in tasks},
        },
    }


def samples_of(task: FinishedTask) -> Iterator[dict[str, Any]]:
    """A sample for each scored unit: the candidate's prompts and replies, and the scores.

    `target` is empty: each benchmark has references of its own kind.
    """
    names = score_names(task)
    with _Journals(task) as journals:
        for number, score in enumerate(task.scores()):
            lines = journals.lines(score)
            asked = [
                (call, journals.sampling(stage))
                for stage, line in lines
                for call in line.calls
                if call.role in journals.candidates(stage)
            ]
            doc = {
                "id": score.id,
                "user": score.user,
                "items": [msgspec.to_builtins(line.item) for _, line in lines],
            }
            prompts = [messages_json(call.messages) for call, _ in asked]
            yield {
                "doc_id": number,
                "doc": doc,
                "target": "",
                "arguments": {
                    f"gen_args_{place}": {"arg_0": prompt, "arg_1": sampling.get(call.role)}
                    for place, (prompt, (call, sampling)) in enumerate(
                        zip(prompts, asked, strict=True)
                    )
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


def in_file_name(name: str) -> str:
    """The name of a model or task in the form for file names, without invisible characters."""
    name = "".join("\0" if unicodedata.category(one) in HIDDEN else one for one in name)
    return re.sub(r'["<>:/|\\?*\[\]\x00-\x1f]+', "__", name).strip(".") or "unnamed"


class _Journals:
    """An index of a task's records by user; lines are read when they are needed."""

    def __init__(self, task: FinishedTask) -> None:
        self._stages: dict[str, StageEntry] = {one.name: one for one in task.entry.stages}
        self._files: dict[str, JournalFiles] = {}
        self._places: dict[str, list[tuple[str, str, int, int]]] = defaultdict(list)
        self._decode = msgspec.json.Decoder(JournalLine[Any, Any]).decode
        for name, stage in self._stages.items():
            path = task.path / task.entry.folder / stage.file
            current: dict[str, tuple[Head, int, int]] = {}
            for place, length, head in scan(path, Head):
                if head.stage == stage.key:
                    current.pop(head.key, None)
                    if not head.dropped:
                        current[head.key] = (head, place, length)
            if stage.items is not None:
                check_number(path, len(current), stage.items)
            for head, place, length in current.values():
                self._places[head.user].append((head.id, name, place, length))
            self._files[name] = JournalFiles(path)
        order = {name: number for number, name in enumerate(self._stages)}
        for places in self._places.values():
            places.sort(key=lambda record: (order[record[1]], record[0]))

    def __enter__(self) -> _Journals:
        return self

    def __exit__(self, *_: object) -> None:
        for files in self._files.values():
            files.close()

    def lines(self, score: Score[Any]) -> list[tuple[str, JournalLine[Any, Any]]]:
        """The records of a unit: the records with its id, or all of the user if it is a user."""
        whole = score.id == score.user
        return [
            (stage, self._decode(self._files[stage].read(place, length)))
            for id, stage, place, length in self._places.get(score.user, ())
            if whole or id == score.id
        ]

    def sampling(self, stage: str) -> dict[str, Any]:
        """The sampling of each role of a stage."""
        roles = self._stages[stage].components.get("roles", {})
        return {role: parts.get("sampling") for role, parts in roles.items()}

    def candidates(self, stage: str) -> set[str]:
        """The roles of a stage that the candidate plays."""
        roles = self._stages[stage].components.get("roles", {})
        model = roles.get(CANDIDATE, {}).get("model")
        return {role for role, parts in roles.items() if model and parts.get("model") == model}


def _results(task: FinishedTask) -> dict[str, Any]:
    name = task.task.name
    found: dict[str, Any] = {"name": name, "alias": name, "sample_len": task.summary.units}
    for metric, result in task.summary.metrics.items():
        found[f"{metric},{NONE}"] = result.value
        found[f"{metric}_stderr,{NONE}"] = "N/A"
        if result.interval is not None:
            # That of a normal interval that is as wide as the bootstrap's.
            low, high = result.interval
            normal = 2 * NormalDist().inv_cdf(0.5 + result.confidence / 2)
            found[f"{metric}_stderr,{NONE}"] = (high - low) / normal
    return found


def _config(task: FinishedTask) -> dict[str, Any]:
    return {
        "task": task.task.name,
        "dataset_path": str(task.summary.data.get("origin", "")),
        "output_type": "generate_until",
        "num_fewshot": None,
        "metric_list": [
            {"metric": name, "higher_is_better": metric.higher_is_better}
            for name, metric in task.summary.metrics.items()
        ],
        "metadata": {
            "version": task.summary.version,
            "benchmark": task.summary.benchmark,
            "content": task.summary.content,
            "options": task.task.options,
        },
    }


def _offered(task: FinishedTask) -> int:
    """The units of the whole data, if the summary has the number of ids before the choice."""
    chosen = task.summary.data.get("chosen", {})
    several = [one["of"] for one in chosen.values() if one.get("chosen") == task.summary.units]
    return int(several[0]) if several else task.summary.units


def model_name(manifest: Manifest) -> str:
    """The name of a run's model for other programs: that of --name, or the model's own."""
    args = manifest.settings.get("model_args", {})
    if name := manifest.settings.get("name"):
        return str(name)
    return str(args.get("pretrained") or args.get("model") or manifest.model)


def _time(text: str | None) -> datetime:
    return datetime.fromisoformat(text) if text else datetime.fromtimestamp(0).astimezone()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
