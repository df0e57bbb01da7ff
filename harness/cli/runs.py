"""The runs that commands name, and `harness runs`, which lists and removes them."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import DataError, HarnessError, UsageError, did_you_mean, one_of
from harness.base.question import agreed
from harness.cli.command import (
    PATH,
    argument,
    command,
    errors_to,
    json_option,
    option,
    print_error,
    print_json,
)
from harness.cli.run_options import run_setting
from harness.cli.settings import entries
from harness.pipeline.settings import LATEST
from harness.registry import ANY_BENCHMARK, load_plugins
from harness.reporting.text import clean_text, counted, number
from harness.runs.manifest import Manifest
from harness.runs.run_folder import BATCHES, RunFolder

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark
    from harness.scoring.finished_task import FinishedTask
    from harness.scoring.run_list import ListedRun, Listing


Opened = tuple[RunFolder, Manifest]

MOST_LISTED = 10

runs_argument = argument(
    "runs", metavar="RUN", nargs=-1, candidates="runs", help="the folder or name of a run"
)
folder_option = option(
    "--output_path", metavar="DIR", type=PATH,
    help="the folder of runs, if not the one in the settings or the default",
)  # fmt: skip
tag_option = partial(
    option, "--tag", metavar="KEY=VALUE", multiple=True,
    callback=lambda ctx, param, texts: entries("tag", texts or ()),
    help="only runs with this tag; may be given again",
)  # fmt: skip
task_option = option("--task", metavar="TASK", help="this task only")
set_option = option(
    "--set", "changes", metavar="KEY=VALUE", multiple=True,
    callback=lambda ctx, param, texts: entries("set", texts or ()),
    help="change an option that only scoring reads; no run is changed",
)  # fmt: skip


def default_folder() -> Path:
    """The folder of runs from the settings, or the default."""
    folder: Path = run_setting("output_path")
    return folder


def open_run(
    named: str, *, among: Path | None = None, tags: Mapping[str, str] | None = None
) -> Opened:
    """The run of that folder, or of that name in the folder of runs, and its manifest.

    A name is the folder's name, a unique beginning of it, a label, or `latest`. With `tags`, only
    runs that have all of them count.
    """
    path = Path(named)
    if path.name == "manifest.json":
        path = path.parent
    folder = RunFolder(path)
    if not folder.manifest_file.exists():
        place = default_folder() if among is None else among
        folder = RunFolder(place / named)
    if folder.manifest_file.exists():
        manifest = folder.manifest()
        if tags and not has_tags(manifest, tags):
            raise _none_tagged(str(folder.path), tags, [(folder, manifest)])
        return folder, manifest
    if found := _called(named, place, tags or {}):
        return found
    if path.is_dir():
        return RunFolder(path), RunFolder(path).manifest()
    parent = path.parent if path.parent != Path() else place
    names = sorted(each.parent.name for each in parent.glob("*/manifest.json"))
    labels = [manifest.label for _, manifest in kept_runs(parent)]
    raise DataError(
        "this run does not exist",
        found=named,
        expected="the folder or the name of a run",
        where=str(parent),
        hint=did_you_mean(path.name, [*names, *labels])
        or (
            f"the newest run is {parent / names[-1]}"
            if names
            else "there are no runs in this folder; `harness --model SPEC --tasks TASK` makes one"
        ),
    )


def with_resumed_run(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run, with the folder of the run that `resume` names."""
    if options["resume"] is None:
        return dict(options)
    folder, _ = open_run(str(options["resume"]), among=Path(options["output_path"]))
    return {**options, "resume": folder.path}


def named_runs(named: Sequence[str], tags: Mapping[str, str]) -> list[str]:
    """The runs that a command names; without names the folders of all runs with these tags."""
    if named:
        return [*named]
    if not tags:
        raise UsageError("RUN is missing", expected="the name of a run, or --tag")
    place = default_folder()
    kept = kept_runs(place)
    found = [str(folder.path) for folder, manifest in kept if has_tags(manifest, tags)]
    if not found:
        raise _none_tagged(str(place), tags, kept)
    return found


def kept_runs(place: Path) -> list[Opened]:
    """The runs in a folder, newest first; what is not a readable run is skipped."""
    found: list[Opened] = []
    for folder in map(RunFolder, place.iterdir() if place.is_dir() else ()):
        with suppress(HarnessError):
            found.append((folder, folder.manifest()))

    def begun(one: Opened) -> tuple[str, str]:
        sessions = one[1].sessions
        return sessions[0].started if sessions else "", one[1].run_id

    return sorted(found, key=begun, reverse=True)


