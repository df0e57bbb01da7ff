"""`harness score RUN…`: scores from stored records; calls no model."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from harness.cli.command import command, option
from harness.cli.kept_runs import (
    NamedRun,
    named_runs,
    open_runs,
    opened,
    rescored,
    runs_argument,
    set_option,
    tag_option,
    task_option,
)
from harness.cli.output import errors_to, print_error, print_json
from harness.reporting.text import clean_text, counted

if TYPE_CHECKING:
    from harness.runs.manifest import Manifest
    from harness.runs.run_folder import RunFolder


@command("harness score RUN", "harness score RUN --set min_support=2")
@runs_argument
@tag_option()
@task_option
@set_option
@option("--json", is_flag=True, help="results as one JSON document")
def score(**options: Any) -> int:
    """Score runs again from their stored records, and update their summaries. No model is called.

    Unfinished tasks are reported and skipped.
    """
    args = SimpleNamespace(**options)
    runs = open_runs(named_runs(args.runs, args.tag), args.task, args.tag)
    with contextlib.ExitStack() as stack:
        if args.changes:
            stack.enter_context(rescored(args.changes, runs))
        else:
            for run, folder, manifest in opened(runs):
                with errors_to(run.errors.append):
                    _score_run(run, folder, manifest)
        if not args.json:
            for run in runs:
                _print_run(run, changed=bool(args.changes), part=args.task is not None)
    if args.json:
        print_json({"runs": [run.as_json() for run in runs]})
    errors = [error for run in runs for error in run.errors]
    print_error(*errors)
    return errors[0].exit_code if errors else 0


def _print_run(run: NamedRun, *, changed: bool, part: bool) -> None:
    """Print the short table of one run, unless a part of several tasks was scored.

    Everything about the scored tasks follows if the table is left out or no run keeps the scores.
    """
    from harness.cli.results import print_short
    from harness.reporting.tables import print_summaries
    from harness.scoring.means import means_of

    print(f"run {clean_text(run.named)}: {counted(len(run.kept), 'task')} scored\n", flush=True)
    if run.opened is None or not run.kept:
        return
    folder, manifest = run.opened
    summaries = [task.summary for task in run.kept]
    tasks = {task.task.name: task for task in run.kept}
    part = part and len(manifest.tasks) > 1
    if not part:
        print_short(folder, manifest, summaries, means_of(manifest, summaries, tasks.__getitem__))
    if changed and not part:
        print()
    if changed or part:
        print_summaries(summaries)


def _score_run(run: NamedRun, folder: RunFolder, manifest: Manifest) -> None:
    from harness.scoring.score_run import score_task

    folder.lock()
    try:
        for name, benchmark in run.benchmarks.items():
            with errors_to(run.errors.append):
                score_task(folder, manifest, name, benchmark)
                run.read(name)
    finally:
        folder.unlock()
