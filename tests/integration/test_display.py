"""What a person sees: a live table on a terminal, plain lines in a pipe, and what was asked for."""

from __future__ import annotations

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
from pathlib import Path

import pytest

from harness.testing.faults import SILENCE

DEMO = ("--model", "baseline", "--judge", "lexical", "--tasks", "interests", "--data", "sample")
ESC = "\x1b"
HIDE, SHOW = f"{ESC}[?25l", f"{ESC}[?25h"
PEOPLE = 40
SIZE = struct.pack("HHHH", 40, 120, 0, 0)
SETTINGS_OF_TERMINALS = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE")


class Terminal:
    """A process whose three streams are one terminal of 120 columns, and what it wrote there."""

    def __init__(self, arguments: list[str], *, cwd: Path, env: dict[str, str]) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, SIZE)
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


def test_the_demo_shows_a_live_table_and_leaves_the_terminal_whole(terminal):
    shown = terminal(*DEMO)
    assert shown.ended() == 0
    assert_cursor_is_back(shown.text)
    last = plain(shown.text)
    name = next(line for line in reversed(last) if "interests/name" in line)
    support = next(line for line in reversed(last) if "interests/support" in line)
    assert re.match(r"✓ interests/name +━+ +40/40 +40 ", name)
    done, total = re.search(r"━ +(\d+)/(\d+) ", support).groups()
    assert done == total and int(total) > PEOPLE
    assert any(line.startswith("task ") for line in last), "results follow below the picture"
    assert last[-2].startswith("run folder: runs/")


def test_the_table_is_drawn_over_itself_while_the_run_goes_on(terminal, harness, serve):
    serve(harness, latency=0.3)
    shown = terminal(*asked(harness, "--concurrency", "10")[3:])
    assert shown.ended() == 0
    pictures = shown.text.count("interests/name")
    assert pictures > 2
    # The cursor stands in the last of five lines: head, names, two stages, foot.
    assert shown.text.count(f"{ESC}[1A") == 4 * (pictures - 1)
    rows = [line for line in plain(shown.text) if "interests/name" in line]
    done = [int(re.search(r"(\d+)/40", row)[1]) for row in rows if "/40" in row]
    assert done == sorted(done) and done[-1] == PEOPLE and len(set(done)) > 1


def test_an_interrupted_run_gives_the_terminal_back(terminal, harness, serve):
    server = serve(harness, latency=0.5)
    shown = terminal(*asked(harness, "--concurrency", "4")[3:])
    harness.wait_until(lambda: server.count >= 4)
    shown.read_until("▸ interests/name")
    shown.process.send_signal(signal.SIGINT)
    shown.read_until("finishing the calls in flight")
    assert shown.ended() == 130
    assert_cursor_is_back(shown.text)
    lines = plain(shown.text)
    assert any(line.startswith("✗ interests/name") for line in lines)
    assert any("the same command resumes" in line for line in lines)


def test_a_run_that_is_stopped_at_once_gives_the_terminal_back(terminal, harness, serve):
    server = serve(harness, faults=lambda _: SILENCE)
    shown = terminal(*asked(harness, "--concurrency", "4")[3:])
    harness.wait_until(lambda: server.count >= 4)
    shown.process.send_signal(signal.SIGINT)
    shown.read_until("finishing the calls in flight; press Ctrl-C again")
    shown.process.send_signal(signal.SIGINT)
    assert shown.ended() == 130
    assert_cursor_is_back(shown.text)


def test_a_pipe_gets_plain_lines(harness, serve):
    serve(harness, latency=0.3)
    done = harness.command(asked(harness, "--concurrency", "20")).ok()
    assert ESC not in done.out + done.err
    assert "\r" not in done.out + done.err
    lines = done.err.splitlines()
    assert re.fullmatch(r"candidate-model: 2 stages in runs/\S+", lines[0])
    assert lines[1] == "interests/name: started"
    assert re.match(
        r"interests/name: 40 done in \S+ ?\S*; 40 calls \(0% from the store\)", lines[2]
    )
    assert lines[3] == "interests/support: started"
    assert lines[4].startswith("interests/support: ")
    assert re.fullmatch(r"run folder: runs/\S+", lines[5])
    assert len(lines) == 6
    assert done.out.startswith("candidate-model, without thinking; judge: judge-model\ntask ")


def test_quiet_shows_results_and_no_stage(harness):
    done = harness.command([sys.executable, "-m", "harness", *DEMO, "--quiet"])
    assert done.code == 0
    assert re.fullmatch(r"run folder: runs/\S+\n", done.err)
    assert "not comparable to published: bundled sample data" in done.out
    assert "support" in done.out


def test_quiet_holds_on_a_terminal_as_well(terminal):
    shown = terminal(*DEMO, "--quiet")
    assert shown.ended() == 0
    assert HIDE not in shown.text
    assert not any("interests/name" in line for line in plain(shown.text))


def test_json_is_one_document_even_where_too_many_fell_out(harness, serve):
    serve(harness, answer=lambda body: "I would rather not say.")
    done = harness.run("--max_failures", "parsing=0.1")
    assert done.code == 3
    document = json.loads(done.out)
    assert (document["status"], document["exit_code"]) == ("too_many_failures", 3)
    assert document["summaries"] == []
    assert "too many items failed" in document["errors"][0]
    assert "too many items failed" in done.err
    assert "interests/name: started" not in done.err


def test_json_on_a_terminal_draws_nothing(terminal):
    shown = terminal(*DEMO, "--json")
    assert shown.ended() == 0
    assert ESC not in shown.text
    assert json.loads(shown.text)["status"] == "done"
