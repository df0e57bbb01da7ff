"""Tables of stored runs for export: metrics, scores, records and calls, a row at a time.

A missing value is None; another column has its cause.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec.structs import asdict

from harness.analysis.exported_runs import score_names
from harness.base.errors import UsageError
from harness.contracts.model import Message, Usage
from harness.contracts.records import CallRecord, Done, JournalLine
from harness.scoring.finished_task import FinishedTask
from harness.scoring.summary import TaskSummary

Kind = Literal["text", "number", "whole", "truth"]
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Export:
    """A table: its name, its columns with their kinds, and a function that makes its rows."""

    name: str
    columns: Mapping[str, Kind]
    rows: Callable[[], Iterator[Row]]


METRICS: dict[str, Kind] = {
    "run": "text", "model": "text", "task": "text", "version": "whole", "benchmark": "text",
    "metric": "text", "value": "number", "undefined": "text", "low": "number", "high": "number",
    "no_interval": "text", "confidence": "number", "n": "whole", "users": "whole",
    "fell_out": "whole", "causes": "text", "missing_share": "number",
    "counted_as_worst": "number", "left_out": "number", "higher_is_better": "truth",
    "baseline": "truth", "comparable": "truth", "note": "text",
}  # fmt: skip
RECORDS: dict[str, Kind] = {
    "run": "text", "task": "text", "stage": "text", "id": "text", "user": "text", "outcome": "text",
    "value": "text", "cause": "text", "detail": "text", "item": "text", "calls": "whole",
}  # fmt: skip
CALLS: dict[str, Kind] = {
    "run": "text", "task": "text", "stage": "text", "id": "text", "user": "text", "number": "whole",
    "role": "text", "prompt": "text", "key": "text", "repeat": "whole", "source": "text",
    "attempts": "whole", "seconds": "number", "messages": "text", "text": "text",
    "reasoning": "text", "finish": "text", "rung": "text", "asked_schema": "truth",
    "failure": "text", "cause": "text", "detail": "text", "prompt_tokens": "whole",
    "completion_tokens": "whole", "cached_tokens": "whole", "reasoning_tokens": "whole",
}  # fmt: skip
PUBLISHED: dict[str, Kind] = {
    "task": "text", "metric": "text", "model": "text", "value": "number", "low": "number",
    "high": "number", "n": "whole", "source": "text", "comparable_if": "text",
}  # fmt: skip
UNIT: dict[str, Kind] = {"run": "text", "task": "text", "id": "text", "user": "text"}


def tables_of(tasks: Sequence[FinishedTask]) -> tuple[Export, ...]:
    """The tables of these tasks; that of published results only if there are any."""
    found = {one: None for task in tasks for one in task.summary.published or ()}
    published = Export(name="published", columns=PUBLISHED, rows=lambda: map(asdict, found))
    return (
        Export(
            name="metrics",
            columns=METRICS,
            rows=lambda: (
                row for task in tasks for row in metric_rows(task.run, task.label, task.summary)
            ),
        ),
        Export(name="scores", columns=_score_columns(tasks), rows=lambda: _scores(tasks)),
        Export(name="records", columns=RECORDS, rows=lambda: _records(tasks)),
        Export(name="calls", columns=CALLS, rows=lambda: _calls(tasks)),
        *([published] if found else []),
    )


def missing_column(metric: str) -> str:
    """The name of the column with the causes of a metric's missing scores."""
    return f"{metric}_missing"


def slice_column(name: str) -> str:
    """The name of the column with the parts of the data that units belong to."""
    return f"slice_{name}"


def lines_of(task: FinishedTask) -> Iterator[tuple[str, JournalLine[Any, Any]]]:
    """Every current record of a task with its calls, each after the name of its stage."""
    for stage in task.entry.stages:
        line: Any
        for line in task.journal(stage):
            yield stage.name, line


