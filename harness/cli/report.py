"""`harness report RUN…`: one page that shows what runs measured; calls no model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from click.core import ParameterSource

from harness.base.errors import HarnessError, UsageError
from harness.cli.command import PATH, command, option
from harness.cli.kept_runs import (
    NamedRun,
    named_runs,
    open_runs,
    opened,
    read_finished,
    runs_argument,
    tag_option,
    task_option,
)
from harness.cli.output import print_error
from harness.reporting.text import clean_text
from harness.runs.atomic_files import atomic_write

OPTION = "--output"
"""The option that names the page."""


@command(
    "harness report RUN",
    "harness report step-1000 step-2000 -o steps.html",
    "harness report step-1000 step-2000 --by history",
    "harness report --tag week=47 --samples 50 -o week47.html",
    "harness report --tag suite=nightly --rank -o ranks.html",
)
@runs_argument
@option(
    OPTION, "-o", metavar="FILE", type=PATH, default=Path("report.html"),
    help="the page to write (report.html)",
)  # fmt: skip
@option("--rank", is_flag=True, help="a page of ranks by task instead, as intervals of ranks")
@tag_option()
@task_option
@option("--by", metavar="SLICE", help="compare within each part of the data too, such as history")
@option("--title", metavar="TEXT", default="", help="the heading of the page")
@option(
    "--samples", metavar="N", type=click.IntRange(0, 50),
    help="show so many samples of each task, 50 at most",
)  # fmt: skip
@option(
    "--labels", metavar="FILE", multiple=True,
    help="people's labels, with which judges are compared; may be given again",
)  # fmt: skip
def report(**options: Any) -> int:
    """Write one page about runs, for a browser, a phone or paper: who is better, all results with
    their intervals, differences, failures, costs, changed answers, the analyses of each benchmark,
    and the commands. It needs no network. No model is called, and no run is changed.
    """
    args = SimpleNamespace(**options)
    check_folder(args.output)
    source = click.get_current_context().get_parameter_source
    for name in ("by", "samples", "labels"):
        if args.rank and source(name) is not ParameterSource.DEFAULT:
            raise UsageError(f"--rank writes a page of ranks, without --{name}", where="--rank")
    for file in args.labels:
        if not Path(file).is_file():
            raise UsageError(
                "there are no labels here", where="--labels", found=file,
                expected="labels of the items that `harness analyse gist-export-labels` draws",
            )  # fmt: skip
    runs = open_runs(named_runs(args.runs, args.tag), args.task, args.tag)
    unread = write_report(
        args.output, runs, only=args.task, title=args.title,
        samples=args.samples, labels=args.labels, by=args.by, rank=args.rank,
    )  # fmt: skip
    print(clean_text(f"{args.output} ({args.output.stat().st_size / 1_000_000:.1f} MB)"))
    sys.stdout.flush()
    print_error(*(error for run in runs for error in run.errors))
    return unread[0].exit_code if unread else 0


def check_folder(page: Path, *, option: str = OPTION) -> None:
    """Raise UsageError if no page can be written to a file that `option` named."""
    if page.suffix.lower() not in ("", ".html", ".htm"):
        raise UsageError(
            "a report is a page of HTML", where=option, found=str(page),
            expected=f"a name that ends in .html, such as {page.with_suffix('.html')}",
        )  # fmt: skip
    if not page.parent.is_dir():
        raise UsageError(
            "the folder of the report does not exist", where=option,
            found=str(page.parent), expected="an existing folder",
        )  # fmt: skip


def write_report(
    file: Path,
    runs: list[NamedRun],
    *,
    title: str = "",
    only: str | None = None,
    samples: int | None = None,
    labels: Sequence[str] = (),
    by: str | None = None,
    option: str = OPTION,
    bases: Sequence[str] = (),
    rank: bool = False,
) -> list[HarnessError]:
    """Write the page about these runs, or of their ranks with `rank`.

    Returns why some could not be opened; raises it if none could.
    """
    from harness.registry import load_plugins
    from harness.reporting.html.rank_page import rank_page
    from harness.reporting.html.report_page import report_page
    from harness.reporting.html.reported_run import reported_run

    unread = [error for run in runs if run.opened is None for error in run.errors]
    if len(unread) == len(runs):
        raise unread[0]
    read_finished(runs)
    reported = [
        reported_run(
            folder, manifest, run.kept, label=run.label,
            problems=[error.problem for error in run.errors], only=only,
        )
        for run, folder, manifest in opened(runs)
    ]  # fmt: skip
    said = [str(error) for error in unread]
    if rank:
        page = rank_page(reported, title=title, unread=said)
    else:
        page = report_page(
            reported, load_plugins(), title=title, unread=said, samples=samples, labels=labels,
            by=by, bases=bases,
        )  # fmt: skip
    atomic_write(file, page.encode(), option=option)
    return unread