def _called(name: str, place: Path, tags: Mapping[str, str]) -> Opened | None:
    """The run of a label, `latest`, or a beginning of a folder's name; DataError for several."""
    kept = [one for one in kept_runs(place) if has_tags(one[1], tags)]
    if name == LATEST:
        return kept[0] if kept else None
    found = [one for one in kept if one[1].label == name] or [
        one for one in kept if name and one[0].path.name.startswith(name)
    ]
    if len(found) > 1:
        more = [f"and {len(found) - MOST_LISTED} more"] if len(found) > MOST_LISTED else []
        listed = [f"{folder.path.name} ({manifest.label})" for folder, manifest in found]
        raise DataError(
            "several runs have this name",
            where=str(place),
            found="\n            ".join([*listed[:MOST_LISTED], *more]),
            expected="more of the folder's name",
        )
    return found[0] if found else None


def has_tags(manifest: Manifest, tags: Mapping[str, str]) -> bool:
    """Whether a run has all these tags."""
    return tags.items() <= manifest.tags.items()


def _none_tagged(where: str, tags: Mapping[str, str], runs: Iterable[Opened]) -> DataError:
    there = {f"{name}={value}" for _, one in runs for name, value in one.tags.items()}
    return DataError(
        "no run has these tags",
        where=where,
        found=", ".join(f"{name}={value}" for name, value in tags.items()),
        expected=f"one of {', '.join(sorted(there))}" if there else "runs that were given a --tag",
    )


@dataclass(kw_only=True)
class NamedRun:
    """A run that the command names, and the results of scoring it."""

    named: str
    opened: Opened | None = None
    """None if the run could not be opened; `errors` says why."""
    label: str = ""
    """The label in tables, with an addition if several of the named runs have it."""
    benchmarks: dict[str, Benchmark] = field(default_factory=dict)
    """By name the benchmarks of the tasks to score."""
    kept: list[FinishedTask] = field(default_factory=list)
    """The scored tasks."""
    errors: list[HarnessError] = field(default_factory=list)

    def read(self, task: str) -> None:
        """Keep a finished task of this run, which could be opened."""
        from harness.scoring.finished_task import finished_task

        assert self.opened is not None
        self.kept.append(finished_task(*self.opened, task, self.benchmarks[task], label=self.label))

    def as_json(self) -> dict[str, Any]:
        """The results, as a part of the JSON document."""
        from harness.scoring.summary import over_repeats

        summaries = [task.summary for task in self.kept]
        repeats = over_repeats(summaries)
        return {
            "run": self.named,
            "summaries": summaries,
            **({"repeats": repeats} if repeats else {}),
            "errors": [str(error) for error in self.errors],
        }


def open_runs(
    named: Sequence[str],
    tags: Mapping[str, str],
    *,
    only: Collection[str] = (),
    of: str = ANY_BENCHMARK,
    copies: bool = True,
) -> list[NamedRun]:
    """The named runs, or all with these tags, each once, with the benchmarks of their tasks: of all
    tasks, or of the `only` ones, `of` any benchmark or one. What cannot be opened is an error of
    its run.

    Without `copies`, a copy of a run in another folder is the same run.
    """
    runs: list[NamedRun] = []
    first: dict[Path | str, str] = {}
    for name in named_runs(named, tags):
        try:
            folder, manifest = open_run(name, tags=tags)
        except HarnessError as error:
            runs.append(NamedRun(named=name, errors=[error]))
            continue
        known = folder.path.resolve() if copies else manifest.run_id
        if known in first:
            print_error(f"{name} is the same run as {first[known]} and counts once")
            continue
        first[known] = name
        runs.append(NamedRun(named=name, opened=(folder, manifest)))
    held = sorted({name for _, _, manifest in opened(runs) for name in manifest.tasks})
    for name in only if held else ():
        one_of(name, held, f"the run has no task {name!r}")
    for run, _, manifest in opened(runs):
        for name, entry in manifest.tasks.items():
            if not only or name in only:
                with errors_to(run.errors.append):
                    benchmark = entry.task().benchmark
                    if of in (ANY_BENCHMARK, benchmark):
                        run.benchmarks[name] = load_plugins().benchmark(benchmark)
    return label_runs(runs)


def opened(runs: Iterable[NamedRun]) -> Iterator[tuple[NamedRun, RunFolder, Manifest]]:
    """The runs that could be opened, each with its folder and manifest."""
    return ((run, *run.opened) for run in runs if run.opened is not None)


