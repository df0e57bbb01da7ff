"""What a run folder holds, in lines that are the same wherever and whenever it was made.

Keys of stages and records, versions, times and paths are left out: they may change. Long values
are digests; of each prompt and each stage one is whole, for people to read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

LONGEST = 160
CALLED = ("role", "prompt", "finish", "rung", "source", "repeat", "cause")
COUNTED = ("benchmark", "not_comparable_because", "repeat", "units", "counts", "stages", "roles")
NUMBERS = ("value", "interval", "n", "users", "counted_as_worst")
WORDS = ("description", "note", "undefined", "no_interval")


def dumps(value: Any) -> str:
    """JSON on one line, with names in order."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def sha(value: Any) -> str:
    """The digest of a text or of a value's JSON, cut to twelve characters."""
    text = value if isinstance(value, str) else dumps(value)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def brief(value: Any, longest: int = LONGEST) -> Any:
    """The value, or its digest where it is long."""
    return value if len(dumps(value)) <= longest else f"sha:{sha(value)}"


def pruned(value: Any) -> Any:
    """The value without what is empty, nothing or zero in it."""
    if isinstance(value, dict):
        return {key: kept for key, one in value.items() if (kept := pruned(one))}
    return value


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file without checksums, in the order of their ids.

    A stage without items has no file.
    """
    with path.open("rb") if path.exists() else nullcontext(()) as lines:
        found = [{k: v for k, v in json.loads(line).items() if k != "crc32"} for line in lines]
    return sorted(found, key=lambda line: line["id"])


def baseline_answers(run: Path) -> dict[str, str]:
    """The answer to each question of a run, by the last message."""
    return {
        call["messages"][-1]["content"]: call.get("text", "")
        for path in sorted(run.glob("*/[0-9]*-*.jsonl"))
        for record in read_lines(path)
        for call in record["calls"]
    }


def lines_of_run(run: Path, *, keys: bool, short: bool) -> list[dict[str, Any]]:
    """What a run asked, got and found; `short` keeps digests of scores and metrics alone."""
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    lines: list[dict[str, Any]] = [
        {"status": manifest["status"], "roles": sorted(manifest["roles"])}
    ]
    whole: set[tuple[str, str]] = set()
    longest = 0 if short else 2000
    for name, task in sorted(manifest["tasks"].items()):
        folder = run / task["folder"]
        for stage in task["stages"]:
            lines.append({"task": name, "stage": stage["name"], **parts(stage, task)})
            for record in read_lines(folder / stage["file"]):
                lines += lines_of_record(
                    record, keys=keys, whole=whole, place=(name, stage["name"])
                )
        for score in read_lines(folder / "scores.jsonl"):
            lines.append({"task": name, "score": score["id"], "all": brief(score, longest)})
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        lines += lines_of_summary(name, summary, short=short)
    return list({dumps(line): line for line in lines}.values())


def parts(stage: dict[str, Any], task: dict[str, Any]) -> dict[str, Any]:
    """What a stage's key is made of, without versions; who was asked, without the run."""
    made = stage["components"]
    roles = {}
    for role, bound in made["roles"].items():
        who = bound.get("model") or bound.get("judge") or {}
        known = {key: value for key, value in who.items() if key in ("kind", "name")}
        if who.get("kind") != "baseline":
            known["details"] = who.get("details")
        roles[role] = {"who": known, "sampling": bound.get("sampling")}
    kept = {name: made[name] for name in ("options", "prompts", "seed", "structured")}
    return {**kept, "roles": roles, "items": stage["items"], "data": task["data"]["fingerprint"]}


def lines_of_record(
    record: dict[str, Any], *, keys: bool, whole: set[tuple[str, str]], place: tuple[str, str]
) -> Iterator[dict[str, Any]]:
    """A record in one line, after the first question of each kind as it was asked."""
    calls = []
    kept = (*CALLED, "key") if keys else CALLED
    for call in record["calls"]:
        kind = (call["role"], call["prompt"])
        if kind not in whole:
            whole.add(kind)
            yield {"prompt": "/".join(kind), "messages": call["messages"], "text": call.get("text")}
        calls.append(
            {
                **{key: call[key] for key in kept if key in call},
                # Whether an identical question was answered before or was in flight is a race.
                **({"source": "store"} if call.get("source") == "shared" else {}),
                "messages": sha(call["messages"]),
                "text": brief(call.get("text"), 60),
            }
        )
    outcome = record["outcome"]
    yield pruned(
        {
            "in": "/".join(place),
            "id": record["id"],
            "item": sha(record["item"]),
            "outcome": {key: brief(value) for key, value in outcome.items()},
            "calls": calls,
            "judged": [brief(one["verdict"]) for one in record.get("judged", ())],
        }
    )


def lines_of_summary(
    task: str, summary: dict[str, Any], *, short: bool
) -> Iterator[dict[str, Any]]:
    """The counts of a task and what its metrics say, then a line a metric, or one of digests."""
    yield {"task": task, "summary": pruned({key: summary[key] for key in COUNTED})}
    digests = {}
    for name, metric in summary["metrics"].items():
        words = {key: metric.pop(key) for key in WORDS}
        yield {"metric": name, "benchmark": summary["benchmark"], **words}
        numbers = [metric.pop(key) for key in NUMBERS]
        digests[name] = sha([numbers, metric])
        if not short:
            yield {"task": task, "metric": name, "numbers": numbers, "rest": sha(metric)}
    if short:
        yield {"task": task, "metrics": digests}
