"""The check of damaged data: a benchmark reads it, or says which file is wrong."""

from __future__ import annotations

import gzip
import re
import shutil
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.base.errors import HarnessError
from harness.contracts.task import Task
from harness.testing.trial import Finding, SampleRuns

Damage = Callable[[list[bytes]], bytes]
"""The content of a file after the damage; given are its lines."""


def _in_the_middle(change: Callable[[bytes], bytes]) -> Damage:
    def changed(lines: list[bytes]) -> bytes:
        middle = len(lines) // 2
        return b"".join(change(row) if at == middle else row for at, row in enumerate(lines))

    return changed


DAMAGES: dict[str, Damage] = {
    "is empty": lambda lines: b"",
    "ends within a row": lambda lines: b"".join(lines)[: -max(2, len(lines[-1]) // 2)],
    "has a row with words for numbers": _in_the_middle(lambda row: re.sub(rb"\d+", b"many", row)),
    "has a row with half of its values": _in_the_middle(lambda row: row[: len(row) // 2] + b"\n"),
    "has a row that is no text": _in_the_middle(lambda row: row[:1] + b"\xff\xfe\x00" + row[1:]),
}


def rows(trial: SampleRuns) -> Iterator[Finding]:
    """Damaged data is read or is an error that names its file."""
    seen: set[Path] = set()
    for task in trial.tasks:
        sample, folder = trial.sample(task), trial.folder / "rows" / task.name
        if sample in seen:
            continue
        seen.add(sample)
        for file, what in _damaged_copies(sample, folder):
            if problem := _problem_of(trial, task, folder):
                yield Finding(
                    f"{task.name}, where {file.relative_to(folder)} {what}", problem,
                    "declare the types of the columns in the task, and raise DataError for what "
                    "they do not say",
                )  # fmt: skip


def _damaged_copies(sample: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """A copy of a sample in `folder` for each file and damage, in place of the one before."""
    root = sample if sample.is_dir() else sample.parent
    for file in sorted(path for path in sample.rglob("*") if path.is_file()) or [sample]:
        packed = file.suffix == ".gz"
        whole = gzip.decompress(file.read_bytes()) if packed else file.read_bytes()
        for what, damage in DAMAGES.items():
            shutil.rmtree(folder, ignore_errors=True)
            if sample.is_dir():
                shutil.copytree(sample, folder)
            else:
                folder.mkdir(parents=True)
            damaged = damage(whole.splitlines(keepends=True))
            copy = folder / file.relative_to(root)
            copy.write_bytes(gzip.compress(damaged) if packed else damaged)
            yield copy, what


def _problem_of(trial: SampleRuns, task: Task, folder: Path) -> str | None:
    """What is wrong with how a task's benchmark loads a folder, if anything is."""
    try:
        trial.load(task, data=str(folder))
    except HarnessError as error:
        return None if str(folder) in str(error) else f"an error without a file: {error}"
    except Exception:  # foreign code: the other files are still damaged
        return traceback.format_exc().strip()
    return None
