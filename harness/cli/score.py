"""`harness score RUN…`: scores from stored records; calls no model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from harness.base.errors import HarnessError, one_of
from harness.cli.command import command, option
from harness.cli.kept_runs import named_runs, open_run, runs_argument, tag_option
from harness.cli.output import print_error, print_json
from harness.cli.run_options import changes_from, tags_from
from harness.reporting.text import clean_text

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark
    from harness.runs.manifest import Manifest
    from harness.runs.run_folder import RunFolder
    from harness.scoring.finished_task import FinishedTask
    from harness.scoring.rescore import Rescoring


COMPARES = "`harness compare RUN…` compares runs, and takes the options of comparisons"
MOVED = dict.fromkeys(("--compare", "--oracle", "--export_oracle", "--force", "--output"), COMPARES)
"""The hint for each former option of this command."""


task_option = option("--task", metavar="TASK", help="this task only")
set_option = option(
    "--set", "changes", metavar="KEY=VALUE", multiple=True,
    help="change an option that only scoring reads; no run is changed",
)  # fmt: skip


@dataclass(kw_only=True)
class NamedRun:
    """A run that the command names, and the results of scoring it."""

    named: str
    opened: tuple[RunFolder, Manifest] | None = None
    """None if the run could not be opened; `errors` says why."""
    benchmarks: dict[str, Benchmark] = field(default_factory=dict)
    """By name the benchmarks of the tasks to score."""
    kept: list[FinishedTask] = field(default_factory=list)
    """The scored tasks."""
    errors: list[HarnessError] = field(default_factory=list)

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


@command("harness score RUN", "harness score RUN --set min_support=2", moved=MOVED)
@runs_argument
@tag_option()
@task_option
@set_option
@option("--json", is_flag=True, help="results as one JSON document")
def score(**options: Any) -> int:
    """Score runs again from their stored records, and update their summaries. No model is called.

    Unfinished tasks are reported and skipped.
    """
    args = SimpleNamespace(**options)
    tags = tags_from(args.tag)
    runs = open_runs(named_runs(args.runs, tags), args.task, tags)
    with contextlib.ExitStack() as stack:
        if args.changes:
            stack.enter_context(rescored(args.changes, runs))
        else:
            labels = labels_of_runs(runs)
            for each in runs:
                _score_run(each, labels)
        if not args.json:
            for each in runs:
                _print_run(each, changed=bool(args.changes), part=args.task is not None)
    if args.json:
        print_json({"runs": [each.as_json() for each in runs]})
    errors = [error for each in runs for error in each.errors]
    print_error(*errors)
    return errors[0].exit_code if errors else 0


def _print_run(run: NamedRun, *, changed: bool, part: bool) -> None:
    """Print the short table of one run, unless a part of several tasks was scored.

    Everything about the scored tasks follows if the table is left out or no run keeps the scores.
    """
    from harness.cli.results import print_short
    from harness.reporting.tables import print_summaries
    from harness.scoring.means import means_of

    count = len(run.kept)
    scored = f"{count} {'task' if count == 1 else 'tasks'} scored"
    print(f"run {clean_text(run.named)}: {scored}\n", flush=True)
    if run.opened is None or not run.kept:
        return
    folder, manifest = run.opened
    summaries = [task.summary for task in run.kept]
    tasks = {task.task.name: task for task in run.kept}
    part = part and len(manifest.tasks) > 1
    if not part:
        print_short(folder, manifest, summaries, means_of(manifest, summaries, tasks.__getitem__))
    if changed and not part:
        print()
    if changed or part:
        print_summaries(summaries)


def open_runs(named: Sequence[str], only: str | None, tags: Mapping[str, str]) -> list[NamedRun]:
    """The named runs, each folder once; a run that cannot be opened has its error."""
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
    held = {name for run in runs if run.opened for name in run.opened[1].tasks}
    if only is not None and held:
        one_of(only, sorted(held), f"the run has no task {only!r}")
    for run in runs:
        for name, entry in run.opened[1].tasks.items() if run.opened else ():
            if only in (None, name):
                try:
                    run.benchmarks[name] = load_plugins().benchmark(entry.task().benchmark)
                except HarnessError as error:
                    run.errors.append(error)
    return runs


@contextlib.contextmanager
def rescored(changes: Sequence[str], runs: Sequence[NamedRun]) -> Iterator[None]:
    """Score all runs with changed options, into files that last as long as the context."""
    from harness.registry import load_plugins
    from harness.scoring.rescore import rescore, rescoring
    from harness.tasks.changes import apply_changes

    asked = [
        (number, run.opened[1].tasks[name].task(), benchmark)
        for number, run in enumerate(runs)
        if run.opened is not None
        for name, benchmark in run.benchmarks.items()
    ]
    tasks = [task for _, task, _ in asked]
    wanted = apply_changes(tasks, changes_from(changes), benchmark=load_plugins().benchmark)
    # By run, how each task is scored.
    rescorings: list[list[Rescoring]] = [[] for _ in runs]
    for (number, task, benchmark), then in zip(asked, wanted, strict=True):
        rescorings[number].append(rescoring(task, then, benchmark))
    labels = labels_of_runs(runs)
    with TemporaryDirectory(prefix="harness-score-") as scratch:
        for number, run in enumerate(runs):
            for place, way in enumerate(rescorings[number]):
                assert run.opened is not None  # a rescoring is of a task of an opened run
                folder, manifest = run.opened
                file = Path(scratch, f"{number}-{place}.jsonl")
                label = labels[manifest.run_id]
                try:
                    run.kept.append(rescore(file, folder, manifest, way, label=label))
                except HarnessError as error:
                    run.errors.append(error)
        yield


def labels_of_runs(runs: Sequence[NamedRun]) -> dict[str, str]:
    """The label of each run that could be opened."""
    from harness.scoring.finished_task import labels_of

    return labels_of(each.opened[1] for each in runs if each.opened)


def _score_run(run: NamedRun, labels: Mapping[str, str]) -> None:
    from harness.scoring.finished_task import finished_task
    from harness.scoring.score_run import score_task

    if run.opened is None:
        return
    folder, manifest = run.opened
    try:
        folder.lock()
    except HarnessError as error:
        run.errors.append(error)
        return
    try:
        for name, benchmark in run.benchmarks.items():
            try:
                score_task(folder, manifest, name, benchmark)
                label = labels[manifest.run_id]
                run.kept.append(finished_task(folder, manifest, name, benchmark, label=label))
            except HarnessError as error:
                run.errors.append(error)
    finally:
        folder.unlock()
