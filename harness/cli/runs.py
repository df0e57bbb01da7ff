"""`harness runs`: lists the kept runs, and removes those that are not needed any more."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import DataError, HarnessError, UsageError
from harness.base.question import agreed
from harness.cli.command import command, json_option, option
from harness.cli.kept_runs import (
    Opened,
    default_folder,
    folder_option,
    has_tags,
    kept_runs,
    tag_option,
)
from harness.cli.output import print_error, print_json
from harness.reporting.text import clean_text, counted
from harness.runs.manifest import Manifest
from harness.runs.run_folder import BATCHES, RunFolder

if TYPE_CHECKING:
    from harness.scoring.run_list import ListedRun, Listing

WHICH = re.compile(r"failed|older=(?P<days>\d+)d|all_but=(?P<newest>\d+)")


@command(
    "harness runs",
    "harness runs --tag week=47",
    "harness runs --clean failed",
    "harness runs --clean older=30d --yes",
)
@folder_option
@tag_option()
@option(
    "--clean", metavar="WHICH",
    help="remove runs, after a question: failed (those that kept no record and no answer), "
    "older=30d, or all_but=20 (the newest)",
)  # fmt: skip
@option("--yes", is_flag=True, help="with --clean: remove without a question")
@json_option
def runs(
    output_path: Path | None, tag: Mapping[str, str], clean: str | None, yes: bool, json: bool
) -> int:
    """List the runs, the newest first, or remove some of them (--clean)."""
    place = _place(output_path)
    if clean is not None and json:
        raise UsageError("--clean cannot be combined with --json")
    if clean is not None:
        return _clean(place, tag, clean, yes=yes)
    if yes:
        raise UsageError("--yes needs --clean", expected="harness runs --clean failed --yes")
    from harness.scoring.run_list import list_runs

    listing = list_runs(place, tag)
    if json:
        print_json(listing)
    else:
        _print(listing)
    return 0


def _print(listing: Listing) -> None:
    """Print a row for each run, then the folders that are no runs."""
    from harness.contracts.report import Report, Sheet
    from harness.reporting.grid import print_report

    if listing.runs:
        title = f"{counted(len(listing.runs), 'run')} in {listing.folder}, newest first"
        columns = ("run", "model", "tags", "tasks", "first result", "state")
        rows = tuple(map(_row, listing.runs))
        print_report(Report(sheets=(Sheet(title=title, columns=columns, rows=rows),)))
        print("`harness show RUN` shows one in full")
    else:
        print(clean_text(f"no runs in {listing.folder}"))
    for one in listing.damaged:
        print(clean_text(f"cannot be read: {one.because}", lines=True))
    for one in listing.others:
        print(clean_text(f"no run: {one.folder}: {one.because}"))


def _row(run: ListedRun) -> tuple[str, ...]:
    from harness.reporting.run_lines import status_text
    from harness.reporting.text import number

    state = status_text(run.status, run.at_work)
    problems = filter(None, [run.problem, *(task.problem for task in run.tasks)])
    if run.at_work is not False:
        state += f": {_progress(RunFolder(Path(run.folder)))}"
    elif problem := next(problems, None):
        state += f": {problem.splitlines()[0]}"
    done, many = [task for task in run.tasks if task.scored], len(run.tasks)
    finished = f"{many:,}" if len(done) == many else f"{len(done):,} of {many:,}"
    result = ""
    if first := next((task for task in done if task.metric is not None), None):
        arrow = "↑" if first.higher_is_better else "↓"
        result = f"{first.task} {first.metric} {arrow} {number(first.value)}"
    return (
        run.run,
        run.model,
        ", ".join(f"{name}={value}" for name, value in run.tags.items()),
        finished if run.limit is None else f"{finished}, limit {run.limit}",
        result,
        state,
    )


def _progress(folder: RunFolder) -> str:
    """The stage that a living run works at, and how many records it has."""
    manifest = folder.manifest()
    for name, entry in manifest.tasks.items():
        for stage in entry.stages:
            file = folder.path / entry.folder / stage.file
            if stage.items is None:
                with suppress(OSError), file.open("rb") as lines:
                    return f"{name}/{stage.name}, {counted(sum(1 for _ in lines), 'record')}"
                return f"{name}/{stage.name}"
    return "scoring"


def _place(output_path: Path | None) -> Path:
    if output_path is not None and not output_path.is_dir():
        raise DataError("this folder does not exist", where="--output_path", found=str(output_path))
    return output_path or default_folder()


def _clean(place: Path, tags: Mapping[str, str], which: str, *, yes: bool) -> int:
    chosen = _chosen(which, [one for one in kept_runs(place) if has_tags(one[1], tags)])
    if not chosen:
        print("no run to remove")
        return 0
    for folder, manifest in chosen:
        print(clean_text(f"{folder.path}  {manifest.label}, {manifest.status}"))
    question = f"remove {'this run' if len(chosen) == 1 else f'these {len(chosen):,} runs'}?"
    if not yes:
        answer = agreed(question)
        if answer is None:
            raise UsageError(
                "nothing was removed: --clean asks first, and there is no terminal to answer",
                expected="--yes",
            )
        if not answer:
            print("nothing was removed")
            return 0
    kept = 0
    for folder, manifest in chosen:
        try:
            folder.lock()
            # No other process may hold it, or have resumed it.
            if folder.manifest() != manifest:
                raise HarnessError("the run has changed since it was listed")
            shutil.rmtree(folder.path)
        except (HarnessError, OSError) as error:
            print_error(f"{folder.path} is not removed: {error}")
            kept += 1
        finally:
            folder.unlock()
    print(f"{len(chosen) - kept:,} removed")
    return 1 if kept else 0


def _chosen(which: str, kept: Sequence[Opened]) -> list[Opened]:
    """The runs to remove, without those that may be at work; `kept` has the newest first."""
    meant = WHICH.fullmatch(which)
    if meant is None:
        raise UsageError(
            "--clean does not name runs", found=which, expected="failed, older=30d or all_but=20"
        )
    if meant["days"]:
        first = datetime.now(UTC) - timedelta(days=min(int(meant["days"]), 99_999))
        chosen = [one for one in kept if _ended(one[1]) < first]
    elif meant["newest"]:
        # A batch that was paid for may still bring answers.
        chosen = [one for one in kept[int(meant["newest"]) :] if not _has_batches(*one)]
    else:
        chosen = [one for one in kept if _failed_at_start(*one)]
    return [
        (folder, manifest)
        for folder, manifest in chosen
        if manifest.status != "running" or folder.at_work() is False
    ]


def _ended(manifest: Manifest) -> datetime:
    """The end of the run's last session, or its start if it was killed."""
    if not manifest.sessions:
        return datetime.now(UTC)
    last = manifest.sessions[-1]
    return datetime.fromisoformat(last.ended or last.started)


def _has_batches(folder: RunFolder, manifest: Manifest) -> bool:
    return manifest.status != "done" and (folder.path / BATCHES).exists()


def _failed_at_start(folder: RunFolder, manifest: Manifest) -> bool:
    """Whether a run ended without any record, score, batch or answer."""
    if manifest.status == "done" or _has_batches(folder, manifest):
        return False
    files = folder.path.glob("*/*.jsonl")
    if any(file.exists() and file.stat().st_size for file in files):
        return False
    if not folder.own_answers.exists():
        return True
    address = f"{folder.own_answers.resolve().as_uri()}?mode=ro"
    try:
        with sqlite3.connect(address, uri=True) as opened:
            return opened.execute("SELECT 1 FROM replies LIMIT 1").fetchone() is None
    except sqlite3.Error:
        return False