def metric_rows(run: str, label: str, summary: TaskSummary) -> Iterator[Row]:
    """A row for each metric of a task."""
    same = ("value", "undefined", "no_interval", "confidence", "n", "users", "counted_as_worst",
            "left_out", "higher_is_better", "baseline")  # fmt: skip
    for name, metric in summary.metrics.items():
        low, high = metric.interval or (None, None)
        yield {
            "run": run, "model": label, "task": summary.task,
            "version": summary.version, "benchmark": summary.benchmark, "metric": name,
            **{name: getattr(metric, name) for name in same}, "low": low, "high": high,
            "fell_out": sum(metric.missing.values()),
            "causes": _json(metric.missing) if metric.missing else None,
            "missing_share": metric.missing_share or 0.0,
            "comparable": summary.comparable, "note": metric.note or None,
        }  # fmt: skip


def _score_columns(tasks: Sequence[FinishedTask]) -> dict[str, Kind]:
    columns = dict(UNIT)
    for task in tasks:
        kinds: list[tuple[str, Kind]] = []
        for name in score_names(task):
            kinds += [(name, "number"), (missing_column(name), "text")]
        kinds += [(slice_column(one), "text") for one in task.summary.slices or ()]
        for column, kind in kinds:
            if columns.setdefault(column, kind) != kind or column in UNIT:
                raise UsageError(
                    "two columns of the table of scores would have the same name",
                    where=f"task {task.task.name}",
                    found=column,
                    expected=f"a different name for each column, and none of {', '.join(UNIT)}",
                    hint="export one task alone with --task, or read scores.jsonl",
                )
    return columns


def _scores(tasks: Sequence[FinishedTask]) -> Iterator[Row]:
    columns = _score_columns(tasks)
    for task in tasks:
        names = score_names(task)
        for score in task.scores():
            row: Row = dict.fromkeys(columns)
            row |= {"run": task.run, "task": task.task.name, "id": score.id, "user": score.user}
            for name in names:
                row[name] = score.values.get(name)
                row[missing_column(name)] = score.missing.get(name)
            for name in task.summary.slices or ():
                row[slice_column(name)] = (score.slices or {}).get(name)
            yield row


def _records(tasks: Sequence[FinishedTask]) -> Iterator[Row]:
    for task in tasks:
        for stage, line in lines_of(task):
            outcome: Any = line.outcome
            done = isinstance(outcome, Done)
            yield {
                "run": task.run, "task": task.task.name, "stage": stage, "id": line.id,
                "user": line.user,
                "outcome": str(type(outcome).__struct_config__.tag),
                "value": _json(outcome.value) if done else None,
                "cause": None if done else outcome.cause,
                "detail": None if done else outcome.detail,
                "item": _json(line.item), "calls": len(line.calls),
            }  # fmt: skip


def _calls(tasks: Sequence[FinishedTask]) -> Iterator[Row]:
    for task in tasks:
        for stage, line in lines_of(task):
            for number, call in enumerate(line.calls, 1):
                yield {
                    "run": task.run, "task": task.task.name, "stage": stage, "id": line.id,
                    "user": line.user, "number": number, **_call(call),
                }  # fmt: skip


def _call(call: CallRecord) -> Row:
    same = ("role", "prompt", "key", "repeat", "source", "attempts", "seconds", "text",
            "reasoning", "finish", "rung", "asked_schema")  # fmt: skip
    failure = call.failure
    return {
        **{name: getattr(call, name) for name in same},
        "messages": messages_json(call.messages),
        "failure": None if failure is None else str(type(failure).__struct_config__.tag),
        **{name: getattr(failure, name, None) for name in ("cause", "detail")},
        **{name: getattr(call.usage, name, None) for name in Usage.__struct_fields__},
    }


def messages_json(messages: Sequence[Message]) -> str:
    """The messages of a request as JSON text."""
    return _json([{"role": one.role, "content": one.content} for one in messages])


def _json(value: Any) -> str:
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
