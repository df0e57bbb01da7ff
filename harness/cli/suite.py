"""`harness suite FILE`: models × tasks × seeds with one command, as a sequence of ordinary runs."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from harness.base.errors import HarnessError, UsageError
from harness.base.hashing import digest
from harness.cli.command import PATH, argument, command, errors_to, option, print_error, print_json
from harness.cli.compare import GATE_FAILED, compare, compared_document
from harness.cli.report import check_folder, write_report
from harness.cli.run_options import RunCommand, settings_from
from harness.cli.runs import kept_runs, open_runs
from harness.cli.settings import argument as text_of
from harness.cli.settings import arguments_text, check_no_secrets, named_setting, usable_arguments
from harness.cli.show import print_result
from harness.contracts.stage import CANDIDATE
from harness.pipeline.settings import LOCAL, RunSettings, task_names
from harness.registry import Plugins, load_plugins
from harness.reporting.text import clean_text
from harness.runs.manifest import Manifest, TaskEntry, task_definition

if TYPE_CHECKING:
    import click

    from harness.comparison.document import ComparisonDocument
    from harness.contracts.report import Report
    from harness.pipeline.desk import Binding
    from harness.pipeline.roles import RoleBinder
    from harness.pipeline.suite import Candidate, FinishedRuns, PlannedSuiteRun, Suite, SuiteRun
    from harness.registry.task_catalogue import Selection

OWN = ("model", "model_args", "tasks", "judge", "seed", "limit", "name")
"""The options of a run that have keys of their own in a suite."""

PAGE = "--report"
"""The option that names the page of a suite."""


@command(
    "harness suite nightly.yaml --dry_run",
    "harness suite nightly.yaml",
    "harness suite nightly.yaml --only night-2026-11-22",
)
@argument("file", metavar="FILE", type=PATH, help="the suite: models, tasks, seeds, gates")
@option("--only", metavar="NAME", help="only this model, or the models of this entry")
@option("--dry_run", is_flag=True, help="print the expected calls, tokens and cost of all and exit")
@option("--retry_failures", is_flag=True, help="ask the failed questions again")
@option(PAGE, metavar="FILE", type=PATH, help="the page about all runs (NAME.html)")
@option("--quiet", is_flag=True, help="only results and errors")
@option("--json", is_flag=True, help="how each run ended, as one JSON document")
def suite(*, file: Path, only: str | None, report: Path | None, **switches: bool) -> int:
    """Run the models of a suite on its tasks, with each of its seeds. The same command continues
    where it stopped: what is done is not run again. A run that fails does not stop the others.
    """
    from harness.pipeline.suite import FinishedRuns, read_suite

    with _sigterm_interrupts():
        found = read_suite(file)
        page = report or Path(f"{found.name}.html")
        check_folder(page, option=PAGE)
        planned = [
            _planned(found, candidate, seed, retry_failures=switches["retry_failures"])
            for candidate in found.chosen(only)
            for seed in found.file.seeds
        ]
        _check(found, planned)
        json = switches["json"]
        if switches["dry_run"]:
            return _dry_run(planned, json=json)
        finished = FinishedRuns(kept_runs(planned[0].settings.output_path), planned, load_plugins())
        runs = _run(planned, finished, quiet=switches["quiet"], json=json)
        return _finish(found, page, runs, _bases(found, finished, runs), json=json)


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does, also between runs."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _bases(suite: Suite, finished: FinishedRuns, runs: Sequence[SuiteRun]) -> dict[int, str]:
    """By seed the folder of the run that gates compare with, which `--only` may have left out."""
    against = suite.file.against
    found = {run.seed: run.folder for run in runs if run.model == against and run.folder}
    for base in (one for one in suite.candidates if one.name == against and suite.file.gates):
        for seed in {*suite.file.seeds} - found.keys():
            planned = _planned(suite, base, seed, retry_failures=False)
            before = finished.find(planned.settings)
            found |= {} if before is None else {seed: str(before)}
    return found


def _planned(
    suite: Suite, candidate: Candidate, seed: int, *, retry_failures: bool
) -> PlannedSuiteRun:
    """One run of the suite, with the settings that `harness run` would have."""
    from harness.pipeline.suite import PlannedSuiteRun, tagged

    file = suite.file
    spec = candidate.spec
    check_no_secrets(spec or candidate.args, where=candidate.where)
    if not spec:
        with usable_arguments("of this model", where=candidate.where):
            given = {name: text_of(value) for name, value in candidate.args.items()}
            spec = f"{candidate.kind}:{arguments_text(given)}"
    words = [f"--model={spec}", f"--name={candidate.name}", f"--seed={seed}"]
    words += [f"--tasks={task}" for task in file.tasks]
    words += [f"--judge={file.judge}"] if file.judge is not None else []
    words += [f"--limit={file.limit}"] if file.limit is not None else []
    # What settings files say of a cluster is not for a suite that asks for this process.
    words += [f"--executor={LOCAL}"] if file.options.get("executor") == LOCAL else []
    ctx = RunCommand("run").make_context("run", words)
    options = [*_options(suite, ctx)]
    ctx.params |= {name: value for name, value, _ in options}
    ctx.params["named_in"] |= {"candidate": candidate.where}
    if file.judge is not None:
        ctx.params["named_in"] |= {"judge": suite.document.where(["judge"])}
    try:
        settings = settings_from({**ctx.params, "retry_failures": retry_failures})
    except UsageError as error:
        ctx.obj.with_source(error, {name: where for name, _, where in options})
        if ":" not in (error.where or ""):
            error.where = f"{candidate.where}, {error.where}" if error.where else candidate.where
        raise
    return PlannedSuiteRun(
        name=candidate.name,
        entry=candidate.entry,
        seed=seed,
        settings=tagged(settings, suite=suite.name, entry=candidate.entry),
    )


def _options(suite: Suite, ctx: click.Context) -> Iterator[tuple[str, Any, str]]:
    """The options of the suite's runs, read as a settings file's are, each with its place."""
    for key, value in suite.file.options.items():
        where = suite.document.where(["options", key], of_key=True)
        if key.replace("-", "_") in OWN:
            raise UsageError(
                f"{key!r} is no option of a suite",
                where=where,
                expected="models, tasks, judge, seeds and limit beside `options`",
            )
        if found := named_setting(key, value, where, ctx, others=("models", *OWN)):
            yield found[0].name, found[1], where


def _check(suite: Suite, planned: Sequence[PlannedSuiteRun]) -> None:
    """Raise UsageError for tasks, models and judges that do not exist, and for two models of one
    identity."""
    from harness.pipeline.roles import RoleBinder

    executor = planned[0].settings.executor
    if executor != LOCAL:
        raise UsageError(
            "the runs of a suite share one process",
            where=suite.document.where(["options", "executor"], of_key=True)
            if "executor" in suite.file.options
            else "executor, from a settings file or HARNESS_EXECUTOR",
            found=f"executor: {executor}",
            expected=f"executor: {LOCAL}",
            hint=f"run the models one by one with `harness --executor {executor} …`, then `harness "
            f"report` on their folders; or put `executor: {LOCAL}` below `options` of the suite",
        )
    plugins = load_plugins()
    check_gates(suite, _selection(suite, planned[0].settings, plugins), plugins)
    seen: dict[str, PlannedSuiteRun] = {}
    for each in planned:
        binder = RoleBinder(each.settings, plugins)
        for role in each.settings.roles:
            _bound(binder, role, each)
        bound = _bound(binder, CANDIDATE, each)
        if bound is None:
            continue
        other = seen.setdefault(digest([bound.key(""), each.seed]), each)
        if other is not each:
            raise UsageError(
                f"{each.name} and {other.name} are the same model",
                where=each.settings.named_in[CANDIDATE],
                found=bound.label,
                expected=f"another model than in {other.settings.named_in[CANDIDATE]}",
                hint="revision= says which weights a server has under one name",
            )


def _bound(binder: RoleBinder, role: str, planned: PlannedSuiteRun) -> Binding | None:
    """The model or judge of a role; None if it cannot be made here, which its run will say."""
    try:
        return binder.bind_given(role)
    except UsageError as error:
        error.where = planned.settings.named_in.get(role, error.where)
        raise
    except HarnessError:
        return None


def _selection(suite: Suite, settings: RunSettings, plugins: Plugins) -> Selection:
    """The tasks of a suite; UsageError at the place of one that does not exist."""
    from harness.registry.task_catalogue import Catalogue

    catalogue = Catalogue(plugins, include_path=settings.include_path)
    for number, names in enumerate(suite.file.tasks):
        try:
            catalogue.select(task_names(names))
        except UsageError as error:
            if ":" not in (error.where or ""):
                error.where = suite.document.where(["tasks", number])
            raise
    return catalogue.select(settings.tasks)


def _dry_run(planned: Sequence[PlannedSuiteRun], *, json: bool) -> int:
    """Print what the runs of all models would ask, and which of them could not be compared; a
    model's seeds ask the same."""
    from harness.pipeline.forecast import rehearse
    from harness.pipeline.preparation import prepare
    from harness.pipeline.suite import Players, players_of_suite, unlike_players
    from harness.reporting.forecast_tables import forecast_report, forecast_rows

    runs: dict[str, list[PlannedSuiteRun]] = {}
    for each in planned:
        runs.setdefault(each.name, []).append(each)
    plugins = load_plugins()
    players: dict[str, Players] = {}
    found = []
    for name, of_model in runs.items():
        prepared = prepare(of_model[0].settings, plugins)
        players[name] = players_of_suite(prepared)
        forecast = asyncio.run(rehearse(of_model[0].settings, plugins, prepared))
        found.append((name, len(of_model), forecast))
    rows, unlike = forecast_rows(found), unlike_players(players)
    if json:
        print_json({"models": rows, "not_comparable": unlike})
    else:
        _print(forecast_report(rows))
        for line in unlike:
            print(clean_text(f"not comparable: {line}"))
    return 0


