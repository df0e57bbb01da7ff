"""What a run keeps on disk, read without the project's readers."""

from __future__ import annotations

import functools
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.base.hashing import LINE, damage
from harness.contracts.outcomes import NO_ANSWER

STAGES = ("1-name", "2-kind", "3-fit")

TRANSIENT = {"bad_response", "no_content"}
"""Causes that the command of an unfinished run leaves, and `--retry_failures` asks again."""

DISTURBED = {"seconds", "attempts", "source", "wasted", "untold", "key"}
"""What a call's record says of the way to its answer."""


def lacks_answer(record: dict[str, Any], among: Collection[str] = NO_ANSWER | TRANSIENT) -> bool:
    """Whether an item or one of its calls ended without an answer, by these causes."""
    causes = [call["failure"]["cause"] for call in record.get("calls", ()) if call.get("failure")]
    causes.append(record["outcome"].get("cause"))
    return any(cause in among for cause in causes)


def replies_in(file: Path) -> list[dict[str, Any]]:
    """The replies in a store, which is read from a copy: opening it would change it."""
    if not file.exists():
        return []
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copy(f"{file}{suffix}", f"{folder}/copy{suffix}")
        connection = sqlite3.connect(f"{folder}/copy")
        try:
            rows = connection.execute("SELECT value FROM replies").fetchall()
        except sqlite3.OperationalError:  # the crash came before its tables
            rows = []
        finally:
            connection.close()
    return [json.loads(value) for (value,) in rows]


def records_in(journal: Path) -> dict[str, dict[str, Any]]:
    """The current record of each item in a journal, by the item's id."""
    return records_of(journal.read_bytes()) if journal.exists() else {}


@functools.lru_cache(16)
def records_of(content: bytes) -> dict[str, dict[str, Any]]:
    """The current records of a journal with this content, which nobody changes."""
    found: dict[str, dict[str, Any]] = {}
    for line in content.splitlines(keepends=True):
        if not line.endswith(b"\n") or damage(line, LINE):
            continue
        record = json.loads(line)
        found.pop(record["key"], None)
        if not record.get("dropped"):
            found[record["key"]] = record
    return {record["id"]: record for record in found.values()}


def plain(record: dict[str, Any]) -> dict[str, Any]:
    """A record without keys, and without how its answers were got."""
    kept = {name: record[name] for name in ("id", "user", "item", "outcome")}
    calls = [
        {name: value for name, value in call.items() if name not in DISTURBED}
        for call in record.get("calls", ())
    ]
    return {**kept, "calls": calls, "judged": record.get("judged")}


def paid(record: dict[str, Any]) -> list[list[Any]]:
    """What a record says of what its answers cost: as asked, whatever happened since."""
    return [
        [call.get("source", "model"), call.get("attempts", 1), call.get("usage"),
         call.get("wasted"), call.get("untold", 0)]
        for call in record.get("calls", ())
    ]  # fmt: skip


def end_of(run: Path) -> dict[str, Any]:
    """What a finished run keeps, and what a disturbed one must keep too."""
    task = run / "simulated"
    summary = json.loads((task / "summary.json").read_bytes())
    stages = {
        stage: {id: plain(record) for id, record in records_in(task / f"{stage}.jsonl").items()}
        for stage in STAGES
    }
    candidate = records_in(task / f"{STAGES[0]}.jsonl")
    return {
        **stages,
        "paid": {id: paid(record) for id, record in candidate.items()},
        "scores": sorted((task / "scores.jsonl").read_bytes().splitlines()),
        "metrics": summary["metrics"],
        "units": summary["units"],
        "outcomes": {
            name: [stage["items"], stage["done"], stage["failures"]]
            for name, stage in summary["stages"].items()
        },
    }
