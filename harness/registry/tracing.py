"""`HARNESS_TRACE_HOOKS=1`: a line on standard error for each call of a plugin's hook."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from harness.base.redaction import safe_text

VARIABLE = "HARNESS_TRACE_HOOKS"
LONGEST = 300

Trace = Callable[[Any, str, object, str], None]
"""Told of a call: the plugin, the hook, what it was called with, and what came of it."""


def tracer() -> Trace:
    """What is to be told of calls of hooks; tells nobody unless the environment asks for it."""
    return _print if os.environ.get(VARIABLE, "") not in ("", "0") else _nobody


def _print(plugin: Any, hook: str, about: object, said: str) -> None:
    shown = safe_text(about if isinstance(about, str) else repr(about))
    line = f"hook: {plugin}, {hook}: {_short(shown)}: {_short(safe_text(said))}"
    print("".join(one if one.isprintable() else " " for one in line), file=sys.stderr)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _nobody(_plugin: Any, _hook: str, _about: object, _said: str) -> None:
    """Tells nothing."""
