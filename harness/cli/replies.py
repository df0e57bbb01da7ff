"""`harness replies RUN FILE…`: the answers of batches taken into the run that asked."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "replies",
        help="take in the answers to what `harness requests` wrote",
        description="Take the output and error files of batches into the run whose questions they "
        "answer. Their order is free, parts may be missing, and the same file may come twice. The "
        "run's command then uses the answers and goes on; what failed in passing is asked again.",
    )
    parser.add_argument("run", metavar="RUN", help="the folder of the run that asked")
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="answers, as the batch service gave them",
    )
    parser.add_argument("--json", action="store_true", help="what was taken in, as JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Take the answers in; the exit code."""
    from harness.cli.json_output import print_json
    from harness.cli.kept_runs import open_run
    from harness.pipeline.intake import take_in
    from harness.plugin_manager import load_plugins
    from harness.reporting.text import causes

    folder, _ = open_run(args.run)
    folder.lock()
    try:
        intake = take_in(folder, args.files, load_plugins())
    finally:
        folder.unlock()
    if args.json:
        print_json(intake)
        return 0
    again = f", {intake.known:,} were there already" if intake.known else ""
    print(f"{intake.replies:,} replies taken in{again}")
    if intake.final:
        print(f"failed for good: {causes(intake.final)}")
    if intake.failed:
        print(f"failed, to be asked again: {causes(intake.failed)}")
    if intake.waiting:
        print(f"without an answer yet: {intake.waiting:,}; `harness requests` writes them again")
    print(f"the command that began {folder.path} goes on with what came")
    return 0
