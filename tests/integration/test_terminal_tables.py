"""Tables on a terminal of 80 columns: numbers are whole, and colours say nothing by themselves."""

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from builders.commands import Screen

from harness.cli.main import main

CODES = re.compile(r"\x1b\[([0-9;?]*)[A-Za-z]")
COLOURED = re.compile(r"(^|;)(3[0-8]|4[0-8]|9[0-7]|10[0-7])(;|$)")
BROKEN = re.compile(r"\[[-+]?[0-9][^\]]*$|[0-9]…|…[0-9]")
"""An interval that goes on in the next line, or a number of which something is left out."""

COMMANDS = (
    "show {old}", "show {old} --metrics", "show {old} --costs", "runs", "score {old}",
    "compare {old} {new}", "compare {old} {new} --verbose", "compare {old} {new} --by history",
    "compare {old} {new} --by history --gate usersum_movielens.qm>-0.5 --gate perrec_easy.ptc>0",
    "compare {old} --tasks perrec_easy_pairwise,perrec_easy_listwise", "analyse perrec {old} {new}",
    "list analyses", "tasks", "tasks perrec_easy_pairwise", "list models", "list judges",
    "list plugins", "data",
)  # fmt: skip
LONGER = re.compile(r" *harness show |run .*begun ")
"""Lines that are for copying, which a terminal breaks by itself."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("screen")


def shown(*words: str) -> str:
    screen = Screen()
    with redirect_stdout(screen), redirect_stderr(io.StringIO()):
        main(list(words))
    return screen.getvalue()


@pytest.fixture
def runs(folder, monkeypatch) -> dict[str, str]:
    """Two runs on samples, whose intervals have bounds below zero and some values none."""
    monkeypatch.chdir(folder)
    for name, value in (("COLUMNS", "80"), ("LINES", "50"), ("TERM", "xterm-256color"),
                        ("HARNESS_CACHE", str(folder / "store"))):  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name in ("old", "new"):
        if not (folder / f"{name}.json").exists():
            words = ["--model", "baseline", "--tasks", "perrec_easy,usersum_movielens", "--data",
                     "sample", "--limit", "12", "--name", name, "--json"]  # fmt: skip
            (folder / f"{name}.json").write_text(shown(*words), encoding="utf-8")
    return {"old": "old", "new": "new"}


@pytest.mark.parametrize("command", COMMANDS)
def test_numbers_are_whole_and_colours_say_nothing_by_themselves(runs, command, monkeypatch):
    words = command.format(**runs).split()
    coloured = shown(*words)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = shown(*words)
    assert CODES.sub("", coloured) == CODES.sub("", plain)
    assert not [code for code in CODES.findall(plain) if COLOURED.search(code)]
    lines = [line.rstrip() for line in CODES.sub("", plain).splitlines()]
    assert lines
    assert not [line for line in lines if BROKEN.search(line)]
    assert not [line for line in lines if len(line) > 80 and not LONGER.match(line)]
