"""A part of the freeze, quick enough for every run of the tests; `make freeze` checks all of it."""

import runpy
import subprocess
import sys
from pathlib import Path

RECORD = Path(__file__).with_name("record.py")
PARTS = ["interests_repeats", "gist_structured", "perrec_short"]

BY_ARGPARSE = """\
usage: harness show [-h] [--seed N]
                    [RUN]

List the runs.

positional arguments:
  RUN                   the folder

options:
  -h, --help            show this help
                        message and exit
  --output_path DIR, --output-path DIR
                        where runs go (runs)
"""
BY_CLICK = """\
Usage: harness show [OPTIONS] [RUN]

  List the runs.

Positional arguments:
  RUN  the folder

Options:
  --output-path, --output_path DIR  where runs
                                    go  [default: runs]
  -h, --help                        show this help message and exit
"""


def test_a_page_gives_the_same_rows_in_either_layout() -> None:
    rows_of_page = runpy.run_path(str(RECORD.with_name("pages.py")))["rows_of_page"]
    by_argparse, by_click = rows_of_page(BY_ARGPARSE), rows_of_page(BY_CLICK)
    assert sorted(map(str, by_argparse)) == sorted(map(str, by_click))
    assert by_argparse[2] == {
        "option": "--output-path --output_path",
        "takes": "DIR",
        "section": "options",
        "help": "where runs go (runs)",
        "default": "runs",
    }
    assert len(by_argparse) == 4


def test_three_runs_are_as_they_were_recorded(tmp_path: Path) -> None:
    check = [sys.executable, str(RECORD), "--check", "--work", str(tmp_path), "--only", *PARTS]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same as recorded: 9 files" in done.stdout
