"""`harness analyse NAME RUN…`: what stored runs tell beyond their scores, asking no model."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harness.cli.errors import print_error
from harness.cli.reports import add_named_parser
from harness.cli.strict import refuse_problems
from harness.errors import DataError, HarnessError
from harness.hookspecs import ANY_BENCHMARK

if TYPE_CHECKING:
    from pathlib import Path

    from harness.pipeline.tools import Analysis
    from harness.plugin_manager import AnalysisRegistration, Plugins
    from harness.results.folder import RunFolder
    from harness.results.kept import KeptTask
    from harness.results.manifest import Manifest
    from harness.results.report import Report
    from harness.tasks.task import Group


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser."""
    parser = add_named_parser(
        subparsers,
        "analyse",
        an="an analysis",
        help="what stored runs tell beyond their scores",
        usage="harness analyse [--json] | NAME RUN… [OPTION…]",
        description="Analyse stored runs, asking no model. Without a name, the analyses there "
        "are; `harness analyse NAME --help` shows the options of one.",
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """List the analyses, or carry one out; the exit code."""
    from harness.plugin_manager import load_plugins

    plugins = load_plugins()
    if args.name is None:
        return _list(plugins, json=args.json)
    return _analyse(plugins, plugins.analysis(args.name), args)


def print_group(group: Group, folder: Path) -> None:
    """Print the analysis of a group over those of its tasks that a run has finished."""
    from harness.cli.reports import made, ran
    from harness.plugin_manager import load_plugins
    from harness.reporting.sheets import print_report
    from harness.results.folder import RunFolder

    if group.analysis is None:
        return
    plugins = load_plugins()
    try:
        registration = plugins.analysis(group.analysis)
        run_folder = RunFolder(folder)
        manifest = run_folder.manifest()
        tasks = [
            _kept(run_folder, manifest, name, plugins)
            for name in _names(manifest, registration.benchmark)
            if name in group.members and run_folder.summary(name).exists()
        ]
        if tasks:
            analysis = made(registration)
            report = ran(registration, lambda: analysis.run(tasks, analysis.options()))
            print_report(stamped(report, tasks))
    except HarnessError as error:
        print_error(error)


def stamped(report: Report, tasks: Sequence[KeptTask]) -> Report:
    """The report with notes in front: what must not stand beside published results, and what
    is one repeat of several."""
    import msgspec

    notes = [note for task in tasks if (note := _only_one_of(task))]
    report = msgspec.structs.replace(report, notes=(*dict.fromkeys(notes), *report.notes))
    reasons: dict[str, list[str]] = {}
    for task in tasks:
        for why in task.summary.not_comparable_because:
            reasons.setdefault(why, []).append(task.label)
    if not reasons:
        return report
    # An analysis may leave runs out, so a reason of some says whose it is.
    told = [
        why if len(whose) == len(tasks) else f"{why} ({', '.join(dict.fromkeys(whose))})"
        for why, whose in reasons.items()
    ]
    note = f"NOT COMPARABLE with published results: {', '.join(told)}"
    return msgspec.structs.replace(report, notes=(note, *report.notes))


def _only_one_of(task: KeptTask) -> str:
    """That the run has more repeats of this task than the one that is analysed."""
    from harness.tasks.repeats import task_and_repeat

    name, number = task_and_repeat(task.task.name)
    others = [each for each in task.manifest.tasks if task_and_repeat(each)[0] == name]
    if len(others) < 2:
        return ""
    return f"{name}: repeat {number} of {len(others)} ({task.label}); --task names another"


def _list(plugins: Plugins, *, json: bool) -> int:
    from harness.cli.json_output import print_json
    from harness.cli.reports import listed, print_tools

    known = listed(plugins, plugins.analyses)
    if json:
        fields = ("name", "benchmark", "description")
        print_json({"analyses": [{name: getattr(one, name) for name in fields} for one in known]})
        return 0
    for benchmark in sorted({one.benchmark for one in known}):
        print("any benchmark:" if benchmark == ANY_BENCHMARK else f"{benchmark}:")
        print_tools(one for one in known if one.benchmark == benchmark)
    if not known:
        print("no plugin offers an analysis")
    return 0


def _analyse(plugins: Plugins, registration: AnalysisRegistration, args: argparse.Namespace) -> int:
    from harness.cli.reports import check_plot, made, ran, show
    from harness.cli.struct_options import struct_from

    analysis = made(registration)
    given = ["--json", *args.rest] if args.json else args.rest
    chosen = _parser(registration, analysis).parse_intermixed_args(given)
    options = struct_from(chosen, analysis.options)
    refuse_problems(chosen)
    check_plot(chosen)
    found = _found(chosen, registration, plugins)
    for problem in found.left_out:
        print_error(problem)
    if not found.tasks:
        raise _nothing(found, registration)
    tasks = _labelled(found.tasks)
    report = stamped(ran(registration, lambda: analysis.run(tasks, options)), tasks)
    show(report, chosen, {
        "analysis": registration.name,
        "tasks": [
            {"task": task.task.name, "run": task.run, "label": task.label} for task in tasks
        ],
        "left_out": [str(problem) for problem in found.left_out],
    })  # fmt: skip
    return found.exit_code


def _parser(registration: AnalysisRegistration, analysis: Analysis) -> argparse.ArgumentParser:
    from harness.cli.main import Parser
    from harness.cli.reports import add_report_options
    from harness.cli.struct_options import add_struct_options

    parser = Parser(
        prog=f"harness analyse {registration.name}",
        description=f"{analysis.description.rstrip('.')}; for runs of "
        f"{_told(registration.benchmark)}.",
        allow_abbrev=False,
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help="the folder of a run")
    parser.add_argument(
        "--task", metavar="NAME", action="append", help="this task only; may be given several times"
    )
    add_report_options(parser)
    add_struct_options(parser, analysis.options)
    return parser


@dataclass
class _Found:
    """The tasks that runs hold, and what had to be left out."""

    tasks: list[KeptTask] = field(default_factory=list)
    left_out: list[HarnessError] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)
    exit_code: int = 0


