"""The JSON Schemas of the result files; run it to write them: `make schemas`.

They are for readers in other languages. A test compares them with the types.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

import harness.runs
from harness.runs.manifest import Manifest
from harness.scoring.comparison_document import ComparisonDocument
from harness.scoring.summary import TaskSummary

FILES: dict[str, Any] = {
    "manifest.schema.json": Manifest,
    "summary.schema.json": TaskSummary,
    "comparison.schema.json": ComparisonDocument,
}


def schema_text(name: str) -> str:
    """The content that the schema file of that name must have."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(FILES[name]),
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def schema_file(name: str) -> Path:
    """Path of the schema file of that name."""
    return Path(harness.runs.__file__).with_name(name)


def main() -> None:
    """Write every schema file."""
    for name in FILES:
        schema_file(name).write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
