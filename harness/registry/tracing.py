"""`HARNESS_TRACE_HOOKS=1` prints a line on standard error for each call of a plugin's hook."""

from __future__ import annotations

import os
import sys
from typing import Any

from harness.base.redaction import safe_text

VARIABLE = "HARNESS_TRACE_HOOKS"
LONGEST = 300


def trace(plugin: Any, hook: str, argument: object, result: str) -> None:
    """Print a call of a plugin's hook with its argument and result, if VARIABLE is set."""
    if os.environ.get(VARIABLE, "") in ("", "0"):
        return
    text = safe_text(argument if isinstance(argument, str) else repr(argument))
    line = f"hook: {plugin}, {hook}: {_short(text)}: {_short(safe_text(result))}"
    print("".join(one if one.isprintable() else " " for one in line), file=sys.stderr)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
