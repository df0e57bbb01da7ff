"""`harness report` and `harness export`: runs as a page, or as files for other programs."""

from __future__ import annotations

import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import DataError, HarnessError, UsageError
from harness.cli.command import PATH, command, option, print_error
from harness.cli.runs import (
    NamedRun,
    open_runs,
    opened,
    read_finished,
    runs_argument,
    tag_option,
    task_option,
)
from harness.registry import load_plugins
from harness.reporting.text import clean_text
from harness.runs.atomic_files import UNFINISHED, atomic_write, storage_error

if TYPE_CHECKING:
    from harness.scoring.finished_task import FinishedTask


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
    for name in ("by", "samples", "labels"):
        if args.rank and getattr(args, name) not in (None, ()):
            raise UsageError(f"--rank writes a page of ranks, without --{name}", where="--rank")
    for file in args.labels:
        if not Path(file).is_file():
            raise UsageError(
                "there are no labels here", where="--labels", found=file,
                expected="labels of the items that `harness analyse gist-export-labels` draws",
            )  # fmt: skip
    runs = open_runs(args.runs, args.tag, only=[args.task] if args.task else [])
    says, unread = write_report(
        args.output, runs, only=args.task, title=args.title,
        samples=args.samples, labels=args.labels, by=args.by, rank=args.rank,
    )  # fmt: skip
    if says:
        print(clean_text(says))
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
) -> tuple[str, list[HarnessError]]:
    """Write the page about these runs, or of their ranks with `rank`.

    Returns the first words of the report, and why some runs could not be opened; raises that if
    none could.
    """
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
        page, says = rank_page(reported, title=title, unread=said), ""
    else:
        page, says = report_page(
            reported, load_plugins(), title=title, unread=said, samples=samples, labels=labels,
            by=by, bases=bases,
        )  # fmt: skip
    atomic_write(file, page.encode(), option=option)
    return says, unread


WRITERS = {
    "inspect": ("inspect_export", "write_inspect"),
    "lm-eval": ("lm_eval_export", "write_lm_eval"),
    "hf-eval": ("hf_eval_export", "write_model_cards"),
    "eval-results": ("hf_eval_export", "write_eval_results"),
    "every-eval-ever": ("every_eval_ever_export", "write_every_eval_ever"),
}
"""The module of `harness.analysis` and its function that write each format, but for tables."""
FORMATS = ("inspect", "csv", "parquet", *[one for one in WRITERS if one != "inspect"])


@command(
    "harness export RUN --format inspect --out logs",
    "harness export RUN --format parquet --out tables",
    "harness export --tag week=47 --format csv --out week47",
    "harness export RUN --format lm-eval --task interests --out results",
)
@runs_argument
@option("--format", type=click.Choice(FORMATS), required=True, help="which files to write")
@option("--out", metavar="DIR", type=PATH, required=True, help="a new folder, or an empty one")
@tag_option()
@option("--task", metavar="NAME", help="this task only")
def export(
    runs: Sequence[str], format: str, out: Path, tag: Mapping[str, str], task: str | None
) -> int:
    """Write the finished tasks of runs to a new folder: logs in which `inspect view` shows every
    answer (inspect), tables of metrics, scores, records and calls (csv, parquet), results and
    samples as lm-evaluation-harness writes them (lm-eval), results for a model at the Hugging Face
    Hub as its card (hf-eval) or as entries (eval-results), or records of the shared data set of
    evaluations (every-eval-ever). No model is called, and no run is changed.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise UsageError(
            "the folder of an export must be new or empty",
            where=str(out),
            found="a folder that is not empty" if out.is_dir() else "a file",
            expected="--out DIR with a new or empty folder",
        )
    found = open_runs(runs, tag, only=[task] if task else [], copies=False)
    read_finished(found, "not exported")
    for run, folder, _ in opened(found):
        if not (run.kept or run.errors):
            which = "tasks" if task is None else f"task {task!r}"
            run.errors.append(DataError(f"the run has no {which}", where=str(folder.path)))
    tasks = [each for run in found for each in run.kept]
    errors = [error for run in found for error in run.errors]
    if not tasks:
        raise errors[0]
    for path in _write(out, format, tasks):
        print(clean_text(str(path)))
    print_error(*errors)
    return 1 if errors else 0


def _write(out: Path, format: str, tasks: Sequence[FinishedTask]) -> list[Path]:
    """Write all files or none: they are moved into place when the last one is complete.

    An existing folder is kept, because it may be a working directory or the target of a link.
    """
    try:
        parent = out if out.is_dir() else out.parent
        draft = parent / f".export.{secrets.token_hex(6)}{UNFINISHED}"
        draft.mkdir(parents=True)
        try:
            written = _files(draft, format, tasks)
            if parent is out:
                for path in draft.iterdir():
                    path.rename(out / path.name)
                draft.rmdir()
            else:
                draft.rename(out)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        raise storage_error(out, error, option="--out") from error
    return [out / path.relative_to(draft) for path in written]


def _files(folder: Path, format: str, tasks: Sequence[FinishedTask]) -> list[Path]:
    match format:
        case "csv" | "parquet":
            from harness.analysis.run_tables import tables_of
            from harness.reporting.table_files import write_table

            return [write_table(folder, table, format) for table in tables_of(tasks)]
    module, function = WRITERS[format]
    write = getattr(import_module(f"harness.analysis.{module}"), function)
    written: list[Path] = write(folder, tasks)
    return written
