"""What a person sees: a live picture on a terminal, plain lines in a pipe, what was asked for."""

import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.testing.faults import SILENCE

ESC = "\x1b"
HIDE, SHOW = f"{ESC}[?25l", f"{ESC}[?25h"
SETTINGS_OF_TERMINALS = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE")


class Terminal:
    """A process whose three streams are one terminal of 120 columns, and what it wrote there."""

    def __init__(self, arguments: list[str], *, cwd: Path, env: dict[str, str]) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        kept = {name: value for name, value in env.items() if name not in SETTINGS_OF_TERMINALS}
        self.process = subprocess.Popen(
            arguments, cwd=cwd, env={**kept, "TERM": "xterm-256color"},
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self._written = b""

    @property
    def text(self) -> str:
        return self._written.decode("utf-8", "replace")

    def read_until(self, seen: str, *, timeout: float = 60) -> None:
        """Read on until a line holds that; a test that waits in vain fails here."""
        end = time.monotonic() + timeout
        while not any(seen in line for line in plain(self.text)):
            assert self._read(end), f"not seen: {seen!r}"

    def read_while(self, holds: Callable[[], bool], *, timeout: float = 60) -> None:
        """Read on while this holds: a command whose terminal nobody reads stands still."""
        end = time.monotonic() + timeout
        while holds():
            assert self._read(end), "it ended"

    def ended(self, *, timeout: float = 60) -> int:
        """Read all that the process writes until it ends; its exit code."""
        end = time.monotonic() + timeout
        while self._read(end):
            pass
        return self.process.wait(timeout=10)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    def _read(self, end: float) -> bool:
        readable, _, _ = select.select([self._ours], [], [], max(0.0, end - time.monotonic()))
        assert readable, f"nothing more was written after {self.text[-2000:]!r}"
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:  # what Linux says when the other side is closed
            data = b""
        self._written += data
        return bool(data)


@pytest.fixture
def terminal(harness):
    """Start the command under a terminal."""
    started = []

    def start(*arguments: str) -> Terminal:
        command = [sys.executable, "-m", "harness", *arguments]
        started.append(Terminal(command, cwd=harness.folder, env=harness.environment))
        return started[-1]

    yield start
    for one in started:
        one.close()


def plain(text: str) -> list[str]:
    """The lines without what colours them and moves the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "").split("\n")


def asked(harness, *more: str) -> list[str]:
    """The arguments of a run against the server, without `--json`."""
    return [one for one in harness.arguments(*more) if one != "--json"]


def assert_cursor_is_back(text: str) -> None:
    assert HIDE in text
    assert text.rindex(SHOW) > text.rindex(HIDE)


def screen(text: str) -> list[str]:
    """The lines that a terminal shows in the end, where a line once erased is gone."""
    lines = [""]
    for part in re.split(r"(\n|\x1b\[1A|\x1b\[2K)", re.sub(r"\x1b\[[0-9;?]*[mhl]", "", text)):
        if part == "\n":
            lines.append("")
        elif part == f"{ESC}[1A":
            lines.pop()
        elif part == f"{ESC}[2K":
            lines[-1] = ""
        else:
            lines[-1] += part.replace("\r", "")
    return lines


def test_the_picture_is_drawn_over_itself_while_the_run_goes_on(terminal, harness, serve):
    serve(harness, latency=0.3)
    prices = harness.folder / "prices.toml"
    prices.write_text('[prices]\n"openai:*" = {input = 1, output = 1}\n')
    money = ("--prices", str(prices), "--max_cost", "5")
    shown = terminal(*asked(harness, "--concurrency", "10", *money)[3:])
    assert shown.ended() == 0
    lines = plain(shown.text)
    rows = [line for line in lines if line.startswith("▸ interests/name ")]
    done = [int(row[: -len("/40")].split()[-1]) for row in rows if row.endswith("/40")]
    assert done == sorted(done) and len(set(done)) > 1
    assert any(
        re.match(r"━+─+  at least 0:\d\d left, \d+ of at least 40 items, ", one) for one in lines
    )
    assert any(re.match(r"paid 0\.\d+ of 5\.00 USD, \d+ calls, tokens ", one) for one in lines)
    assert_cursor_is_back(shown.text)
    left = screen(shown.text)
    assert not any("▸" in line or " so far" in line for line in left)
    assert left[0].startswith("candidate-model"), "the result stands alone"
    assert left[-2].startswith("run folder: runs/")


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupted_run_gives_the_terminal_back(terminal, harness, serve, times):
    server = serve(harness, latency=0.5, faults=lambda _: SILENCE if times == 2 else None)
    shown = terminal(*asked(harness, "--concurrency", "4")[3:])
    shown.read_while(lambda: server.count < 4)
    shown.read_until("▸ interests/name")
    shown.process.send_signal(signal.SIGINT)
    shown.read_until("finishing the calls in flight; press Ctrl-C again")
    if times == 2:
        shown.process.send_signal(signal.SIGINT)
    assert shown.ended() == 130
    assert_cursor_is_back(shown.text)
    if times == 1:
        left = screen(shown.text)
        assert left[0].startswith("finishing the calls in flight")
        assert not any("interests/name" in line for line in left)
        assert any("the same command resumes" in line for line in left)


def test_json_is_one_document_even_where_too_many_fell_out(harness, serve):
    serve(harness, answer=lambda body: "I would rather not say.")
    done = harness.run("--max_failures", "parsing=0.1")
    assert done.code == 3
    document = json.loads(done.out)
    assert (document["status"], document["exit_code"]) == ("too_many_failures", 3)
    assert document["summaries"] == []
    assert "too many items failed" in document["errors"][0]
    assert "too many items failed" in done.err
    assert "candidate-model: 2 stages" not in done.err
