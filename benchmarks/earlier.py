"""The processor time of this checkout beside an earlier commit's, both as wheels, run in turns."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import table
from measure import HERE, ContenderFailed, run_measured

ROOT = HERE.parent
COMMIT = "e71c4119"
MOST = 1.05
"""How many times the earlier processor time a load may take."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The processor seconds of one load, with the earlier code and with this."""

    load: str
    number: int
    before: float
    now: float


def add_options(add: Callable[..., Any]) -> None:
    """The options of this part; `add` is a parser's."""
    add("--since", default=COMMIT, metavar="COMMIT", help="what `earlier` compares with")
    add("--pairs", type=int, default=9, help="how often `earlier` runs each load with both")


def wheels(since: str, folder: Path) -> dict[str, Path]:
    """Where the wheels of an earlier commit and of this checkout are installed, made anew.

    This checkout is a wheel too, so that both start alike: a checkout asks git for its commit.
    SystemExit if the commit is missing, or what builds and installs a wheel.
    """
    if not (commit := _git("rev-parse", "--verify", "--quiet", f"{since}^{{commit}}")):
        sys.exit(
            f"earlier: git knows no commit {since} in {ROOT}\n"
            "  expected: a clone with its history, and git\n"
            "  to do:    git fetch --unshallow; or name another commit with --since"
        )
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "source"
    source.mkdir(parents=True)
    files = _git("archive", commit.decode().strip())
    subprocess.run(["tar", "-x", "-C", str(source)], input=files, check=True)
    installed = {}
    for way, code in (("before", source), ("now", ROOT)):
        installed[way], built = folder / way, folder / f"{way}-wheel"
        build = ["build", "--wheel", "--no-isolation", "--outdir", str(built), str(code)]
        install = ["pip", "install", "--no-index", "--no-deps", "--target", str(installed[way])]
        try:
            run_measured([sys.executable, "-m", *build], log=folder / "log")
            made = map(str, built.iterdir())
            run_measured([sys.executable, "-m", *install, *made], log=folder / "log")
        except ContenderFailed as error:
            sys.exit(
                f"earlier: the wheel of {code} cannot be made\n"
                f"  found:    {error}\n"
                "  expected: pip, build and hatchling, as in an environment of `make test`"
            )
    return installed


def _git(*words: str) -> bytes:
    """What git prints about this checkout; nothing where it fails or is not installed."""
    command = ["git", "-C", str(ROOT), *words]
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout
    except FileNotFoundError:
        return b""


def measure(
    loads: Mapping[str, Callable[[Path], Sequence[str]]],
    installed: Mapping[str, Path],
    *,
    pairs: int,
    scratch: Path,
) -> list[Pair]:
    """All pairs of all loads, whose commands get a fresh folder; the order changes with each pair.

    SystemExit if a run fails: half of a comparison says nothing.
    """
    found = []
    for number in range(1, pairs + 1):
        for load, command in loads.items():
            seconds = {}
            for way in sorted(installed, reverse=number % 2 == 0):
                folder = scratch / f"{number}-{load}-{way}"
                folder.mkdir(parents=True)
                paths = {"PYTHONPATH": f"{installed[way]}{os.pathsep}{HERE / 'plugin'}"}
                try:
                    cost = run_measured(command(folder), log=folder / "log", environment=paths)
                except ContenderFailed as error:
                    sys.exit(f"earlier: {load} failed with the wheel `{way}`\n{error}")
                seconds[way] = cost.cpu
                shutil.rmtree(folder)
            found.append(Pair(load=load, number=number, **seconds))
            print(f"  pair {number}  {load}: {_ratio(found[-1:]):.3f}", file=sys.stderr)
    return found


def _by_load(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    loads = dict.fromkeys(pair.load for pair in pairs)
    return {load: [pair for pair in pairs if pair.load == load] for load in loads}


def _ratio(pairs: Sequence[Pair]) -> float:
    """The median of the pairs' ratios: what slows the machine for a while slows both of a pair."""
    return statistics.median(pair.now / pair.before for pair in pairs)


def promises(pairs: Sequence[Pair]) -> list[table.Promise]:
    """That no load takes much more processor time than before."""
    return [
        table.Promise(
            what=f"CPU of {load}, times that before",
            promised=MOST,
            measured=_ratio(these),
            at_least=False,
        )
        for load, these in _by_load(pairs).items()
    ]


def render(pairs: Sequence[Pair]) -> str:
    """The medians of each load, and the median, lowest and highest ratio of its pairs."""
    titles = ("load", "pairs", "CPU s before", "CPU s now", "now / before", "lowest", "highest")
    rows = []
    for load, these in _by_load(pairs).items():
        before = statistics.median(pair.before for pair in these)
        now = statistics.median(pair.now for pair in these)
        each = [pair.now / pair.before for pair in these]
        figures = (before, now, _ratio(these), min(each), max(each))
        rows.append((load, f"{len(these)}", *(f"{figure:.3f}" for figure in figures)))
    return table.columns(titles, rows)
