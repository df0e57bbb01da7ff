"""`harness leaderboard DIR -o SITE`: static pages from many runs; calls no model."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import DataError, HarnessError
from harness.cli.command import PATH, argument, command, option
from harness.cli.kept_runs import Opened, has_tags, kept_runs, tag_option
from harness.cli.run_options import tags_from
from harness.reporting.text import clean_text
from harness.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from harness.scoring.finished_task import FinishedTask


@command(
    "harness leaderboard runs -o site",
    "harness leaderboard runs --tag suite=nightly -o site",
)
@argument("folder", metavar="DIR", type=PATH, help="the folder of runs")
@option("--output", "-o", metavar="SITE", type=PATH, required=True, help="the folder of the pages")
@tag_option()
def leaderboard(folder: Path, output: Path, tag: tuple[str, ...]) -> int:
    """Write a page for each task of these runs, and one over all: ranks as intervals of ranks, and
    the history of each model. Runs that cannot stand together are on different pages. No model is
    called, and no run is changed.
    """
    from harness.analysis.leaderboard import leaderboard as boards_of
    from harness.reporting.leaderboard_files import write_site

    tasks, left_out = _tasks(folder, tags_from(tag))
    if not tasks:
        raise DataError(
            "no run here has a finished task",
            where=str(folder),
            found="; ".join(f"{name}: {why}" for name, why in left_out.items()) or None,
            expected="a folder of runs, such as `runs`",
        )
    found = boards_of(tasks, left_out=left_out)
    for path in write_site(output, found):
        print(clean_text(str(path)))
    for name, why in found.left_out.items():
        print(clean_text(f"left out: {name}: {why.partition(chr(10))[0]}"), file=sys.stderr)
    return 0


def _tasks(folder: Path, tags: Mapping[str, str]) -> tuple[list[FinishedTask], dict[str, str]]:
    """The finished tasks of the runs with these tags, and by run the reason why others are not."""
    from harness.registry import load_plugins
    from harness.scoring.finished_task import finished_task, labels_of

    every = kept_runs(folder)
    kept = [one for one in every if has_tags(one[1], tags)]
    labels = labels_of(manifest for _, manifest in kept)
    originals = _originals(kept)
    tasks: list[FinishedTask] = []
    left_out = dict(_unreadable(folder, {run.path for run, _ in every}))
    for run, manifest in kept:
        original = originals[manifest.run_id, manifest.token]
        if original is not run:
            left_out[run.path.name] = f"a copy of {original.path.name}, and a run counts once"
            continue
        for name, entry in manifest.tasks.items():
            try:
                benchmark = load_plugins().benchmark(entry.task().benchmark)
                label = labels[manifest.run_id]
                tasks.append(finished_task(run, manifest, name, benchmark, label=label))
            except HarnessError as error:
                left_out[f"{manifest.run_id}, {name}"] = error.problem
    return tasks, left_out


def _originals(kept: Iterable[Opened]) -> dict[tuple[str, str], RunFolder]:
    """By run the folder that stands for all copies of it: the one with the most finished tasks."""

    def worth(one: Opened) -> tuple[int, bool, str]:
        folder, manifest = one
        finished = sum(folder.summary(task).exists() for task in manifest.tasks)
        return -finished, folder.path.name != manifest.run_id, folder.path.name

    found: dict[tuple[str, str], RunFolder] = {}
    for folder, manifest in sorted(kept, key=worth):
        found.setdefault((manifest.run_id, manifest.token), folder)
    return found


def _unreadable(folder: Path, readable: Collection[Path]) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        run = RunFolder(path)
        if path not in readable and run.manifest_file.exists():
            try:
                run.manifest()
            except HarnessError as error:
                yield path.name, error.problem
