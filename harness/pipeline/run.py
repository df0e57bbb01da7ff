"""One run from settings to summaries: prepares tasks, opens a folder, runs stages, scores."""

from __future__ import annotations

import asyncio
import functools
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from itertools import chain
from pathlib import Path

import msgspec

from harness.base import clock
from harness.base.errors import (
    BudgetSpent,
    DataError,
    HarnessError,
    Interrupted,
    TooManyFailures,
)
from harness.calls.budget import Meter
from harness.calls.client import Client
from harness.calls.engines import EngineGate, SharedEngines
from harness.calls.pricing import Cost
from harness.contracts.finding import NotReady
from harness.contracts.model import Model
from harness.contracts.stage import CANDIDATE
from harness.contracts.task import Group
from harness.pipeline.elsewhere import RequestFiles, RequestsWritten
from harness.pipeline.executors.choice import (
    candidate_of,
    join,
    machines_of,
    open_executor,
    take_left_behind,
)
from harness.pipeline.executors.lanes import ROUND_SIZE
from harness.pipeline.executors.planned import Executor
from harness.pipeline.failure_limits import how_to_ask_again
from harness.pipeline.garbage import rare_collection
from harness.pipeline.plan import Plan, StageRun, State, for_later
from harness.pipeline.preflight import (
    models_of,
    players_of_stages,
    preflight,
    why_not,
)
from harness.pipeline.preparation import Prepared, check_prices, prepare
from harness.pipeline.progress import Display, RunProgress
from harness.pipeline.resume import LockedFolder, lock_folder
from harness.pipeline.session import Session, Start
from harness.pipeline.settings import LOCAL, RunSettings
from harness.pipeline.stage_context import StageContext
from harness.pipeline.stage_items import stage_runs
from harness.pipeline.thinking import PATIENCE, Thinks, keep_thinking, known_thinking, said_before
from harness.registry import load_plugins
from harness.registry.hookspecs import RunEnded, RunStarted, StageEnded
from harness.runs.manifest import Manifest, Status, session_ended, stage_finished
from harness.runs.run_folder import ENGINES
from harness.scoring.means import MeanOverTasks, means_of_run
from harness.scoring.run_costs import session_costs
from harness.scoring.score_run import score_task
from harness.scoring.summary import RepeatedTask, TaskSummary, over_repeats


def identical_repeats_warning(
    settings: RunSettings, contexts: Iterable[Sequence[StageContext]]
) -> str | None:
    """The warning that a run's repeats give the same answers; None where they can differ."""
    asking = [
        context
        for each in contexts
        for context in each
        if settings.num_repeats > 1 and CANDIDATE in context.stage.roles
    ]
    # A model that answers by rule draws from the seed, whatever the temperature.
    drawn = [each for each in asking if each.model(CANDIDATE).identity.scope != "call"]
    if not drawn or any(each.samplings[CANDIDATE].temperature > 0 for each in drawn):
        return None
    return (
        f"--num_repeats {settings.num_repeats}: the candidate is asked at temperature 0, so that "
        "repeats differ only where the server is not deterministic; "
        "give --gen_kwargs temperature=… to draw samples"
    )