def label_runs(runs: list[NamedRun]) -> list[NamedRun]:
    """The runs, with labels that tell them apart."""
    from harness.scoring.finished_task import labels_of

    labels = labels_of(manifest for _, _, manifest in opened(runs))
    for run, _, manifest in opened(runs):
        run.label = labels[manifest.run_id]
    return runs


def read_finished(runs: Sequence[NamedRun], so: str = "not compared") -> None:
    """Add the finished tasks of each run, and one error for its other ones, which are `so`."""
    from harness.scoring.score_run import Unfinished, how_to_finish, unfinished_stages

    for run, _, manifest in opened(runs):
        lacking: dict[str, list[str]] = {"finished": [], "scored": []}
        for name in run.benchmarks:
            try:
                run.read(name)
            except Unfinished:
                undone = unfinished_stages(manifest.tasks[name])
                lacking["finished" if undone else "scored"].append(name)
            except HarnessError as error:
                run.errors.append(error)
        hints = (how_to_finish(manifest), f"`harness score {run.named}` scores it")
        for (what, names), hint in zip(lacking.items(), hints, strict=True):
            if names:
                problem = f"{so}, as it is not {what}: {', '.join(names)}"
                run.errors.append(Unfinished(problem, where=run.named, hint=hint))


def read_rescored(runs: Sequence[NamedRun], changes: Mapping[str, Any], scratch: str) -> None:
    """Add the tasks of each run, scored with changed options into files of the scratch folder."""
    from harness.scoring.rescore import rescore, rescoring
    from harness.tasks.changes import apply_changes

    asked = [
        (run, folder, manifest, manifest.tasks[name].task(), benchmark)
        for run, folder, manifest in opened(runs)
        for name, benchmark in run.benchmarks.items()
    ]
    tasks = [task for *_, task, _ in asked]
    wanted = apply_changes(tasks, changes, benchmark=load_plugins().benchmark)
    ways = [
        rescoring(task, then, benchmark)
        for (*_, task, benchmark), then in zip(asked, wanted, strict=True)
    ]
    for place, ((run, folder, manifest, *_), way) in enumerate(zip(asked, ways, strict=True)):
        file = Path(scratch, f"{place}.jsonl")
        with errors_to(run.errors.append):
            run.kept.append(rescore(file, folder, manifest, way, label=run.label))


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
) -> int | None:
    """List the runs, the newest first, or remove some of them (--clean)."""
    if output_path is not None and not output_path.is_dir():
        raise DataError("this folder does not exist", where="--output_path", found=str(output_path))
    place = output_path or default_folder()
    if clean is not None and json:
        raise UsageError("--clean cannot be combined with --json")
    if clean is not None:
        return _clean(place, tag, clean, yes=yes)
    if yes:
        raise UsageError("--yes needs --clean", expected="harness runs --clean failed --yes")
    from harness.scoring.run_list import list_runs

    (print_json if json else _print)(list_runs(place, tag))
    return None


def _print(listing: Listing) -> None:
    from harness.contracts.report import Report, Sheet
    from harness.reporting.grid import print_report
    from harness.reporting.run_lines import progress_line

    if listing.runs:
        title = f"{counted(len(listing.runs), 'run')} in {listing.folder}, newest first"
        columns = ("run", "model", "tags", "tasks", "first result", "state")
        rows = tuple(map(_row, listing.runs))
        print_report(Report(sheets=(Sheet(title=title, columns=columns, rows=rows),)))
        for run in listing.runs:
            if run.progress is not None:
                then = "is" if run.at_work else "was last"
                print(clean_text(f"{run.run} {then} at {progress_line(run.progress)}"))
        print("`harness show RUN` shows one")
    else:
        print(clean_text(f"no runs in {listing.folder}"))
    for one in listing.damaged:
        print(clean_text(f"cannot be read: {one.because}", lines=True))
    for one in listing.others:
        print(clean_text(f"no run: {one.folder}: {one.because}"))


def _row(run: ListedRun) -> tuple[str, ...]:
    from harness.reporting.run_lines import status_text

    state = status_text(run.status, run.at_work)
    problems = filter(None, [run.problem, *(task.problem for task in run.tasks)])
    why = next(problems, "").partition("\n")[0]
    state += f": {why}" if why not in ("", state) else ""
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
    files = folder.path.glob("*/*.jsonl*")
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
