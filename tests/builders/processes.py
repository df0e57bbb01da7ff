"""Processes that tests start."""

import os
import subprocess
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


def run_python(code: str, *arguments: object, **environment: str) -> str:
    """What a Python process prints that must end well; `environment` is added to ours."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
