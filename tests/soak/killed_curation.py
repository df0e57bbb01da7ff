"""A curation that is killed again and again ends in the same bytes as one that is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random
from time import monotonic, sleep

from samples.horizon import SAMPLE

KILLS = 10


def command(out: Path) -> list[str]:
    """The command that curates the sample, in parts."""
    folders = (f"--{name}={SAMPLE / name}" for name in ("reviews", "meta"))
    more = ("--out", str(out), "--partitions", "40", "--memory", "2GB")
    return [sys.executable, "-m", "harness", "data", "horizon", *folders, *more]


def contents(out: Path) -> dict[str, bytes]:
    """All files with their bytes."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file()
    }


def test_a_build_that_is_killed_ten_times_ends_in_the_same_bytes(tmp_path):
    started = monotonic()
    subprocess.run(command(tmp_path / "whole"), check=True, capture_output=True)
    whole = monotonic() - started
    rng = Random(18)
    for kill in range(KILLS):
        # The further a build has come, the less of it is left.
        with subprocess.Popen(command(tmp_path / "killed"), stderr=subprocess.DEVNULL) as process:
            sleep((0.1 + 0.9 * rng.random()) * whole / (1 + kill % 4))
            process.kill()
    subprocess.run(command(tmp_path / "killed"), check=True, capture_output=True)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    assert not (tmp_path / "killed" / "work").exists()
