"""The hash of everything in a task that affects its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.base.hashing import digest
from harness.contracts.task import Task

SHAPING = (
    "version",
    "benchmark",
    "data",
    "options",
    "roles",
    "stages",
    "metrics",
    "interval",
    "least_scored",
)
"""The fields that affect results; name, description, tags and files do not."""

UNHASHED: Mapping[str, Any] = {"required": True, "entries": None, "rows_at": None}
"""Keys of a table that are left out at these values, so that tasks that do not use the keys keep
their hashes."""

UNHASHED_COLUMN: Mapping[str, Any] = {"called": None, "values": {}}
"""Keys of a column that are left out at these values for the same reason."""

UNHASHED_FORMAT: Mapping[str, Any] = {
    "delimiter": None,
    "encoding": "utf-8",
    "surplus": "error",
}
"""Keys of `delimited` that are left out at these values for the same reason."""


def content_hash(
    task: Task,
    *,
    template_hashes: Mapping[str, str],
    stage_versions: Mapping[str, int],
    options: msgspec.Struct | None = None,
) -> str:
    """A hash that is equal for tasks with the same results.

    `options` are the typed options, in which missing ones have their defaults.
    """
    parts: dict[str, Any] = {name: msgspec.to_builtins(getattr(task, name)) for name in SHAPING}
    # The fingerprint of the data counts, not its place; only a data set of the hub is named.
    for name in ("folder", "known"):
        del parts["data"][name]
    sources = parts["data"].pop("sources")
    parts["data"]["hub"] = next((one["hub"] for one in sources if "hub" in one), None)
    for table in parts["data"]["tables"].values():
        _leave_out(table, UNHASHED)
        _leave_out(table["delimited"], UNHASHED_FORMAT)
        for column in table["columns"].values():
            _leave_out(column, UNHASHED_COLUMN)
    _leave_out(parts["interval"], {"method": "percentile"})
    if options is not None:
        parts["options"] = msgspec.to_builtins(options)
    return digest(
        {"task": parts, "templates": dict(template_hashes), "stages": dict(stage_versions)}
    )


def _leave_out(keys: dict[str, Any], unhashed: Mapping[str, Any]) -> None:
    for name, value in unhashed.items():
        if keys[name] == value:
            del keys[name]