def _print(report: Report) -> None:
    """Print a report in the width of the tables about single runs."""
    from harness.reporting.grid import WIDTH, print_report, result_console

    print_report(report, result_console(width=WIDTH))


def _run(
    planned: Sequence[PlannedSuiteRun], finished: FinishedRuns, *, quiet: bool, json: bool
) -> list[SuiteRun]:
    """How each run ended, in the order of the suite; those that are done are not run again."""
    from harness.pipeline.suite import SuiteRun, SuiteRunner
    from harness.reporting.display import make_display

    def say(text: str) -> None:
        if not quiet:
            print(text, file=sys.stderr)

    before: dict[str, SuiteRun] = {}
    for each in planned:
        folder = None if each.settings.retry_failures else finished.find(each.settings)
        if folder is not None:
            say(f"{each.label}: done before, {folder}")
            before[each.label] = SuiteRun(
                model=each.name, entry=each.entry, seed=each.seed, status="done", exit_code=0,
                folder=str(folder), before=True,
            )  # fmt: skip
    runner = SuiteRunner(
        display=partial(make_display, quiet=quiet, json=json),
        deliver=(lambda result: None) if json else partial(print_result, json=False, verbose=False),
        say=say,
        complain=print_error,
    )
    asyncio.run(runner.run([each for each in planned if each.label not in before]))
    ended = before | runner.runs
    return [ended[each.label] for each in planned]


