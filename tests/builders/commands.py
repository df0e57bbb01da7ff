"""The harness command, called in the process of the tests, which is spared its start."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main


class Screen(StringIO):
    """What is printed on a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@dataclass
class Ended:
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)

    def ok(self) -> Ended:
        """Itself; a test of a command that should have ended well and did not fails here."""
        assert self.code == 0, self.err
        return self

    def summary(self, task: str = "interests") -> dict[str, Any]:
        return next(one for one in self.json["summaries"] if one["task"] == task)


def run_cli(*words: str, folder: Path, environment: Mapping[str, str] | None = None) -> Ended:
    """Run the command in a folder, with streams, environment and signal table of its own.

    What only a process shows is not shown here: pipes, what is imported at the start, a kill.
    """
    out, err = StringIO(), StringIO()
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with pytest.MonkeyPatch.context() as patch:
        if environment is not None:
            for name in os.environ.keys() - environment.keys():
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
        patch.chdir(folder)
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = main(words)
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)
    return Ended(code, out.getvalue(), err.getvalue())