def _found(
    args: argparse.Namespace, registration: AnalysisRegistration, plugins: Plugins
) -> _Found:
    from harness.results.scoring import Unfinished
    from harness.tasks.repeats import task_and_repeat

    found = _Found()
    for folder, manifest in _runs(args.runs, found):
        for name in _names(manifest, registration.benchmark):
            found.names[name] = None
            # One sample of a run: its repeats are no further tasks.
            if name not in args.task if args.task else task_and_repeat(name)[1] > 1:
                continue
            try:
                found.tasks.append(_kept(folder, manifest, name, plugins))
            except HarnessError as error:
                found.left_out.append(error)
                if not isinstance(error, Unfinished):
                    found.exit_code = error.exit_code
    if args.task and found.names:
        from harness.cli.kept_runs import one_of

        for name in args.task:
            one_of(name, found.names, f"task of {_told(registration.benchmark)} named")
    return found


def _runs(names: list[str], found: _Found) -> Iterator[tuple[RunFolder, Manifest]]:
    """Each run once; one that cannot be opened does not keep the others from being analysed.

    A folder named twice is passed over, a copy in another folder is told.
    """
    from harness.cli.kept_runs import open_run

    seen: dict[str, Path] = {}
    for named in names:
        try:
            folder, manifest = open_run(named)
        except HarnessError as error:
            found.left_out.append(error)
            found.exit_code = error.exit_code
            continue
        place = folder.path.resolve()
        if manifest.run_id not in seen:
            seen[manifest.run_id] = place
            yield folder, manifest
        elif place != seen[manifest.run_id]:
            first = seen[manifest.run_id]
            found.left_out.append(
                DataError(f"this run is left out: it is a copy of {first}", where=str(folder.path))
            )


def _names(manifest: Manifest, benchmark: str) -> list[str]:
    return [
        name
        for name, entry in manifest.tasks.items()
        if benchmark in (ANY_BENCHMARK, entry.task().benchmark)
    ]


def _told(benchmark: str) -> str:
    return "any benchmark" if benchmark == ANY_BENCHMARK else f"the benchmark {benchmark!r}"


def _kept(folder: RunFolder, manifest: Manifest, name: str, plugins: Plugins) -> KeptTask:
    from harness.results.kept import kept_task
    from harness.results.scoring import Unfinished, how_to_finish, unfinished_stages

    if open_stages := unfinished_stages(manifest.tasks[name]):
        raise Unfinished(
            f"task {name!r} is left out: it is not finished",
            where=str(folder.path),
            found=f"stages with items that have no record: {', '.join(open_stages)}",
            hint=how_to_finish(manifest),
        )
    benchmark = plugins.benchmark(manifest.tasks[name].task().benchmark)
    return kept_task(folder, manifest, name, benchmark, label=manifest.model)


def _labelled(tasks: list[KeptTask]) -> list[KeptTask]:
    """The tasks under the names of their models; the run's name stands by where one repeats."""
    runs: dict[tuple[str, str], set[str]] = {}
    for task in tasks:
        runs.setdefault((task.task.name, task.label), set()).add(task.run)
    repeated = {label for (_, label), of_label in runs.items() if len(of_label) > 1}
    return [
        replace(task, label=f"{task.label} {task.run}") if task.label in repeated else task
        for task in tasks
    ]


def _nothing(found: _Found, registration: AnalysisRegistration) -> DataError:
    there = ", ".join(found.names)
    return DataError(
        f"there is nothing to analyse for {registration.name!r}",
        found=f"no usable task among {there}" if there else "no task of that benchmark",
        expected=f"runs with a finished task of {_told(registration.benchmark)}",
    )
