"""Export of stored runs as logs of inspect_ai, in whose viewer every answer can be browsed."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import msgspec

from harness.analysis.exported_runs import (
    UnitRecords,
    candidates_calls,
    in_file_name,
    model_name,
    score_names,
)
from harness.base.hashing import digest
from harness.calls.budget import player_name
from harness.contracts.outcomes import CAUSES
from harness.contracts.records import CallRecord, Done, JournalLine, Score
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.score_run import chosen_metrics
from harness.scoring.summary import main_metrics

FORMAT = 2
STOPS = {"stop": "stop", "length": "max_tokens", "refused": "content_filter"}
SHOWN = 1000
"""The characters of an input and of an answer in the list of samples."""

Values = dict[str, Any]


def write_inspect(folder: Path, tasks: Sequence[FinishedTask]) -> list[Path]:
    """The logs written, one for each task of each run, named as inspect_ai names its own."""
    written = []
    for task in tasks:
        header = _header(task)
        began = datetime.fromisoformat(header["eval"]["created"])
        stamp = began.isoformat(timespec="seconds").replace(":", "-")
        name = in_file_name(task.task.name).replace("_", "-")
        path = folder / f"{stamp}_{name}_{header['eval']['eval_id']}.eval"
        listed = []
        with ZipFile(path, "x") as log:
            for sample in _samples(task):
                _put(log, f"samples/{sample['id']}_epoch_1.json", sample)
                listed.append(_in_list(sample))
            _put(log, "summaries.json", listed)
            _put(log, "header.json", header)
        written.append(path)
    return written


def _put(log: ZipFile, name: str, value: Any) -> None:
    # An entry that is given no time is the same whenever it is written.
    log.writestr(ZipInfo(name), json.dumps(value, ensure_ascii=False), ZIP_DEFLATED)


def _header(task: FinishedTask) -> Values:
    """The log without its samples: what was run on which data, and the metrics."""
    manifest, summary = task.manifest, task.summary
    began, ended = manifest.sessions[0].started, manifest.sessions[-1].ended
    metrics, scores = summary.metrics, _metrics(task)
    main = next(iter(main_metrics(summary.main, metrics)), None)
    headline = next((one["scorer"] for one in scores if main in one["metrics"]), None)
    return {
        "version": FORMAT,
        "status": "success",
        "eval": {
            "eval_id": digest([task.run, summary.task]),
            "run_id": task.run,
            "created": began,
            "task": summary.task,
            "task_id": digest([summary.task, summary.content]),
            "task_version": summary.version,
            "task_args": task.task.options,
            "tags": [f"{tag}={value}" for tag, value in manifest.tags.items()],
            "dataset": {"name": summary.benchmark, "samples": summary.units},
            "model": model_name(manifest),
            "model_roles": {role: {"model": player} for role, player in summary.roles.items()},
            "config": {"limit": summary.limit, "epochs": 1},
            "packages": manifest.versions,
            "metadata": {
                "label": task.label,
                "seed": summary.seed,
                "data": summary.data.get("origin"),
                "comparable": summary.comparable,
                "not_comparable_because": summary.not_comparable_because,
            },
        },
        "plan": {"steps": [{"solver": stage.name} for stage in task.entry.stages]},
        "results": {
            "total_samples": summary.units,
            "completed_samples": summary.units,
            "scores": scores,
            "headline": headline and {"scorer": headline, "metric": main},
        },
        "stats": {"started_at": began, "completed_at": ended or ""},
    }


def _metrics(task: FinishedTask) -> list[Values]:
    """The metrics of each column of scores; what is known of one is in the metadata."""
    metrics, chosen = task.summary.metrics, chosen_metrics(task.task, task.benchmark)
    columns = grouped((one.of or name, name) for name, one in chosen.items() if name in metrics)
    return [
        {
            "name": column,
            "scorer": column,
            "scored_samples": metrics[names[0]].n,
            "unscored_samples": sum(metrics[names[0]].missing.values()),
            "metrics": {
                name: {"name": name, "value": metrics[name].value}
                for name in names
                if metrics[name].value is not None
            },
            "metadata": {name: msgspec.to_builtins(metrics[name]) for name in names},
        }
        for column, names in columns.items()
    ]


def _samples(task: FinishedTask) -> Iterator[Values]:
    """A sample for each scored unit: its scores, the candidate's conversation, all events."""
    names, records = score_names(task), UnitRecords(task)
    for score in task.scores():
        lines = records.of(score)
        calls = [call for _, line in lines for call in line.calls]
        asked = [call for stage, line in lines for call in candidates_calls(stage, line)]
        answer = asked[-1].text if asked else None
        replies = [_output(task, call) for call in asked]
        yield {
            "id": score.id,
            "epoch": 1,
            "input": _messages(asked[0]) if asked else "",
            "target": "",
            "messages": [
                message
                for call, reply in zip(asked, replies, strict=True)
                for message in (*_messages(call), *(one["message"] for one in reply["choices"]))
            ],
            "output": replies[-1] if replies else {},
            "scores": {
                name: {"answer": answer and answer[:SHOWN], **_score(task, score, name)}
                for name in names
                if name in score.values or name in score.missing
            },
            "metadata": {"user": score.user, **(score.slices or {})},
            "events": [event for stage, line in lines for event in _events(task, stage.name, line)],
            "model_usage": _usage((_player(task, call), call) for call in calls),
            "role_usage": _usage((call.role, call) for call in calls),
        }


