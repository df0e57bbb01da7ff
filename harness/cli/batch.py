"""`harness batch`: runs whose questions go to batch services, or to files that others send."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import UsageError
from harness.cli.command import PATH, Command, CommandGroup, Option, argument, epilog, json_option
from harness.cli.kept_runs import open_run, with_resumed_run
from harness.cli.output import print_error, print_json
from harness.cli.run_options import RunCommand, settings_from
from harness.reporting.text import NOTHING, causes, clean_text

if TYPE_CHECKING:
    from harness.cli.settings_sources import EffectiveSettings
    from harness.pipeline.batch_import import ImportResult
    from harness.pipeline.batch_jobs import BatchJobs
    from harness.pipeline.run import RunResult
    from harness.runs.run_folder import RunFolder

EXCLUDED = ("dry_run", "retry_failures")

UNFINISHED = 4
"""The exit code while batches are unfinished."""

run_argument = argument("run", metavar="RUN", candidates="runs", help="the folder of the run")


class _Batch(CommandGroup):
    """`harness batch`, whose help lists its subcommands."""

    command_class = Command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def _no_command() -> None:
    if click.get_current_context().invoked_subcommand is None:
        raise UsageError(
            "`harness batch` needs a command",
            expected="one of " + ", ".join(batch.commands),
            hint="`harness batch --help` describes them",
        )


batch = _Batch(
    "batch",
    callback=_no_command,
    subcommand_metavar="COMMAND [OPTION…]",
    help="Run with batch services: write the next questions of a run to files, submit the files "
    "to the services of their models, and collect the answers. Repeat until nothing is left to "
    "ask.",
    epilog=epilog(
        "harness batch write --model openai:gpt-x --tasks perrec --out next.jsonl",
        "harness batch submit RUN",
        "harness batch status RUN",
        "harness batch collect RUN",
    ),
)


@batch.command(
    cls=RunCommand,
    params=[
        Option(
            ["--out"], metavar="FILE", type=PATH, required=True,
            help="the file for the requests; with several models, one FILE.MODEL.jsonl for each",
        )
    ],
    short_help="write a run's next questions to files of requests",
    epilog=epilog("harness batch write --model openai:gpt-x --tasks perrec --out next.jsonl"),
)  # fmt: skip
@click.pass_obj
def write(held: EffectiveSettings, /, out: Path, **options: Any) -> int:
    """Write the next requests of a run to a file in the OpenAI batch format. Takes the options of
    a run. `harness batch submit RUN` submits the file; when its answers are imported, the same
    command writes the requests that follow from them, until nothing is left to ask. Models without
    batches (all but openai) are asked as in a run.
    """
    import asyncio

    from harness.cli.run import print_settings
    from harness.pipeline.batch_requests import check_new_file
    from harness.pipeline.run import arun
    from harness.reporting.display import make_display

    for other in EXCLUDED:
        if options[other]:
            raise UsageError(
                f"--{other} cannot be used with `harness batch write`",
                hint=f"leave --{other} out, or give it to `harness run`",
            )
    quiet, json = options["quiet"], options["json"]
    settings = settings_from(with_resumed_run(options))
    if settings.executor != "local":
        raise UsageError(
            f"--executor {settings.executor} cannot be used with `harness batch write`",
            found="questions that go to files",
            expected="--executor local: one process writes a file of questions",
            hint="give --executor local, here and to the `harness run` that finishes the run",
        )
    check_new_file(out)
    print_settings(held, quiet=quiet)
    result = asyncio.run(
        arun(
            settings,
            display=make_display(quiet=quiet, json=json),
            handle_signals=True,
            requests_to=out,
            deliver=functools.partial(_print_result, json=json),
            named_in=held.named_in(),
        )
    )
    return result.exit_code


@batch.command(
    short_help="import answers that others fetched",
    epilog=epilog("harness batch read RUN answers.jsonl errors.jsonl"),
)
@run_argument
@argument(
    "files", metavar="FILE", nargs=-1, required=True, type=PATH,
    help="an output or error file of the batch service",
)  # fmt: skip
@json_option
def read(run: str, files: Sequence[Path], json: bool) -> int:
    """Import the output and error files of batches into the run that asked. The files may be in any
    order, incomplete or given twice. The command of the run then continues with the answers, and
    repeats the requests that failed with a temporary error.
    """
    from harness.pipeline.batch_import import import_answers
    from harness.registry import load_plugins

    with _locked(run) as folder:
        intake = import_answers(folder, files, load_plugins())
    if json:
        print_json(intake)
    else:
        _print_intake(intake, folder)
    return 0


@batch.command(
    short_help="submit the files of requests to the services of their models",
    epilog=epilog("harness batch submit RUN"),
)
@run_argument
@json_option
def submit(run: str, json: bool) -> int:
    """Upload the files of requests that the run wrote, and create a batch for each. The address and
    key come from the model arguments of the run and from the environment. The run folder records
    what was submitted: a second call submits the remaining files, and no file twice.
    """
    with _locked(run) as folder:
        submitted = []
        for job in _jobs(folder).submit():
            submitted.append(job)
            if not json:
                _print(f"{job.path}: {_requests(job.requests)} to {job.model}: {job.batch_id}")
    if json:
        print_json(submitted)
    elif submitted:
        print(f"when the batches have ended: harness batch collect {folder.path}")
    else:
        print("nothing is left to submit")
    return 0


@batch.command(
    short_help="show the progress of the batches",
    epilog=epilog("harness batch status RUN"),
)
@run_argument
@json_option
def status(run: str, json: bool) -> int:
    """Show the batches of a run: state, requests done and failed, and when the batch expires. The
    services are asked for it; nothing is changed.
    """
    folder, _ = open_run(run)
    found = list(_jobs(folder).statuses())
    if json:
        print_json(found)
        return 0
    from rich.text import Text

    from harness.reporting.grid import plain_table, result_console

    columns = ("model", "batch", "state", "done", "failed", "of", "expires")
    table = plain_table("file", numbers=columns)
    for job, status in ((each.job, each.status) for each in found):
        expires = NOTHING
        if status.expires_at is not None:
            expires = datetime.fromtimestamp(status.expires_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        row = (
            Path(job.path).name, job.model, job.batch_id or NOTHING, status.state,
            f"{status.done:,}", f"{status.failed:,}", f"{status.total or job.requests:,}", expires,
        )  # fmt: skip
        table.add_row(*(Text(clean_text(cell)) for cell in row))
    result_console().print(table)
    return 0


@batch.command(
    short_help="import the answers of batches that have ended",
    epilog=epilog("harness batch collect RUN"),
)
@run_argument
@json_option
def collect(run: str, json: bool) -> int:
    """Download the answers of the batches that have ended, and import them as `harness batch read`
    does. Exit code 4 means that other batches, which are listed, have not ended: run the command
    again later.
    """
    with _locked(run) as folder:
        collected = _jobs(folder).collect()
    if json:
        print_json(collected)
    else:
        for each in (*collected.ended, *collected.unfinished):
            job, status = each.job, each.status
            problem = f": {status.problem}" if status.problem else ""
            _print(
                f"{job.path}: {status.state}, {status.done:,} done and {status.failed:,} failed of "
                f"{status.total or job.requests:,}{problem}"
            )
        if collected.intake is not None:
            _print_intake(collected.intake, folder)
    return UNFINISHED if collected.unfinished else 0


def _jobs(folder: RunFolder) -> BatchJobs:
    from harness.pipeline.batch_jobs import BatchJobs
    from harness.registry import load_plugins

    return BatchJobs(folder, load_plugins())


@contextmanager
def _locked(run: str) -> Iterator[RunFolder]:
    folder, _ = open_run(run)
    folder.lock()
    try:
        yield folder
    finally:
        folder.unlock()


def _print_result(result: RunResult, *, json: bool) -> None:
    from harness.cli.results import print_results

    if json:
        sys.stdout.write(result.to_json())
    else:
        if result.summaries:
            print_results(result)
        for file in result.requests:
            for stage, count in file.stages.items():
                _print(f"{file.path}: {_requests(count)} to {file.model} for {stage}")
            for stage, count in file.same.items():
                _print(f"{file.path}: among these, {_requests(count)} for {stage} too")
        if result.requests:
            print(f"to submit them: harness batch submit {result.folder}")
            print(f"to import answers to them: harness batch read {result.folder} ANSWERS")
        if result.under_way:
            under_way = _requests(result.under_way)
            print(f"{under_way} in progress: harness batch collect {result.folder}")
        if result.status == "done":
            print("nothing is left to ask: the run is done")
        print(f"run folder: {result.folder}", file=sys.stderr)
    print_error(*result.errors)
    sys.stdout.flush()


def _print_intake(intake: ImportResult, folder: RunFolder) -> None:
    again = f", {intake.known:,} were imported before" if intake.known else ""
    print(f"{intake.replies:,} replies imported{again}")
    if intake.final:
        print(f"failed permanently: {causes(intake.final)}")
    if intake.failed:
        print(f"failed, to be repeated: {causes(intake.failed)}")
    if intake.waiting:
        print(f"not answered yet: {intake.waiting:,}; `harness batch write` writes them again")
    print(f"to continue with them, give the command of {folder.path} again")


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count:,} requests"


def _print(line: str) -> None:
    print(clean_text(line))
