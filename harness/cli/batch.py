"""`harness batch`: a run whose questions go to batch services, or to files that others send."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import UsageError
from harness.cli.command import PATH, Command, CommandGroup, Option, argument, epilog, json_option
from harness.cli.output import print_error, print_json
from harness.cli.run_options import RunCommand, settings_from

if TYPE_CHECKING:
    from harness.cli.settings_sources import EffectiveSettings
    from harness.pipeline.batch_import import Intake
    from harness.pipeline.batch_jobs import BatchJobs, JobStatus
    from harness.pipeline.run import RunResult
    from harness.runs.run_folder import RunFolder

SENSELESS = ("dry_run", "rescore_only", "print_server_command", "retry_failures")

UNFINISHED = 4
"""The exit code where batches have not ended."""

run_argument = argument(
    "run", metavar="RUN", candidates="runs", help="the folder of the run that asked"
)


class _Batch(CommandGroup):
    """The commands of batches, which help lists."""

    command_class = Command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def _bare() -> None:
    if click.get_current_context().invoked_subcommand is None:
        raise UsageError(
            "`harness batch` is given no command",
            expected="one of " + ", ".join(batch.commands),
            hint="`harness batch --help` says what each does",
        )


batch = _Batch(
    "batch",
    callback=_bare,
    subcommand_metavar="COMMAND [OPTION…]",
    help="Ask in batches: write a run's next questions to files, submit these to the services of "
    "their models, and collect the answers; then write again, until nothing is left to ask.",
    epilog=epilog(
        "harness batch write --model openai:gpt-x --tasks perrec --out next.jsonl",
        "harness batch submit RUN",
        "harness batch status RUN",
        "harness batch collect RUN",
    ),
)


@batch.command(
    "write",
    cls=RunCommand,
    params=[
        Option(
            ["--out"], metavar="FILE", type=PATH, required=True,
            help="where the requests go; several models have a file each, as FILE.MODEL.jsonl",
        )
    ],
    short_help="write a run's next questions to files of requests",
    epilog=epilog("harness batch write --model openai:gpt-x --tasks perrec --out next.jsonl"),
)  # fmt: skip
@click.pass_obj
def write(held: EffectiveSettings, /, out: Path, **options: Any) -> int:
    """Take the options of a run, and write what its models would be asked next to a file in the
    OpenAI batch format. `harness batch submit RUN` sends it; once its answers are taken in, the
    same command writes what follows from them, until nothing is left to ask. Models that take no
    batches (all but openai) are asked as in a run.
    """
    import asyncio

    from harness.cli.run import print_settings
    from harness.pipeline.batch_requests import refuse_existing
    from harness.pipeline.run import arun
    from harness.reporting.display import make_display
    from harness.reporting.overview import print_results

    for other in SENSELESS:
        if options[other]:
            raise UsageError(
                f"--{other} means nothing to `harness batch write`",
                hint=f"leave --{other} out, or give it to `harness run`",
            )
    quiet, json = options["quiet"], options["json"]
    settings = settings_from(options)
    refuse_existing(out)
    print_settings(held, quiet=quiet)
    display = make_display(quiet=quiet, json=json)
    result = asyncio.run(arun(settings, display=display, handle_signals=True, requests_to=out))
    if json:
        sys.stdout.write(result.to_json())
    else:
        if result.summaries:
            print_results(result.summaries, str(result.folder))
        _print_requests(result)
    for error in result.errors:
        print_error(error)
    return result.exit_code


@batch.command(
    "read",
    short_help="take in answers that others fetched",
    epilog=epilog("harness batch read RUN answers.jsonl errors.jsonl"),
)
@run_argument
@argument(
    "files", metavar="FILE", nargs=-1, required=True, type=PATH,
    help="answers, as the batch service gave them",
)  # fmt: skip
@json_option
def read(run: str, files: Sequence[Path], json: bool) -> int:
    """Take the output and error files of batches into the run whose questions they answer. Their
    order is free, parts may be missing, and the same file may come twice. The run's command then
    uses the answers and goes on; what failed in passing is asked again.
    """
    from harness.pipeline.batch_import import take_in
    from harness.registry import load_plugins

    with _locked(run) as folder:
        intake = take_in(folder, files, load_plugins())
    if json:
        print_json(intake)
    else:
        _print_intake(intake, folder)
    return 0


@batch.command(
    "submit",
    short_help="send the files of requests to the services of their models",
    epilog=epilog("harness batch submit RUN"),
)
@run_argument
@json_option
def submit(run: str, json: bool) -> int:
    """Upload the files of requests that the run wrote, and create a batch of each. Address and key
    are those of the run's model arguments and of the environment. What was submitted is noted in
    the run folder: given again, the command submits what is left, and no file twice.
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
        print(f"when they are answered: harness batch collect {folder.path}")
    else:
        print("nothing is left to submit")
    return 0


