"""A part of the freeze, quick enough for every run of the tests; `make freeze` checks all of it."""

import subprocess
import sys
from pathlib import Path

import pytest

RECORD = Path(__file__).with_name("record.py")
PARTS = ["interests_repeats", "gist_structured", "perrec_short"]


@pytest.mark.slow
def test_three_runs_are_as_they_were_recorded(tmp_path: Path) -> None:
    check = [sys.executable, str(RECORD), "--check", "--work", str(tmp_path), "--only", *PARTS]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same as recorded: 9 files" in done.stdout
