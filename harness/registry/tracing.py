"""`HARNESS_TRACE_HOOKS=1` prints a line on standard error for each call of a plugin's hook."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from harness.base.redaction import safe_text

VARIABLE = "HARNESS_TRACE_HOOKS"
LONGEST = 300

Trace = Callable[[Any, str, object, str], None]
"""Gets the plugin, the hook, the argument and the result of a call."""


def tracer() -> Trace:
    """The function that traces calls of hooks; it does nothing unless VARIABLE is set."""
    return _print if os.environ.get(VARIABLE, "") not in ("", "0") else _ignore


def _print(plugin: Any, hook: str, argument: object, result: str) -> None:
    text = safe_text(argument if isinstance(argument, str) else repr(argument))
    line = f"hook: {plugin}, {hook}: {_short(text)}: {_short(safe_text(result))}"
    print("".join(one if one.isprintable() else " " for one in line), file=sys.stderr)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _ignore(_plugin: Any, _hook: str, _argument: object, _result: str) -> None:
    """Does nothing."""
