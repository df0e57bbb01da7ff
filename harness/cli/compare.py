"""`harness compare` and `harness score`: stored scores, compared or made again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from harness.base.errors import DataError, HarnessError, UsageError, one_of
from harness.cli.command import PATH, command, errors_to, option, print_error, print_json
from harness.cli.runs import (
    NamedRun,
    label_runs,
    open_run,
    open_runs,
    opened,
    read_finished,
    read_rescored,
    runs_argument,
    set_option,
    tag_option,
    task_option,
)
from harness.cli.show import run_name
from harness.comparison.compare_runs import (
    ComparedTasks,
    check_slice,
    compare_methods,
    compare_tasks,
)
from harness.comparison.document import ComparisonDocument, write_comparisons
from harness.comparison.gates import (
    Gate,
    GatedRun,
    check_base,
    gates_of,
    metrics_by_task,
    with_gates,
)
from harness.comparison.matching import HOW_TO_COMPARE
from harness.pipeline.settings import task_names
from harness.reporting.text import clean_text, counted
from harness.runs.atomic_files import atomic_write

GATE_FAILED = 4


@command(
    "harness compare step-2000 step-1000",
    "harness compare --tag week=47 --against step-1000",
    "harness compare RUN RUN --metric ig_p --metric is",
    "harness compare RUN RUN --by history --gate 'perrec_hard.ptc>-0.02'",
    "harness compare RUN --tasks usersum_yelp,usersum_yelp_hc",
)
@runs_argument
@tag_option()
@option(
    "--against", metavar="RUN", candidates="runs",
    help="each run minus this one, with intervals; by default minus the second of two, or minus "
    "the best",
)  # fmt: skip
@option(
    "--metric", metavar="NAME", multiple=True,
    help="compare this metric, not the main one of each task; may be given again",
)  # fmt: skip
@option("--by", metavar="SLICE", help="compare within each part of the data too, such as history")
@option(
    "--gate", metavar="TASK.METRIC>BOUND", multiple=True,
    help="exit with 4 unless the interval of the difference from the base, which is the second of "
    "two runs or that of --against, lies beyond BOUND, with 1 if that is undecided; may be given "
    "again",
)  # fmt: skip
@option(
    "--tasks", metavar="TASK,TASK", help="compare tasks of one run on the same people, not runs"
)
@task_option
@set_option
@option("--force", is_flag=True, help="compare runs even if their settings differ, and mark them")
@option("--oracle", metavar="FILE", type=PATH, help="merge the runs' oracle with that of FILE")
@option("--export_oracle", metavar="FILE", type=PATH, help="write the merged oracle to FILE")
@option("--output", metavar="FILE", type=PATH, help="write the comparison to FILE as JSON")
@option(
    "--verbose", is_flag=True,
    help="compare all metrics and all pairs of runs, which makes each p larger, and print the "
    "units that changed most, each run's own values, counts and notes",
)  # fmt: skip
@option("--json", is_flag=True, help="the comparison as one JSON document")
def compare(**options: Any) -> int:
    """Compare runs of the same tasks by their stored scores: which is better, and how sure is
    that? No model is called, and no run is changed.

    The values are on the units that all runs share. Of two runs the difference is the first minus
    the second; of more it is each minus the best by that metric, or each minus that of --against. A
    gate is on this difference. If a benchmark has an oracle, which is what its runs found together,
    the runs are scored against their common one.
    """
    args = SimpleNamespace(**options)
    methods = args.tasks is not None
    document, errors = compared_methods(args) if methods else compared_document(args)
    _print(args, document)
    alone = [len(one.runs) < 2 and bool(one.refused) for one in document.comparisons]
    if not errors and not methods and alone and all(alone):
        errors = [
            HarnessError(
                "nothing was compared: the runs differ in more than their candidates",
                expected="at least two runs that agree in the rest",
                hint=HOW_TO_COMPARE,
            )
        ]
    print_error(*errors)
    return exit_code(document, errors)


def compared_document(args: SimpleNamespace) -> tuple[ComparisonDocument, list[HarnessError]]:
    """The comparison that the options ask for, and the errors of runs and tasks not in it."""
    only = [args.task] if args.task else []
    runs = open_runs(args.runs, args.tag, only=only)
    base = None
    if args.against is not None:
        # The only one of these runs with that label, or any run; it stands before them.
        manifests = [manifest for _, _, manifest in opened(runs)]
        named = [manifest for manifest in manifests if manifest.label == args.against]
        base = (named[0] if len(named) == 1 else open_run(args.against)[1]).run_id
        if base not in {manifest.run_id for manifest in manifests}:
            runs = label_runs([*open_runs([args.against], {}, only=only), *runs])
    _check_oracle_options(args, runs)
    gates = _gates(args, runs)
    with TemporaryDirectory(prefix="harness-score-") as scratch:
        if args.changes:
            read_rescored(runs, args.changes, scratch)
        else:
            read_finished(runs)
        found = _compared(args, runs, base, gates)
        document = with_gates(found.document(), gates, _gated(runs), base, found.failed)
    return document, [*(error for each in runs for error in each.errors), *found.failed]


def exit_code(document: ComparisonDocument, errors: Sequence[HarnessError]) -> int:
    """That of the first error; with gates 1 for an error or an undecided gate, else 4 if a gate
    does not hold."""
    held = [gate.holds for gate in document.gates or ()]
    if errors and not held:
        return errors[0].exit_code
    if errors or None in held:
        return 1
    return GATE_FAILED if False in held else 0


def compared_methods(args: SimpleNamespace) -> tuple[ComparisonDocument, list[HarnessError]]:
    """The comparison of tasks of one run that the options ask for, and the errors of the run."""
    names = list(dict.fromkeys(task_names(args.tasks)))
    fits = {"--task": args.task, "--gate": args.gate, "--oracle": args.oracle,
            "--export_oracle": args.export_oracle, "--set": args.changes}  # fmt: skip
    if other := [option for option, given in fits.items() if given]:
        raise UsageError(f"--tasks compares tasks of one run, without {other[0]}", where="--tasks")
    runs = open_runs(args.runs, args.tag)
    if len(runs) != 1 or len(names) < 2:
        raise UsageError(
            "--tasks compares several tasks of one run",
            where="--tasks",
            found=f"{counted(len(runs), 'run')} and {counted(len(names), 'task')}",
            expected="harness compare RUN --tasks TASK,TASK",
        )
    (run,) = runs
    if run.opened is not None:
        for name in names if args.against is None else [*names, args.against]:
            one_of(name, run.opened[1].tasks, f"the run has no task {name!r}")
        run.benchmarks = {name: run.benchmarks[name] for name in names if name in run.benchmarks}
        read_finished(runs)
    found = ComparedTasks([], [], [])
    if len(run.kept) > 1:
        compared = compare_methods(
            run.kept,
            metrics=args.metric,
            everything=args.verbose,
            force=args.force,
            against=args.against,
            by=args.by,
        )
        found.compared.append(compared)
        if args.by is not None:
            check_slice(args.by, found.compared)
    return found.document(), run.errors


def _gates(args: SimpleNamespace, runs: Sequence[NamedRun]) -> tuple[Gate, ...]:
    if not args.gate:
        return ()
    check_base(len(runs), args.against)
    gates = gates_of(args.gate, _gated(runs))
    for gate in gates:
        if left_out := [task for task in gate.tasks if args.task not in (None, task)]:
            raise UsageError(
                f"`--task` leaves {', '.join(left_out)} out",
                where="--gate",
                found=gate.text,
                expected=f"a gate on {args.task}, or no `--task`",
            )
    return gates


def _gated(runs: Sequence[NamedRun]) -> list[GatedRun]:
    return [
        GatedRun(
            run.label, manifest, run.benchmarks, frozenset(task.task.name for task in run.kept)
        )
        for run, _, manifest in opened(runs)
    ]


def _check_oracle_options(args: SimpleNamespace, runs: Sequence[NamedRun]) -> None:
    """Raise UsageError if an oracle option is given and not exactly one task has an oracle."""
    if args.oracle is None and args.export_oracle is None:
        return
    option = "--oracle" if args.oracle is not None else "--export_oracle"
    tasks = {name: benchmark for run in runs for name, benchmark in run.benchmarks.items()}
    with_oracle = [name for name, benchmark in tasks.items() if benchmark.oracle is not None]
    if tasks and not with_oracle:
        raise UsageError(
            "no benchmark of these runs has an oracle",
            where=option,
            found=", ".join(sorted({benchmark.name for benchmark in tasks.values()})),
            expected="runs of a benchmark whose scores depend on a set of runs",
        )
    if len(with_oracle) > 1:
        raise UsageError(
            "an oracle belongs to one task, and several tasks of the runs have one",
            where=option,
            found=", ".join(with_oracle),
            expected="--task NAME with one of them",
        )


def _compared(
    args: SimpleNamespace, runs: Sequence[NamedRun], base: str | None, gates: Sequence[Gate]
) -> ComparedTasks:
    """The comparison of each task that can be compared; writes the oracle if that is asked for."""
    given = (args.oracle, args.export_oracle, args.output)
    found = compare_tasks(
        (task for each in runs for task in each.kept),
        metrics=args.metric,
        everything=args.verbose,
        against=base,
        force=args.force,
        oracle=args.oracle,
        alone=any(file is not None for file in given),
        by=args.by,
        gated=metrics_by_task(gates),
    )
    if len(runs) > 1:
        for error in found.skipped:
            print_error(str(error))
    if not found.compared and not found.failed:
        alone = args.oracle or args.export_oracle
        written = args.output or args.export_oracle
        found.failed.append(
            DataError(
                "there is nothing to compare" + ("; no file was written" if written else ""),
                expected="at least two runs that finished the same task"
                + (", or one run of a benchmark with an oracle" if alone else ""),
            )
        )
    for each in [*found.compared]:
        oracle = each.tasks[0].benchmark.oracle
        if oracle is not None and args.export_oracle is not None:
            try:
                data = oracle.write(each.oracle)
                atomic_write(args.export_oracle, data, option="--export_oracle")
                print(f"oracle written: {args.export_oracle}", file=sys.stderr)
            except HarnessError as error:
                found.compared.remove(each)
                found.failed.append(error)
    return found


def _print(args: SimpleNamespace, document: ComparisonDocument) -> None:
    if args.output is not None and document.comparisons:
        write_comparisons(args.output, document)
    if args.json:
        print_json(document)
        return
    from harness.reporting.comparison_tables import print_comparison, print_gates

    if document.comparisons:
        print_comparison(document, against=args.against is not None, verbose=args.verbose)
    if document.gates:
        print_gates(document)


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
    runs = open_runs(args.runs, args.tag, only=[args.task] if args.task else [])
    with TemporaryDirectory(prefix="harness-score-") as scratch:
        if args.changes:
            read_rescored(runs, args.changes, scratch)
        else:
            _score_runs(runs)
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
    from harness.reporting.tables import print_costs, print_metrics, print_short_table
    from harness.scoring.means import means_of

    print(f"run {clean_text(run.named)}: {counted(len(run.kept), 'task')} scored\n", flush=True)
    if run.opened is None or not run.kept:
        return
    folder, manifest = run.opened
    summaries = [task.summary for task in run.kept]
    tasks = {task.task.name: task for task in run.kept}
    part = part and len(manifest.tasks) > 1
    if not part:
        means = means_of(manifest, summaries, tasks.__getitem__)
        print_short_table(manifest, summaries, means, run=None if changed else run_name(folder))
    if changed and not part:
        print()
    if changed or part:
        print_metrics(summaries)
        print_costs({one.task: one.stages for one in summaries})


def _score_runs(runs: Sequence[NamedRun]) -> None:
    from harness.scoring.score_run import score_task

    for run, folder, manifest in opened(runs):
        with errors_to(run.errors.append):
            folder.lock()
            try:
                for name, benchmark in run.benchmarks.items():
                    with errors_to(run.errors.append):
                        score_task(folder, manifest, name, benchmark)
                        run.read(name)
            finally:
                folder.unlock()
