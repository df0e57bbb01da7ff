"""The runs that a command names by folder, name, prefix, label or tag, and their finished tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from harness.base.errors import DataError, HarnessError, UsageError, did_you_mean, one_of
from harness.cli.command import PATH, argument, option
from harness.cli.output import errors_to, print_error
from harness.cli.run_options import run_setting
from harness.cli.settings import entries
from harness.registry import ANY_BENCHMARK
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark
    from harness.scoring.finished_task import FinishedTask

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
    found = []
    for path in place.iterdir() if place.is_dir() else ():
        folder = RunFolder(path)
        try:
            manifest = folder.manifest()
        except HarnessError:
            continue
        started = manifest.sessions[0].started if manifest.sessions else ""
        found.append((started, manifest.run_id, folder, manifest))
    found.sort(key=lambda each: each[:2], reverse=True)
    return [(folder, manifest) for _, _, folder, manifest in found]


def _called(name: str, place: Path, tags: Mapping[str, str]) -> Opened | None:
    """The run of a label, `latest`, or a beginning of a folder's name; DataError for several."""
    from harness.pipeline.settings import LATEST

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
        benchmark = self.benchmarks[task]
        self.kept.append(finished_task(*self.opened, task, benchmark, label=self.label))

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
    named: Sequence[str], only: str | None, tags: Mapping[str, str], *, of: str = ANY_BENCHMARK
) -> list[NamedRun]:
    """The named runs, each folder once; a run that cannot be opened has its error.

    Their tasks are those of the benchmark `of`, or the `only` one.
    """
    from harness.registry import load_plugins

    runs: list[NamedRun] = []
    first: dict[Path, str] = {}
    for name in named:
        try:
            folder, manifest = open_run(name, tags=tags)
        except HarnessError as error:
            runs.append(NamedRun(named=name, errors=[error]))
            continue
        place = folder.path.resolve()
        if place in first:
            print_error(f"{name} is the same run as {first[place]} and counts once")
            continue
        first[place] = name
        runs.append(NamedRun(named=name, opened=(folder, manifest)))
    held = {name for _, _, manifest in opened(runs) for name in manifest.tasks}
    if only is not None and held:
        one_of(only, sorted(held), f"the run has no task {only!r}")
    for run, _, manifest in opened(runs):
        for name, entry in manifest.tasks.items():
            benchmark = entry.task().benchmark
            if only in (None, name) and of in (ANY_BENCHMARK, benchmark):
                with errors_to(run.errors.append):
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


def read_finished(runs: Sequence[NamedRun]) -> None:
    """Add the finished tasks of each run, and one error for its other ones."""
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
                problem = f"not compared, as it is not {what}: {', '.join(names)}"
                run.errors.append(Unfinished(problem, where=run.named, hint=hint))


@contextmanager
def rescored(changes: Mapping[str, Any], runs: Sequence[NamedRun]) -> Iterator[None]:
    """Score all runs with changed options, into files that last as long as the context."""
    from harness.registry import load_plugins
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
    with TemporaryDirectory(prefix="harness-score-") as scratch:
        for place, ((run, folder, manifest, *_), way) in enumerate(zip(asked, ways, strict=True)):
            file = Path(scratch, f"{place}.jsonl")
            with errors_to(run.errors.append):
                run.kept.append(rescore(file, folder, manifest, way, label=run.label))
        yield
