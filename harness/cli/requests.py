"""`harness requests`: a run whose questions are written to a file instead of being sent."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.pipeline.run import RunResult

SENSELESS = ("dry_run", "rescore_only", "print_server_command", "retry_failures")


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser."""
    from harness.cli.run import add_options

    parser = subparsers.add_parser(
        "requests",
        help="write a run's next questions to a file, to be sent as a batch",
        description="Take the options of a run, and write what its models would be asked next to "
        "a file in the OpenAI batch format. `harness replies RUN FILE` takes the answers in; the "
        "same command then writes what follows from them, until nothing is left to ask. Models "
        "that take no batches (all but openai) are asked as in a run.",
    )
    parser.add_argument(
        "--out", metavar="FILE", type=Path, required=True,
        help="where the requests go; several models have a file each, as FILE.MODEL.jsonl",
    )  # fmt: skip
    add_options(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Write the requests; the exit code."""
    import asyncio

    from harness.cli.errors import print_error
    from harness.cli.run import settings_from, tell_settings
    from harness.pipeline.outbox import refuse_existing
    from harness.pipeline.run import arun
    from harness.reporting.display import make_display
    from harness.reporting.overview import print_results

    for other in SENSELESS:
        if getattr(args, other):
            raise UsageError(
                f"--{other} means nothing to `harness requests`",
                hint=f"leave --{other} out, or give it to `harness run`",
            )
    settings = settings_from(args)
    refuse_existing(args.out)
    tell_settings(args.held, quiet=args.quiet)
    display = make_display(quiet=args.quiet, json=args.json)
    result = asyncio.run(arun(settings, display=display, handle_signals=True, requests_to=args.out))
    if args.json:
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