EXIT_CODES: dict[Status, int] = {
    "done": 0, "failed": 1, "too_many_failures": 3, "interrupted": 130,
}  # fmt: skip


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run.

    `folder` is the run folder. `summaries` are the results of all finished tasks, `means` those of
    groups and of repeats, `groups` the task groups that the run named. `errors` are the reasons why
    tasks are missing. `requests` counts the questions in files that were written, by file. `costs`
    is the cost of this session by stage and role, where prices are known.

        result = harness.evaluate("films", model="baseline")
        result.summaries[0].metrics["accuracy"].value
    """

    folder: Path
    status: Status
    exit_code: int
    summaries: tuple[TaskSummary, ...]
    means: tuple[MeanOverTasks, ...] = ()
    errors: tuple[HarnessError, ...] = ()
    groups: tuple[Group, ...] = ()
    requests: dict[str, int] = {}
    costs: dict[str, Cost] = {}

    @property
    def repeats(self) -> tuple[RepeatedTask, ...]:
        """The results over the repeats of each task; empty in a run without repeats."""
        return over_repeats(self.summaries)

    def to_json(self) -> str:
        """The result as one JSON document."""
        return (
            msgspec.json.format(
                msgspec.json.encode(
                    {
                        "folder": str(self.folder),
                        "status": self.status,
                        "exit_code": self.exit_code,
                        "summaries": self.summaries,
                        "costs": self.costs,
                        "errors": [str(error) for error in self.errors],
                        **({"means": self.means} if self.means else {}),
                        **({"repeats": self.repeats} if self.repeats else {}),
                        **({"requests": self.requests} if self.requests else {}),
                    },
                    enc_hook=str,
                )
            ).decode()
            + "\n"
        )


async def arun(
    settings: RunSettings,
    *,
    display: Display,
    handle_signals: bool = False,
    write_requests: Path | None = None,
    answers: Sequence[Path] = (),
    deliver: Callable[[RunResult], None] = lambda result: None,
    named_in: Mapping[str, str] | None = None,
    engines: SharedEngines | None = None,
) -> RunResult:
    """Run the tasks of these settings. Errors before the run begins are raised: no folder is left.

    The result goes to `deliver`. If that raises, or the process dies before it returns, the same
    settings give the result of a run that was done again. `named_in` has the file or variable that
    names a role's model, where that is not the command.

    With `write_requests`, the candidate's questions are written to files in that folder instead of
    being asked; `answers` are files of answers to them. Engines that are shared with other runs
    stay open; a run that leaves its judges for later ends as if it had been interrupted.
    """
    plugins = load_plugins()
    named_in = named_in or {}
    if write_requests is not None or answers:
        settings = msgspec.structs.replace(settings, elsewhere=True)
    machines = machines_of(settings, plugins)
    try:
        prepared = prepare(settings, plugins, engines=engines, say=display.show_line)
    except (DataError, NotReady) as error:
        show = display.show_line
        raise await why_not(settings, plugins, named_in, error, show=show) from error
    settings = prepared.settings
    check_prices(prepared)
    written = None if write_requests is None else candidate_of(prepared, "--write_requests")
    if written is not None:
        written.concurrency = ROUND_SIZE  # its questions wait for nothing
    taken = lock_folder(settings, prepared, display=display)
    try:
        with taken.removed_on_failure():
            workers = 0 if machines is None else join(machines, settings, prepared.models)
            if taken.resumed:
                await take_left_behind(taken, settings)
            for model in prepared.models:
                model.folder = taken.folder.batches(model.identity.key(taken.run_id))
            start = await _start(prepared, taken, display, named_in, engines, written=written)
            contexts = _contexts(prepared, taken, start.thinks)
            taken.begin(prepared, contexts, start.thinks)
        if warning := identical_repeats_warning(settings, contexts.values()):
            display.show_line(warning, problem=True)
        runs = _stage_runs(prepared, taken, contexts)
        progress = RunProgress(
            folder=taken.folder.path,
            model=taken.manifest.label,
            resumed=taken.resumed,
            stages=[stage_run.progress for stage_run in runs],
            costs=lambda: _costs(taken.manifest, start.client.usage.as_json()),
            max_cost=settings.budget.cost,
        )
        outbox = None
        if write_requests is not None and written is not None:
            outbox = RequestFiles(written, write_requests, taken.folder)
        run = Session(
            settings=settings,
            plugins=plugins,
            prepared=prepared,
            taken=taken,
            start=start,
            display=display,
            progress=progress,
            outbox=outbox,
            answers=answers,
            engines=engines,
            machines=machines,
            workers=workers,
        )
        with rare_collection():
            result = await _carry_out(run, runs, handle_signals=handle_signals)
        deliver(result)
        if result.status == "done":
            taken.delivered()
        return result
    finally:
        if machines is not None:
            await machines.close()
        taken.folder.unlock()


def _contexts(
    prepared: Prepared, taken: LockedFolder, thinks: Thinks
) -> dict[str, tuple[StageContext, ...]]:
    """The contexts of each task's stages."""
    thinking = frozenset(model for model, known in thinks.items() if known)
    return {each.task.name: each.contexts(taken.run_id, thinking) for each in prepared.tasks}


def _stage_runs(
    prepared: Prepared, taken: LockedFolder, contexts: Mapping[str, Sequence[StageContext]]
) -> list[StageRun]:
    """The stages of all tasks in order."""
    return [
        stage_run
        for each in prepared.tasks
        for stage_run in stage_runs(
            each, contexts[each.task.name], functools.partial(taken.folder.journal, each.task.name)
        )
    ]


