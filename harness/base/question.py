"""Questions to the person at the terminal."""

from __future__ import annotations

import sys
import threading


def agreed(question: str) -> bool | None:
    """Whether the person at the terminal says yes; None if there is nobody to ask.

    A thread asks nobody: what it works for may already have ended, or may be drawing.
    """
    here = threading.current_thread() is threading.main_thread()
    if not (here and sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
