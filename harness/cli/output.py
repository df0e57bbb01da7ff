"""How every command prints: errors on standard error, JSON on standard output."""

from __future__ import annotations

import sys
from typing import Any


def print_error(error: object) -> None:
    """Print an error on standard error; servers' words in it cannot steer the terminal."""
    from harness.reporting.text import clean_text

    print(clean_text(f"harness: {error}", lines=True), file=sys.stderr)


def print_json(value: Any) -> None:
    """Print one value as a JSON document in ASCII: what models wrote cannot steer a terminal."""
    import json

    import msgspec

    json.dump(msgspec.to_builtins(value), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")