def _in_list(sample: Values) -> Values:
    same = ("id", "epoch", "target", "scores", "metadata", "model_usage", "role_usage")
    text = "\n".join(one["content"] for one in sample["input"])[:SHOWN]
    return {**{key: sample[key] for key in same}, "input": text, "completed": True}


def _score(task: FinishedTask, score: Score[Any], name: str) -> Values:
    """The unit's score in a column; NaN is how the format says that there is none."""
    if name in score.values:
        parts = (score.parts or {}).get(name)
        return {
            "value": score.values[name],
            "metadata": {"missing_parts": parts} if parts else {},
        }
    cause = score.missing[name]
    words = {**CAUSES, **task.benchmark.words}.get(cause.rpartition("/")[2])
    text = f"missing: {cause}" + (f" ({words})" if words else "")
    return {"value": math.nan, "reason": cause, "explanation": text}


def _events(task: FinishedTask, stage: str, line: JournalLine[Any, Any]) -> Iterator[Values]:
    """The record of an item: the item, each call, each verdict, and the value or the failure."""
    span = f"{stage} {line.id}"
    # Records have no times, and the format wants one.
    always = {"timestamp": task.manifest.sessions[0].started, "span_id": span}
    # The viewer takes what follows a slash for the whole name.
    name = span.replace("/", " ")
    yield {"event": "span_begin", "id": span, "type": "solver", "name": name, **always}
    yield _info("item", line.item) | always
    for call in line.calls:
        failure = call.failure
        yield always | {
            "event": "model",
            "model": _player(task, call),
            "role": player_name(call.role, call.member),
            "input": _messages(call),
            "tools": [],
            "tool_choice": "none",
            "config": {},
            "output": _output(task, call),
            "retries": call.attempts - 1,
            "error": f"{failure.cause}: {failure.detail}" if failure and not call.text else None,
            "working_time": call.seconds,
            "metadata": {
                **{key: getattr(call, key) for key in ("prompt", "source", "repeat", "rung")},
                "failure": msgspec.to_builtins(failure),
            },
        }
    for judged in line.judged or ():
        yield _info(f"verdict of {judged.role}", judged) | always
    done = isinstance(line.outcome, Done)
    yield _info("value" if done else "failure", line.outcome) | always
    yield {"event": "span_end", "id": span, **always}


def _info(source: str, data: Any) -> Values:
    return {"event": "info", "source": source, "data": msgspec.to_builtins(data)}


def _player(task: FinishedTask, call: CallRecord) -> str:
    asked = (player_name(call.role, call.member), call.role)
    found = filter(None, (task.manifest.player(task.task.name, one) for one in asked))
    return next((entry.name for entry in found), task.summary.model)


def _messages(call: CallRecord) -> list[Values]:
    return [{"role": one.role, "content": one.content} for one in call.messages]


def _output(task: FinishedTask, call: CallRecord) -> Values:
    """The reply of a call, its reasoning first; without a choice if there was none."""
    model = _player(task, call)
    usage = _usage([(model, call)]).get(model)
    output: Values = {"model": model, "choices": [], "usage": usage, "time": call.seconds}
    if call.text is not None:
        content: Any = call.text
        if call.reasoning is not None:
            reasoning = {"type": "reasoning", "reasoning": call.reasoning}
            content = [reasoning, {"type": "text", "text": call.text}]
        message = {"role": "assistant", "content": content, "model": model}
        stop = STOPS.get(call.finish or "", "unknown")
        output["choices"] = [{"message": message, "stop_reason": stop}]
    return output


def _usage(calls: Iterable[tuple[str, CallRecord]]) -> dict[str, Counter[str]]:
    """The tokens under each name; those from a cache are no input tokens here."""
    found: dict[str, Counter[str]] = {}
    for name, call in calls:
        if used := call.usage:
            found.setdefault(name, Counter()).update(
                input_tokens=used.prompt_tokens - used.cached_tokens,
                output_tokens=used.completion_tokens,
                total_tokens=used.prompt_tokens + used.completion_tokens,
                input_tokens_cache_read=used.cached_tokens,
                reasoning_tokens=used.reasoning_tokens,
            )
    return found
