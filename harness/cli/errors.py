"""How every command tells what went wrong."""

from __future__ import annotations

import sys


def print_error(error: object) -> None:
    """Tell a person, on standard error; servers' words in it cannot steer the terminal."""
    from harness.reporting.text import clean_text

    print(clean_text(f"harness: {error}", lines=True), file=sys.stderr)
