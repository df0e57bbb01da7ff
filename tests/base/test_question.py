"""Questions to the person at the terminal."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.base.question import agreed


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("answer", "said"),
    [("y\n", True), (" YES \n", True), ("\n", False), ("n\n", False), ("", False), ("yo\n", False)],
)
def test_only_yes_is_yes(monkeypatch, answer, said):
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", shown)
    assert agreed("remove it?") is said
    assert shown.getvalue() == "remove it? [y/N] "


@pytest.mark.parametrize("closed", ["stdin", "stderr"])
def test_without_a_terminal_nobody_is_asked(monkeypatch, closed):
    for stream in ("stdin", "stderr"):
        kind = io.StringIO if stream == closed else Terminal
        monkeypatch.setattr(sys, stream, kind("y\n"))
    assert agreed("remove it?") is None


def test_a_thread_asks_nobody(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    monkeypatch.setattr(sys, "stderr", shown)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(agreed, "remove it?").result() is None
    assert shown.getvalue() == ""
