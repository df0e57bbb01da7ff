"""`harness requests`: a run whose questions are written to a file instead of being sent."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.command import PATH, Option, command
from harness.cli.output import print_error
from harness.cli.run_options import RunCommand, settings_from
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.cli.settings_sources import EffectiveSettings
    from harness.pipeline.run import RunResult

SENSELESS = ("dry_run", "rescore_only", "print_server_command", "retry_failures")


@command(
    "harness requests --model openai:gpt-x --tasks perrec --out next.jsonl",
    cls=RunCommand,
    params=[
        Option(
            ["--out"],
            metavar="FILE",
            type=PATH,
            required=True,
            help="where the requests go; several models have a file each, as FILE.MODEL.jsonl",
        )
    ],
)
@click.pass_obj
def requests(held: EffectiveSettings, /, out: Path, **options: Any) -> int:
    """Take the options of a run, and write what its models would be asked next to a file in the
    OpenAI batch format. `harness replies RUN FILE` takes the answers in; the same command then
    writes what follows from them, until nothing is left to ask. Models that take no batches (all
    but openai) are asked as in a run.
    """
    import asyncio

    from harness.cli.run import print_settings
    from harness.pipeline.outbox import refuse_existing
    from harness.pipeline.run import arun
    from harness.reporting.display import make_display
    from harness.reporting.overview import print_results

    for other in SENSELESS:
        if options[other]:
            raise UsageError(
                f"--{other} means nothing to `harness requests`",
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
        _tell(result)
    for error in result.errors:
        print_error(error)
    return result.exit_code


def _tell(result: RunResult) -> None:
    """Say which files were written, and what to do with them."""
    from harness.reporting.text import clean_text

    for file in result.requests:
        for stage, many in file.stages.items():
            requests = "1 request" if many == 1 else f"{many:,} requests"
            print(clean_text(f"{file.path}: {requests} to {file.model} for {stage}"))
    if result.requests:
        print(f"when they are answered: harness replies {result.folder} ANSWERS")
    elif result.status == "done":
        print("nothing is left to ask: the run is done")
    print(f"run folder: {result.folder}", file=sys.stderr)