async def _start(
    prepared: Prepared,
    taken: LockedFolder,
    display: Display,
    named_in: Mapping[str, str],
    engines: SharedEngines | None,
    *,
    written: Model | None,
) -> Start:
    """What is known before the run begins; looks and asks where a model's thinking is unknown."""
    settings = prepared.settings
    store = settings.store_file
    warn = functools.partial(display.show_line, problem=True)
    said = said_before(taken.folder, taken.manifest)
    thinks = known_thinking(prepared.models, run_id=taken.run_id, said=said, store=store, warn=warn)
    unknown: Thinks = {model: None for model in prepared.models if model not in thinks}
    if written is not None and unknown.pop(written, True) is None:
        thinks[written] = False  # so that no later session says otherwise
    asked = [model for model in prepared.models if model is not written]
    # Stages of models that are unknown count as unrecorded, whether these think or not.
    contexts = _contexts(prepared, taken, thinks)
    every = chain.from_iterable(contexts.values())
    later = for_later(every, engines, one_at_a_time=settings.one_engine_at_a_time)
    left = taken.unrecorded(settings, contexts)
    now = [one for one in left if (one.task.name, one.stage.name) not in later]
    client = Client(
        store=None,
        run_id=taken.run_id,
        patience=PATIENCE,
        meter=Meter(settings.budget, settings.prices or taken.manifest.prices),
    )
    models = models_of(players_of_stages(now, settings, named_in))
    if engines is not None:
        await engines.make_room(asked, models)
    still = engines.open if engines is not None else []
    if not still:
        # No engine holds what the models of later stages need, so these are looked at as well.
        models = models_of(players_of_stages(left, settings, named_in))
    # Workers elsewhere look themselves at what the engines need that start there.
    look = functools.partial(
        preflight,
        {
            m: players
            for m, players in models.items()
            if m in asked and m not in still and not (m.occupies and settings.executor != LOCAL)
        },
        settings,
        show=display.show_line,
        client=client,
    )
    if not unknown:
        return Start(asked=asked, thinks=thinks, client=client, look=look)
    problem = None
    try:
        for model in asked:
            model.require()
        await look(to_ask=unknown)
    except HarnessError as error:
        problem = error
    keep_thinking(unknown, store, warn)
    return Start(asked=asked, thinks=thinks | unknown, client=client, look=None, problem=problem)


async def _carry_out(run: Session, runs: list[StageRun], *, handle_signals: bool) -> RunResult:
    errors: list[HarnessError] = []
    summaries: list[TaskSummary] = []
    status: Status = "failed"
    written: dict[Path, int] = {}
    try:
        _notify(run, "on_run_start", RunStarted(
            folder=run.taken.folder.path,
            tasks=tuple(each.task.name for each in run.prepared.tasks),
            model=run.taken.manifest.label,
            resumed=run.taken.resumed,
        ))  # fmt: skip
        await _ask_everything(run, runs, errors, handle_signals=handle_signals)
        written = {} if run.outbox is None else run.outbox.written
        summaries = _score_finished(run, runs, errors)
        errors[:] = [error for error in errors if not isinstance(error, RequestsWritten)]
        batched = any(model.patient for model in run.start.asked)
        status = _status_of(errors, stops=(Interrupted, BudgetSpent) if batched else Interrupted)
        if status == "done" and (written or any(stage.state is State.PUT_OFF for stage in runs)):
            status = "interrupted"
    except (KeyboardInterrupt, asyncio.CancelledError):
        status = "interrupted"
        raise
    except HarnessError as error:
        errors.append(error)
    except BaseException:
        errors.append(HarnessError("the harness itself failed; see its traceback"))
        raise
    finally:
        code = errors[0].exit_code if errors and status == "failed" else EXIT_CODES[status]
        code = 0 if written and not errors else code
        _end(run, status, code, "\n".join(str(error) for error in errors) or None)
    return RunResult(
        folder=run.taken.folder.path,
        status=status,
        exit_code=code,
        summaries=tuple(summaries),
        means=means_of_run(run.taken.folder, run.taken.manifest, summaries, run.plugins.benchmark),
        errors=tuple(errors),
        groups=run.prepared.groups,
        requests={str(path): many for path, many in written.items()},
        costs=run.costs,
    )


async def _ask_everything(
    run: Session, runs: list[StageRun], errors: list[HarnessError], *, handle_signals: bool
) -> None:
    """Run every stage; appends to `errors` what stopped the run, and why tasks were given up."""
    if run.start.problem is not None:
        run.usage = run.start.client.usage.as_json()
        errors.append(run.start.problem)
        return
    settings, announce = run.settings, run.display.show_line
    async with AsyncExitStack() as stack:
        run.display.start(run.progress)
        stack.callback(run.display.stop)
        if run.outbox is not None:
            stack.callback(run.outbox.drop)
        engines = EngineGate(
            one_at_a_time=settings.one_engine_at_a_time,
            announce=announce,
            logs=run.taken.folder.path / ENGINES,
            models=run.start.asked,
            look=run.start.look,
            shared=run.engines,
        )
        stack.push_async_callback(_close, engines, errors)
        plan = Plan(runs=runs, resource=engines.resource)
        stages = [stage.context for stage in runs]
        later = for_later(stages, run.engines, one_at_a_time=settings.one_engine_at_a_time)
        for stage in runs:
            if (stage.task, stage.context.stage.name) in later:
                plan.put_off(stage)
        try:
            executor = await open_executor(
                run, plan, engines, stack, on_stage_end=lambda stage: _stage_ended(run, stage)
            )
        except HarnessError as error:
            errors.append(error)
            return
        run.progress.costs = lambda: _costs(run.taken.manifest, executor.usage())
        run.progress.limits = executor.limits
        if handle_signals:
            stack.enter_context(_signals(executor, run.display))
        try:
            await executor.run()
        except HarnessError as error:
            errors.append(error)
        finally:
            run.usage, run.limits = executor.usage(), executor.limits()
        errors += executor.halted


