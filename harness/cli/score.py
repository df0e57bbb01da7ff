"""`harness score RUN…`: scores from stored records; calls no model."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from harness.base.errors import HarnessError
from harness.cli.command import command, option
from harness.cli.kept_runs import (
    NamedRun,
    labels_of_runs,
    named_runs,
    open_runs,
    rescored,
    runs_argument,
    set_option,
    tag_option,
    task_option,
)
from harness.cli.output import errors_to, print_error, print_json
from harness.reporting.text import clean_text, counted


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
            labels = labels_of_runs(runs)
            for each in runs:
                _score_run(each, labels)
        if not args.json:
            for each in runs:
                _print_run(each, changed=bool(args.changes), part=args.task is not None)
    if args.json:
        print_json({"runs": [each.as_json() for each in runs]})
    errors = [error for each in runs for error in each.errors]
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


def _score_run(run: NamedRun, labels: Mapping[str, str]) -> None:
    from harness.scoring.finished_task import finished_task
    from harness.scoring.score_run import score_task

    if run.opened is None:
        return
    folder, manifest = run.opened
    try:
        folder.lock()
    except HarnessError as error:
        run.errors.append(error)
        return
    try:
        for name, benchmark in run.benchmarks.items():
            with errors_to(run.errors.append):
                score_task(folder, manifest, name, benchmark)
                label = labels[manifest.run_id]
                run.kept.append(finished_task(folder, manifest, name, benchmark, label=label))
    finally:
        folder.unlock()
