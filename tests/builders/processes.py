"""Processes that tests start."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from simulated.kept import replies_in


def questions_saved(run, server):
    """The digests of the questions whose replies the folder of a run that was killed holds."""
    answers = [saved["answer"] for saved in replies_in(run / "answers.sqlite")]
    numbers = {int(one["reply"]["id"].rpartition("-")[2]) for one in answers if one["reply"]}
    return {one.digest for one in list(server.asked) if one.number in numbers}


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


def wait_until(true: Callable[[], object], seconds: float = 240.0) -> None:
    """Wait until this is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def run_python(code: str, *arguments: object, **environment: str) -> str:
    """What a Python process prints that must end well; `environment` is added to ours."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_here(code: str, *arguments: object) -> str:
    """What the same code prints in this process, which has another hash seed."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out:
        patch.setattr(sys, "argv", ["-c", *map(str, arguments)])
        exec(code, {})
    return out.getvalue()
