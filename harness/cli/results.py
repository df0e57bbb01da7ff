"""The results of a run as commands print them: in one short table, or everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import HarnessError, UsageError

if TYPE_CHECKING:
    from harness.contracts.report import Report, Sheet
    from harness.contracts.task import Group
    from harness.pipeline.run import RunResult
    from harness.runs.manifest import Manifest
    from harness.runs.run_folder import RunFolder
    from harness.scoring.means import MeanOverTasks
    from harness.scoring.summary import TaskSummary


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
    from harness.cli.analyse import report_of_group
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
    yield from filter(None, (report_of_group(group, folder, manifest) for group in groups))
