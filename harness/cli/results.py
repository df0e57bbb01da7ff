"""The results of a run as commands print them: in one short table, or everything."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import HarnessError, UsageError
from harness.base.redaction import safe_text
from harness.cli.output import errors_to, print_error
from harness.cli.run_options import WORDS
from harness.reporting.text import counted

if TYPE_CHECKING:
    from harness.contracts.report import Report, Sheet
    from harness.contracts.task import Group
    from harness.pipeline.run import RunResult
    from harness.runs.manifest import Manifest
    from harness.runs.run_folder import RunFolder
    from harness.scoring.means import MeanOverTasks
    from harness.scoring.summary import TaskSummary


def print_result(result: RunResult, *, json: bool, verbose: bool) -> None:
    """Print the result of a run, its errors, its cost and its folder."""
    from harness.reporting.run_lines import cost_line

    if json:
        sys.stdout.write(result.to_json())
    elif result.summaries or not result.requests:
        print_results(result, verbose=verbose)
    if result.requests and not json:
        for path, many in result.requests.items():
            print(f"{path}: {counted(many, 'request')}")
        print(f"when they are answered: {_with_answers()}")
    print_error(*result.errors)
    if not json:
        cost = cost_line(result.costs.values())
        if cost is not None:
            print(f"this time: {cost}", file=sys.stderr)
        print(f"run folder: {result.folder}", file=sys.stderr)
    sys.stdout.flush()


def _with_answers() -> str:
    """The command that was given, without keys and with a file of answers."""
    words, kept = iter(click.get_current_context().meta[WORDS]), []
    for word in words:
        if word == "--answers":
            next(words, None)
        elif not word.startswith("--answers="):
            kept.append(word)
    return f"{safe_text(shlex.join(['harness', *kept]))} --answers FILE"


def print_results(result: RunResult, *, verbose: bool = False) -> None:
    """Print the short table of a run and the first tables of its groups' analyses."""
    from harness.runs.run_folder import RunFolder

    folder = RunFolder(result.folder)
    manifest = folder.manifest()
    if result.summaries or len(manifest.tasks) > 1:
        everything = verbose and bool(result.summaries)
        reports = () if everything or not result.summaries else _group_reports(folder, manifest)
        print_short(
            folder, manifest, result.summaries, result.means,
            sheets=[sheet for report in reports for sheet in report.sheets[:1]],
            rest=not everything,
        )  # fmt: skip
    if verbose and result.summaries:
        print()
        print_everything(folder, manifest, result.summaries)


def print_short(
    folder: RunFolder,
    manifest: Manifest,
    summaries: Sequence[TaskSummary],
    means: Sequence[MeanOverTasks],
    *,
    sheets: Sequence[Sheet] = (),
    rest: bool = True,
) -> None:
    """Print the short table of a run, these tables, and with `rest` the command for the rest."""
    from harness.cli.kept_runs import default_folder
    from harness.reporting.tables import print_short_table

    path = folder.path
    with suppress(UsageError):  # wrong settings, which no stored run needs
        if path.parent.resolve() == default_folder().resolve():
            path = Path(path.name)
    print_short_table(
        manifest, summaries, means,
        run=str(path) if rest else None, sheets=sheets,
    )  # fmt: skip


def print_everything(
    folder: RunFolder,
    manifest: Manifest,
    summaries: Sequence[TaskSummary],
    *,
    groups: bool = True,
) -> None:
    """Print all that is known of these tasks of a run, and with `groups` the analyses of its
    groups."""
    from harness.reporting.grid import print_report
    from harness.reporting.tables import print_summaries

    print_summaries(summaries)
    for report in _group_reports(folder, manifest) if groups else ():
        print_report(report)


def _group_reports(folder: RunFolder, manifest: Manifest) -> Iterator[Report]:
    from harness.registry import load_plugins
    from harness.registry.task_catalogue import Catalogue

    # Of the groups of a run those whose files are still there.
    folders = [Path(one) for one in manifest.settings.get("include_path") or ()]
    found: dict[str, Group] = {}
    for spec in manifest.settings.get("tasks", ()) if manifest.groups else ():
        with suppress(HarnessError):
            selected = Catalogue(load_plugins(), include_path=folders).select([spec])
            found |= {group.name: group for group in selected.groups}
    groups = (found[name] for name in manifest.groups if name in found)
    yield from filter(None, (_group_report(group, folder, manifest) for group in groups))


def _group_report(group: Group, folder: RunFolder, manifest: Manifest) -> Report | None:
    """The analysis of a group for its tasks that the run has finished; None if there is none."""
    from harness.analysis.report_notes import with_notes
    from harness.registry import ANY_BENCHMARK, load_plugins, made
    from harness.registry.data_tools import run_tool
    from harness.scoring.finished_task import finished_task

    if group.analysis is None:
        return None
    with errors_to(print_error):
        registration = load_plugins().analysis(group.analysis)
        tasks = []
        for name, entry in manifest.tasks.items():
            benchmark = entry.task().benchmark
            fits = registration.benchmark in (ANY_BENCHMARK, benchmark)
            if fits and name in group.members and folder.summary(name).exists():
                found = load_plugins().benchmark(benchmark)
                tasks.append(finished_task(folder, manifest, name, found, label=manifest.label))
        if tasks:
            analysis = made(registration)
            report = run_tool(registration, lambda: analysis.run(tasks, analysis.options()))
            return with_notes(report, tasks)
    return None
