"""`harness analyse NAME RUN…`: analyses of finished runs; calls no model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import DataError, HarnessError, UsageError, one_of
from harness.cli.command import Argument, CommandGroup, Option, command, json_option
from harness.cli.output import print_error
from harness.cli.tools import Work, report_command
from harness.registry import ANY_BENCHMARK, load_plugins, made
from harness.registry.data_tools import run_tool

if TYPE_CHECKING:
    from pathlib import Path

    from harness.analysis.analysis import Analysis
    from harness.registry import AnalysisRegistration
    from harness.runs.manifest import Manifest
    from harness.runs.run_folder import RunFolder
    from harness.scoring.finished_task import FinishedTask


class Analyses(CommandGroup):
    """A command whose subcommands are the analyses of plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the analyses."""
        return list(load_plugins().analyses)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of an analysis, with the options that the analysis declares."""
        registration = load_plugins().analysis(cmd_name)
        analysis = made(registration)
        arguments = [
            Argument(
                ["runs"], metavar="RUN", nargs=-1, required=True, help="the folder of a run",
                candidates="runs",
            ),
            Option(
                ["--task"], metavar="NAME", multiple=True,
                help="this task only; may be given again",
            ),
        ]  # fmt: skip
        of = _describe_benchmark(registration.benchmark)
        return report_command(
            ctx,
            cmd_name,
            partial(_analyse, registration, analysis),
            options=analysis.options,
            help=f"{analysis.description.rstrip('.')}; for runs of {of}.",
            arguments=arguments,
        )


@command(
    "harness analyse gist-failure-modes RUN --plot modes.svg",
    cls=Analyses,
    subcommand_metavar="NAME RUN… [OPTION…]",
)
@json_option
def analyse(json: bool) -> int:
    """Analyse stored runs; no model is called. `harness list analyses` lists the analyses, `harness
    analyse NAME --help` shows the options of one.
    """
    if click.get_current_context().invoked_subcommand is None:
        raise UsageError("NAME is missing", hint="`harness list analyses` lists the analyses")
    return 0


def _analyse(
    registration: AnalysisRegistration,
    analysis: Analysis,
    options: Any,
    json: bool,
    *,
    runs: Sequence[str],
    task: Sequence[str],
) -> Work:
    from harness.analysis.report_notes import told_apart, with_notes

    selection = _select(runs, task, registration)
    last = None if selection.opened else selection.left_out.pop()
    print_error(*selection.left_out)
    if last is not None:
        raise last
    if not selection.tasks:
        names = ", ".join(selection.names)
        raise DataError(
            f"the runs have no task that {registration.name!r} can analyse",
            found=f"unusable tasks: {names}" if names else "no task of that benchmark",
            expected=f"runs with a finished task of {_describe_benchmark(registration.benchmark)}",
        )
    tasks = told_apart(selection.tasks)
    report = with_notes(run_tool(registration, lambda: analysis.run(tasks, options)), tasks)
    document = {
        "analysis": registration.name,
        "tasks": [{"task": one.task.name, "run": one.run, "label": one.label} for one in tasks],
        "left_out": [str(problem) for problem in selection.left_out],
    }
    return report, document, selection.exit_code


@dataclass
class _Selection:
    """The tasks that are analysed, and why others are left out.

    `opened` says whether there is a run at all.
    """

    tasks: list[FinishedTask] = field(default_factory=list)
    left_out: list[HarnessError] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)
    exit_code: int = 0
    opened: bool = False


def _select(
    named: Sequence[str], only: Sequence[str], registration: AnalysisRegistration
) -> _Selection:
    from harness.scoring.score_run import Unfinished
    from harness.tasks.repeats import task_and_repeat

    found = _Selection()
    for folder, manifest in _runs(named, found):
        found.opened = True
        for name in _task_names(manifest, registration.benchmark):
            found.names[name] = None
            # Repeats of a task are not tasks of their own: without --task, the first is analysed.
            if name not in only if only else task_and_repeat(name)[1] > 1:
                continue
            try:
                found.tasks.append(_finished_task(folder, manifest, name))
            except HarnessError as error:
                found.left_out.append(error)
                if not isinstance(error, Unfinished):
                    found.exit_code = error.exit_code
    if only and found.names:
        for name in only:
            of = _describe_benchmark(registration.benchmark)
            one_of(name, found.names, f"the run has no task of {of} named {name!r}")
    return found


def _runs(names: Sequence[str], found: _Selection) -> Iterator[tuple[RunFolder, Manifest]]:
    """Each run once; a run that cannot be opened is left out, and the others are analysed.

    A copy of a run in another folder is left out with an error, the same folder silently.
    """
    from harness.cli.kept_runs import open_run

    seen: dict[str, Path] = {}
    for named in names:
        try:
            folder, manifest = open_run(named)
        except HarnessError as error:
            found.left_out.append(error)
            found.exit_code = error.exit_code
            continue
        place = folder.path.resolve()
        if manifest.run_id not in seen:
            seen[manifest.run_id] = place
            yield folder, manifest
        elif place != seen[manifest.run_id]:
            first = seen[manifest.run_id]
            found.left_out.append(
                DataError(f"this run is left out: it is a copy of {first}", where=str(folder.path))
            )


def _task_names(manifest: Manifest, benchmark: str) -> list[str]:
    return [
        name
        for name, entry in manifest.tasks.items()
        if benchmark in (ANY_BENCHMARK, entry.task().benchmark)
    ]


def _describe_benchmark(benchmark: str) -> str:
    return "any benchmark" if benchmark == ANY_BENCHMARK else f"the benchmark {benchmark!r}"


def _finished_task(folder: RunFolder, manifest: Manifest, name: str) -> FinishedTask:
    from harness.scoring.finished_task import finished_task
    from harness.scoring.score_run import Unfinished, how_to_finish, unfinished_stages

    if open_stages := unfinished_stages(manifest.tasks[name]):
        raise Unfinished(
            f"task {name!r} is left out: it is not finished",
            where=str(folder.path),
            found=f"stages with items that have no record: {', '.join(open_stages)}",
            hint=how_to_finish(manifest),
        )
    benchmark = load_plugins().benchmark(manifest.tasks[name].task().benchmark)
    return finished_task(folder, manifest, name, benchmark, label=manifest.label)