@batch.command(
    "status", short_help="how far the batches are", epilog=epilog("harness batch status RUN")
)
@run_argument
@json_option
def status(run: str, json: bool) -> int:
    """Ask the services how far the run's batches are: state, requests done and failed, and until
    when the service works on them. Nothing is changed.
    """
    from harness.cli.kept_runs import open_run

    folder, _ = open_run(run)
    found = list(_jobs(folder).statuses())
    if json:
        print_json(found)
    else:
        _print_statuses(found)
    return 0


@batch.command(
    "collect",
    short_help="take in the answers of batches that ended",
    epilog=epilog("harness batch collect RUN"),
)
@run_argument
@json_option
def collect(run: str, json: bool) -> int:
    """Download the answers of the batches that ended, and take them in as `harness batch read`
    does. Exit code 4 says that others have not ended, which are named: give the command again.
    """
    with _locked(run) as folder:
        collected = _jobs(folder).collect()
    if json:
        print_json(collected)
    else:
        for each in (*collected.ended, *collected.unfinished):
            _print(_in_short(each))
        if collected.intake is not None:
            _print_intake(collected.intake, folder)
    return UNFINISHED if collected.unfinished else 0


def _jobs(folder: RunFolder) -> BatchJobs:
    from harness.pipeline.batch_jobs import BatchJobs
    from harness.registry import load_plugins

    return BatchJobs(folder, load_plugins())


@contextmanager
def _locked(run: str) -> Iterator[RunFolder]:
    from harness.cli.kept_runs import open_run

    folder, _ = open_run(run)
    folder.lock()
    try:
        yield folder
    finally:
        folder.unlock()


def _print_requests(result: RunResult) -> None:
    """Print which files were written, and what to do with them."""
    for file in result.requests:
        for stage, many in file.stages.items():
            _print(f"{file.path}: {_requests(many)} to {file.model} for {stage}")
    if result.requests:
        print(f"to send them: harness batch submit {result.folder}")
        print(f"sent by others and answered: harness batch read {result.folder} ANSWERS")
    if result.under_way:
        print(f"{_requests(result.under_way)} under way: harness batch collect {result.folder}")
    if result.status == "done":
        print("nothing is left to ask: the run is done")
    print(f"run folder: {result.folder}", file=sys.stderr)


def _print_intake(intake: Intake, folder: RunFolder) -> None:
    from harness.reporting.text import causes

    again = f", {intake.known:,} were there already" if intake.known else ""
    print(f"{intake.replies:,} replies taken in{again}")
    if intake.final:
        print(f"failed for good: {causes(intake.final)}")
    if intake.failed:
        print(f"failed, to be asked again: {causes(intake.failed)}")
    if intake.waiting:
        print(f"without an answer yet: {intake.waiting:,}; `harness batch write` writes them again")
    print(f"the command that began {folder.path} goes on with what came")


def _print_statuses(found: Iterable[JobStatus]) -> None:
    from rich.text import Text

    from harness.reporting.tables import plain_table, result_console
    from harness.reporting.text import NOTHING, clean_text

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


def _in_short(each: JobStatus) -> str:
    job, status = each.job, each.status
    problem = f": {status.problem}" if status.problem else ""
    return (
        f"{job.path}: {status.state}, {status.done:,} done and {status.failed:,} failed of "
        f"{status.total or job.requests:,}{problem}"
    )


def _requests(many: int) -> str:
    return "1 request" if many == 1 else f"{many:,} requests"


def _print(line: str) -> None:
    from harness.reporting.text import clean_text

    print(clean_text(line))
