"""One step that reads all records of a large run again, in a process of its own."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from harness.registry import load_plugins
from harness.runs.journal import recorded
from harness.runs.manifest import read_manifest
from harness.runs.run_folder import RunFolder
from harness.scoring.score_run import score_into


def scoring(run: Path, processes: int | None) -> int:
    """Score the run once more."""
    folder = RunFolder(run)
    manifest = read_manifest(folder.manifest_file)
    task, benchmark = manifest.tasks["speed"].task(), load_plugins().benchmark("speed")
    score_into(folder.scores("speed"), folder, manifest, task, benchmark, processes=processes)
    return 0


def resuming(journal: Path) -> int:
    """Find what is recorded, as a stage does that goes on: the keys that were found."""
    with journal.open("rb") as file:
        key = json.loads(file.readline())["stage"]
    return len(recorded(journal, key))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", choices=("scoring", "resuming"), required=True)
    parser.add_argument("--processes", type=int, help="that score; by default as always")
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    [journal] = arguments.folder.glob("runs/*/*/1-answer.jsonl")
    if arguments.step == "scoring":
        print(scoring(journal.parents[1], arguments.processes))
    else:
        print(resuming(journal))