async def _close(engines: EngineGate, errors: list[HarnessError]) -> None:
    """End every engine; an error joins the errors of the run."""
    try:
        await engines.close()
    except HarnessError as error:
        errors.append(error)


def _stage_ended(run: Session, stage: StageRun) -> None:
    progress = stage.progress
    if progress.done == progress.total:
        run.taken.manifest = stage_finished(
            run.taken.manifest, stage.task, progress.stage, items=progress.total or 0
        )
        run.taken.save()
    run.display.stage_ended(progress)
    _notify(run, "on_stage_end", StageEnded(
        folder=run.taken.folder.path,
        task=stage.task,
        stage=progress.stage,
        items=progress.done,
        failures=dict(progress.failures),
        seconds=(progress.ended or 0.0) - (progress.started or 0.0),
    ))  # fmt: skip


def _score_finished(
    run: Session, runs: list[StageRun], errors: list[HarnessError]
) -> list[TaskSummary]:
    """The summaries of all finished tasks.

    A task that cannot be scored, or in which a stage has no value at all, adds an error.
    """
    unfinished = {stage.task for stage in runs if stage.state is not State.DONE}
    summaries = []
    for each in run.prepared.tasks:
        if each.task.name in unfinished:
            continue
        try:
            summary = score_task(
                run.taken.folder, run.taken.manifest, each.task.name, each.benchmark
            )
        except HarnessError as error:
            errors.append(error)
        else:
            summaries.append(summary)
            errors += nothing_read(summary)
    return summaries


def nothing_read(summary: TaskSummary) -> Iterator[TooManyFailures]:
    """An error for each stage of a task that has items and not one value."""
    for name, stage in summary.stages.items():
        if stage.items and not stage.done:
            yield TooManyFailures(
                "no item has a value",
                where=f"{summary.task}/{name}",
                found=f"{stage.items} without one: "
                + ", ".join(f"{cause} {count}" for cause, count in stage.failures.items()),
                expected="a value of at least one item: these results measure nothing",
                hint=how_to_ask_again(stage.failures, asks=bool(stage.roles)),
            )


def _status_of(
    errors: list[HarnessError],
    *,
    stops: type[HarnessError] | tuple[type[HarnessError], ...],
) -> Status:
    """The status after these errors, of which `stops` leave the rest to the same command."""
    if not errors:
        return "done"
    if any(isinstance(error, stops) for error in errors):
        return "interrupted"
    if all(isinstance(error, TooManyFailures) for error in errors):
        return "too_many_failures"
    errors.sort(key=lambda error: isinstance(error, TooManyFailures))
    return "failed"


def _end(run: Session, status: Status, code: int, problem: str | None) -> None:
    manifest = run.taken.manifest
    run.costs = _costs(manifest, run.usage)
    run.taken.manifest = session_ended(
        manifest, status, problem=problem, usage=run.usage, costs=run.costs, limits=run.limits
    )
    run.taken.save()
    _notify(run, "on_run_end", RunEnded(
        folder=run.taken.folder.path,
        status=status,
        exit_code=code,
        seconds=clock.seconds() - run.began,
    ))  # fmt: skip


def _costs(manifest: Manifest, usage: Mapping[str, Mapping[str, int]]) -> dict[str, Cost]:
    """The costs of a session's usage; empty without prices."""
    return {} if manifest.prices is None else session_costs(manifest, usage, manifest.prices)


def _notify(run: Session, hook: str, event: object) -> None:
    for problem in run.plugins.notify(hook, event):
        run.display.show_line(problem, problem=True)


@contextmanager
def _signals(executor: Executor, display: Display) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM lets calls in flight finish, the second one stops at once."""
    count = 0

    def interrupt() -> None:
        nonlocal count
        count += 1
        if count == 1:
            display.show_line("finishing the calls in flight; press Ctrl-C again to stop at once")
        error = Interrupted("interrupted", hint="the same command resumes the run")
        executor.stop(error, at_once=count > 1)

    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler or signal.SIG_DFL)
