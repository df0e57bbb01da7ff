"""`harness replies RUN FILE…`: the answers of batches taken into the run that asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.cli.command import PATH, argument, command, option
from harness.cli.output import print_json


@command("harness replies RUN answers.jsonl errors.jsonl")
@argument(
    "run", metavar="RUN", candidates="runs", help="the folder of the run that asked",
)  # fmt: skip
@argument(
    "files", metavar="FILE", nargs=-1, required=True, type=PATH,
    help="answers, as the batch service gave them",
)  # fmt: skip
@option("--json", is_flag=True, help="what was taken in, as JSON")
def replies(run: str, files: Sequence[Path], json: bool) -> int:
    """Take the output and error files of batches into the run whose questions they answer. Their
    order is free, parts may be missing, and the same file may come twice. The run's command then
    uses the answers and goes on; what failed in passing is asked again.
    """
    from harness.cli.kept_runs import open_run
    from harness.pipeline.intake import take_in
    from harness.plugin_manager import load_plugins
    from harness.reporting.text import causes

    folder, _ = open_run(run)
    folder.lock()
    try:
        intake = take_in(folder, files, load_plugins())
    finally:
        folder.unlock()
    if json:
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
