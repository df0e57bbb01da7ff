"""`harness score RUN…`: scores and summaries anew from stored records, asking no model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from harness.cli.errors import print_error
from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.results.summary import TaskSummary


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "score",
        help="score stored records again, asking no model",
        description="Compute the scores and summaries of runs anew from their stored records. "
        "No model is asked. Tasks that are not finished are named and left alone.",
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help="the folder of a run")
    parser.add_argument("--json", action="store_true", help="results as one JSON document")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Score every task of every run; the exit code is 0 where all of them could be scored."""
    results = []
    errors: list[HarnessError] = []
    for named in args.runs:
        scored, failed = _score_run(named)
        errors += failed
        results.append(
            {"run": named, "summaries": scored, "errors": [str(error) for error in failed]}
        )
        if not args.json:
            _print_run(named, scored)
    if args.json:
        from harness.cli.json_output import print_json

        print_json({"runs": results})
    for error in errors:
        print_error(error)
    return errors[0].exit_code if errors else 0


def _score_run(named: str) -> tuple[list[TaskSummary], list[HarnessError]]:
    from harness.cli.kept_runs import open_run
    from harness.plugin_manager import load_plugins
    from harness.results.scoring import score_task

    try:
        folder, manifest = open_run(named)
        folder.lock()
    except HarnessError as error:
        return [], [error]
    summaries: list[TaskSummary] = []
    errors: list[HarnessError] = []
    try:
        for name, entry in manifest.tasks.items():
            try:
                benchmark = load_plugins().benchmark(entry.task().benchmark)
                summaries.append(score_task(folder, manifest, name, benchmark))
            except HarnessError as error:
                errors.append(error)
    finally:
        folder.unlock()
    return summaries, errors


def _print_run(named: str, summaries: list[TaskSummary]) -> None:
    from harness.reporting.tables import print_summaries
    from harness.reporting.text import clean_text

    print(f"run {clean_text(named)}: {len(summaries)} tasks scored\n", flush=True)
    print_summaries(summaries)
