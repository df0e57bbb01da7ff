"""The JSON Schemas of the result files; run it to write them: `make schemas`.

They are for readers in other languages. A test compares them with the types.
"""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import Any

import msgspec

import harness.runs
from harness.comparison.document import ComparisonDocument
from harness.runs.manifest import Manifest
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
        **clean(msgspec.json.schema(FILES[name])),
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def clean(schema: Any) -> Any:
    """The schema with its descriptions as every version of msgspec may have them."""
    if isinstance(schema, dict):
        return {
            name: cleandoc(value)
            if name == "description" and isinstance(value, str)
            else clean(value)
            for name, value in schema.items()
        }
    return [clean(one) for one in schema] if isinstance(schema, list) else schema


def schema_file(name: str) -> Path:
    """Path of the schema file of that name."""
    return Path(harness.runs.__file__).with_name(name)


def main() -> None:
    """Write every schema file."""
    for name in FILES:
        schema_file(name).write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
