"""JSON on standard output, safe to look at in a terminal."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec


def print_json(value: Any) -> None:
    """Print one value as a JSON document in ASCII: what models wrote cannot steer a terminal."""
    json.dump(msgspec.to_builtins(value), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")
