"""`harness analyse NAME RUN…`: analyses of finished runs; calls no model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import DataError, UsageError, one_of
from harness.cli.command import Argument, CommandGroup, Option, command, json_option
from harness.cli.kept_runs import NamedRun, open_runs, opened
from harness.cli.output import errors_to, print_error
from harness.cli.tools import Work, report_command
from harness.registry import ANY_BENCHMARK, load_plugins, made
from harness.registry.data_tools import run_tool

if TYPE_CHECKING:
    from pathlib import Path

    from harness.analysis.analysis import Analysis
    from harness.registry import AnalysisRegistration
    from harness.runs.manifest import Manifest
    from harness.runs.run_folder import RunFolder


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


class Copied(DataError):
    """The run is another copy of a run that is analysed."""


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
    from harness.scoring.score_run import Unfinished

    of = _describe_benchmark(registration.benchmark)
    chosen = open_runs(runs, None, {}, of=registration.benchmark)
    first: dict[str, Path] = {}
    for run, folder, manifest in opened(chosen):
        place = first.setdefault(manifest.run_id, folder.path.resolve())
        if place != folder.path.resolve():
            problem = f"this run is left out: it is a copy of {place}"
            run.errors.append(Copied(problem, where=str(folder.path)))
            run.benchmarks = {}
        run.label = manifest.label  # `told_apart` sees only the runs with a task in the analysis
        _read_tasks(run, folder, manifest, task)
    names = dict.fromkeys(name for run in chosen for name in run.benchmarks)
    for name in task if names else ():
        one_of(name, names, f"the run has no task of {of} named {name!r}")
    left_out = [error for run in chosen for error in run.errors]
    last = None if any(run.opened for run in chosen) else left_out.pop()
    print_error(*left_out)
    if last is not None:
        raise last
    tasks = told_apart([one for run in chosen for one in run.kept])
    if not tasks:
        raise DataError(
            f"the runs have no task that {registration.name!r} can analyse",
            found=f"unusable tasks: {', '.join(names)}" if names else "no task of that benchmark",
            expected=f"runs with a finished task of {of}",
        )
    report = with_notes(run_tool(registration, lambda: analysis.run(tasks, options)), tasks)
    document = {
        "analysis": registration.name,
        "tasks": [{"task": one.task.name, "run": one.run, "label": one.label} for one in tasks],
        "left_out": [str(problem) for problem in left_out],
    }
    codes = [one.exit_code for one in left_out if not isinstance(one, (Copied, Unfinished))]
    return report, document, codes[-1] if codes else 0


def _read_tasks(run: NamedRun, folder: RunFolder, manifest: Manifest, only: Sequence[str]) -> None:
    """Add the finished tasks of a run that an analysis is given, and an error for each other."""
    from harness.scoring.score_run import Unfinished, how_to_finish, unfinished_stages
    from harness.tasks.repeats import task_and_repeat

    for name in run.benchmarks:
        # Repeats of a task are not tasks of their own: without --task, the first is analysed.
        if name not in only if only else task_and_repeat(name)[1] > 1:
            continue
        with errors_to(run.errors.append):
            if open_stages := unfinished_stages(manifest.tasks[name]):
                raise Unfinished(
                    f"task {name!r} is left out: it is not finished",
                    where=str(folder.path),
                    found=f"stages with items that have no record: {', '.join(open_stages)}",
                    hint=how_to_finish(manifest),
                )
            run.read(name)


def _describe_benchmark(benchmark: str) -> str:
    return "any benchmark" if benchmark == ANY_BENCHMARK else f"the benchmark {benchmark!r}"
