"""One hash over everything in a task that shapes its result."""

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
"""The fields that shape a result; name, description, tags and files do not."""

SILENT: Mapping[str, Any] = {"required": True, "entries": None}
"""Keys of a table that are left out at these values, so that a task that does not use them has the
hash that it would have without them."""

SILENT_METHOD = "percentile"
"""The method of intervals that is left out likewise."""


def content_hash(
    task: Task,
    *,
    template_hashes: Mapping[str, str],
    stage_versions: Mapping[str, int],
    options: msgspec.Struct | None = None,
) -> str:
    """A key that is equal for tasks that do the same.

    With `options`, the typed ones: what a task is silent about then counts at its default.
    """
    parts: dict[str, Any] = {name: msgspec.to_builtins(getattr(task, name)) for name in SHAPING}
    del parts["data"]["folder"]  # where the data lies; what it held is told by its fingerprint
    for table in parts["data"]["tables"].values():
        for name, value in SILENT.items():
            if table[name] == value:
                del table[name]
    if parts["interval"]["method"] == SILENT_METHOD:
        del parts["interval"]["method"]
    if options is not None:
        parts["options"] = msgspec.to_builtins(options)
    return digest(
        {"task": parts, "templates": dict(template_hashes), "stages": dict(stage_versions)}
    )
