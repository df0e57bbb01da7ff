"""Processes that tests start."""

import os
import sys
from pathlib import Path


def lives(pid):
    """Whether a process is there and no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return sys.platform != "linux"