def _finish(
    suite: Suite, page: Path, runs: Sequence[SuiteRun], bases: Mapping[int, str], *, json: bool
) -> int:
    """Compare the runs, write the report and print how the runs ended; the exit code of all."""
    from harness.pipeline.suite import exit_code_of
    from harness.reporting.forecast_tables import ending_report

    documents, errors = compared_seeds(suite, runs, bases)
    decided = [gate for each in documents for gate in each.gates or ()]
    written: Path | None = None
    folders = [each.folder for each in runs if each.folder is not None]
    with errors_to(errors.append):
        if folders:
            runs_of_all = open_runs(folders, {})
            names = [Path(folder).name for folder in bases.values()]
            title = f"suite {suite.name}"
            write_report(page, runs_of_all, title=title, option=PAGE, bases=names)
            written = page
    codes = [each.exit_code for each in runs] + [one.exit_code for one in errors]
    code = exit_code_of([*codes, *(CODES[gate.holds] for gate in decided)])
    if json:
        said = {"suite": suite.name, "runs": runs, "report": written and str(written)}
        print_json({**said, "gates": decided, "exit_code": code})
    else:
        from harness.reporting.comparison_tables import print_comparison, print_gates

        named = {Path(folder).name: suite.file.against or "" for folder in bases.values()}
        named |= {Path(run.folder).name: run.model for run in runs if run.folder is not None}
        print()
        for document in documents:
            if document.comparisons:
                print_comparison(document, against=suite.file.against is not None)
            print_gates(document, names=named)
            print()
        _print(ending_report(suite.name, runs))
        if written is not None:
            print(clean_text(f"report: {written}"))
    print_error(*errors)
    return code


CODES = {True: 0, False: GATE_FAILED, None: 1}
"""The exit code of a gate that holds, of one that does not, and of one that is undecided."""


def check_gates(suite: Suite, selection: Selection, plugins: Plugins) -> None:
    """Raise UsageError, with its place, for a gate that the tasks of the suite cannot have."""
    from harness.comparison.gates import GatedRun, gates_of

    tasks = {
        task.name: TaskEntry(
            folder=task.name, definition=task_definition(task), content="", stages=()
        )
        for task in selection.tasks
    }
    planned = Manifest(
        run_id="", run_key="", status="running", model="", seed=0, limit=None, asked={},
        settings={}, tasks=tasks,
        groups={group.name: group.members for group in selection.groups},
        without_mean=tuple(group.name for group in selection.groups if not group.mean),
    )  # fmt: skip
    benchmarks = {task.name: plugins.benchmark(task.benchmark) for task in selection.tasks}
    for number, text in enumerate(suite.file.gates):
        try:
            gates_of([text], [GatedRun(suite.name, planned, benchmarks, frozenset())])
        except UsageError as error:
            error.where = suite.document.where(["gates", number])
            raise


def compared_seeds(
    suite: Suite, runs: Sequence[SuiteRun], bases: Mapping[int, str]
) -> tuple[list[ComparisonDocument], list[HarnessError]]:
    """The comparison with its gates for each seed, and the errors.

    `bases` has by seed the folder of the run that the others are compared with. Without gates,
    tasks that cannot be compared are no errors: how each run ended says why.
    """
    documents: list[ComparisonDocument] = []
    errors: list[HarnessError] = []
    for seed in suite.file.seeds:
        of_seed = [run for run in runs if run.seed == seed and run.model != suite.file.against]
        others = [run.folder for run in of_seed if run.folder is not None]
        base = bases.get(seed)
        if suite.file.gates and of_seed and (not others or base is None):
            why = f"{suite.file.against} has no run" if others else "no model has a run"
            problem = f"the gates of seed {seed} are not decided, as {why}"
            errors.append(HarnessError(problem, where=suite.document.where(["gates"], of_key=True)))
            continue
        words = [base, *others, f"--against={base}"] if base else others
        if not others or len(words) < 2:
            continue
        words += [f"--gate={text}" for text in suite.file.gates]
        args = SimpleNamespace(**compare.make_context("compare", words).params)
        document, wrong = compared_document(args)
        documents.append(document)
        errors += wrong if suite.file.gates else []
    return documents, errors
