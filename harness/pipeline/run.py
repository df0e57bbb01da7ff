"""One run from settings to summaries: prepares tasks, opens a folder, runs stages, scores."""

from __future__ import annotations

import asyncio
import functools
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, closing, contextmanager
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
    UsageError,
)
from harness.calls.budget import Meter
from harness.calls.client import Client, OwnAnswers
from harness.calls.engines import EngineGate, SharedEngines
from harness.calls.pricing import Cost
from harness.calls.store import Store
from harness.contracts.finding import NotReady
from harness.contracts.model import Model
from harness.contracts.stage import CANDIDATE
from harness.contracts.task import Group
from harness.pipeline.desk import StageContext
from harness.pipeline.elsewhere import RequestFiles, RequestsWritten, import_answers, take_over
from harness.pipeline.executors.execute import Executor
from harness.pipeline.executors.lanes import ROUND_SIZE, Lanes, LoopTurns, rare_collection
from harness.pipeline.executors.sharded import RemoteWorkers, join, machines_of
from harness.pipeline.executors.shards import Collector, collect_left_behind
from harness.pipeline.item_queue import how_to_ask_again
from harness.pipeline.memos import Memory
from harness.pipeline.plan import Plan, StageRun, State, for_later, stage_runs
from harness.pipeline.preflight import (
    PATIENCE,
    Thinks,
    keep_thinking,
    known_thinking,
    models_of,
    players_of_stages,
    preflight,
    said_before,
    why_not,
)
from harness.pipeline.preparation import Prepared, check_prices, prepare
from harness.pipeline.progress import Display, RunProgress
from harness.pipeline.resume import lock_folder
from harness.pipeline.session import Session
from harness.pipeline.settings import RunSettings
from harness.registry import load_plugins
from harness.registry.hookspecs import RunEnded, RunStarted, StageEnded
from harness.runs.atomic_files import RUNS
from harness.runs.journal import pack_journal
from harness.runs.manifest import Status, session_ended, stage_finished
from harness.runs.run_folder import ENGINES
from harness.scoring.means import MeanOverTasks, means_of_run
from harness.scoring.score_run import score_task
from harness.scoring.summary import RepeatedTask, TaskSummary, over_repeats


def identical_repeats_warning(
    settings: RunSettings, contexts: Iterable[Sequence[StageContext]]
) -> str | None:
    """The warning that a run's repeats give the same answers; None where they can differ."""
    if settings.num_repeats == 1:
        return None
    asking = [one for each in contexts for one in each if CANDIDATE in one.stage.roles]
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
        optional = {"means": self.means, "repeats": self.repeats, "requests": self.requests}
        document = {
            "folder": str(self.folder),
            "status": self.status,
            "exit_code": self.exit_code,
            "summaries": self.summaries,
            "costs": self.costs,
            "errors": [str(error) for error in self.errors],
            **{name: value for name, value in optional.items() if value},
        }
        return msgspec.json.format(msgspec.json.encode(document, enc_hook=str)).decode() + "\n"


async def arun(
    settings: RunSettings,
    *,
    display: Display,
    handle_signals: bool = False,
    write_requests: Path | None = None,
    answers: Sequence[Path] = (),
    deliver: Callable[[RunResult], None] = lambda result: None,
    engines: SharedEngines | None = None,
) -> RunResult:
    """Run the tasks of these settings. Errors before the run begins are raised: no folder is left.

    The result goes to `deliver`. If that raises, or the process dies before it returns, the same
    settings give the result of a run that was done again.

    With `write_requests`, the candidate's questions are written to files in that folder instead of
    being asked; `answers` are files of answers to them. Engines that are shared with other runs
    stay open; a run that leaves its judges for later ends as if it had been interrupted.
    """
    plugins = load_plugins()
    if write_requests is not None or answers:
        settings = msgspec.structs.replace(settings, elsewhere=True)
    machines = machines_of(settings, plugins)
    try:
        prepared = prepare(settings, plugins, engines=engines, say=display.show_line)
    except (DataError, NotReady) as error:
        raise await why_not(settings, plugins, error, show=display.show_line) from error
    check_prices(prepared)
    written = None if write_requests is None else candidate_of(prepared, "--write_requests")
    taken = lock_folder(prepared, display=display)
    try:
        session = Session(
            plugins=plugins,
            prepared=prepared,
            taken=taken,
            display=display,
            answers=answers,
            engines=engines,
            machines=machines,
            written=written,
        )
        if written is not None and write_requests is not None:
            written.concurrency = ROUND_SIZE  # its questions wait for nothing
            session.outbox = RequestFiles(written, write_requests, taken.folder)
        try:
            await _begin(session)
        except BaseException:
            if not taken.resumed:  # nothing was asked
                shutil.rmtree(taken.folder.path, ignore_errors=True)
            raise
        with rare_collection():
            result = await _carry_out(session, handle_signals=handle_signals)
        deliver(result)
        if result.status == "done":
            taken.delivered()
            _pack_records(session)
        return result
    finally:
        if machines is not None:
            await machines.close()
        taken.folder.unlock()


def _pack_records(session: Session) -> None:
    """Pack the large journals of a run that is done."""
    taken = session.taken
    for name, entry in taken.manifest.tasks.items():
        for stage in entry.stages:
            try:
                pack_journal(taken.folder.task(name) / stage.file, stage.key)
            except HarnessError as error:
                session.warn(f"the records of {name}/{stage.name} stay unpacked: {error}")


async def _begin(session: Session) -> None:
    """Find out what is known before the run begins, and write it to the manifest."""
    settings, prepared, taken = session.settings, session.prepared, session.taken
    if session.machines is not None:
        session.workers = join(session.machines, settings, prepared.models)
    if taken.resumed:
        stores = functools.partial(open_stores, session)
        await collect_left_behind(taken.folder.path, stores, LoopTurns())
    places = {one: taken.folder.batches(one.identity.key(taken.run_id)) for one in prepared.models}
    batched = {place for model, place in places.items() if model.patient}
    for model, place in places.items():
        model.folder, model.taken_up = place, not model.patient and place in batched
    await _find_out(session)
    session.contexts = session.contexts_of(session.thinks)
    taken.begin(prepared, session.contexts, session.thinks)
    if warning := identical_repeats_warning(settings, session.contexts.values()):
        session.warn(warning)
    session.stages = [
        stage_run
        for each in prepared.tasks
        for stage_run in stage_runs(
            each,
            session.contexts[each.task.name],
            functools.partial(taken.folder.journal, each.task.name),
        )
    ]
    session.progress = RunProgress(
        folder=taken.folder.path,
        model=taken.manifest.label,
        resumed=taken.resumed,
        stages=[stage_run.progress for stage_run in session.stages],
        costs=lambda: session.costs(session.client.usage.as_json()),
        max_cost=settings.budget.cost,
    )


async def _find_out(session: Session) -> None:
    """Find out which models this session may ask and whether they think.

    Where that is not known, it looks at once at what it needs, and asks the small question.
    """
    settings, taken, engines = session.settings, session.taken, session.engines
    models, store = session.prepared.models, settings.store_file
    said = said_before(taken.folder, taken.manifest)
    thinks = known_thinking(models, run_id=taken.run_id, said=said, store=store, warn=session.warn)
    unknown: Thinks = {model: None for model in models if model not in thinks}
    if session.written is not None and unknown.pop(session.written, True) is None:
        thinks[session.written] = False  # so that no later session says otherwise
    session.asked = [model for model in models if model is not session.written]
    # Stages of models that are unknown count as unrecorded, whether these think or not.
    contexts = session.contexts_of(thinks)
    left = taken.unrecorded(settings, contexts)
    every = chain.from_iterable(contexts.values())
    session.later = for_later(every, engines, one_at_a_time=settings.one_engine_at_a_time)
    now = [one for one in left if (one.task.name, one.stage.name) not in session.later]
    session.client = Client(
        store=None,
        run_id=taken.run_id,
        patience=PATIENCE,
        meter=Meter(settings.budget, settings.prices or taken.manifest.prices),
    )
    wanted = models_of(players_of_stages(now, settings))
    if engines is not None:
        await engines.make_room(session.asked, wanted)
    still = engines.open if engines is not None else []
    if not still:
        # No engine holds what the models of later stages need, so these are looked at as well.
        wanted = models_of(players_of_stages(left, settings))
    # Workers elsewhere look themselves at what the engines need that start there.
    elsewhere = session.machines is not None
    looked_at = {
        model: players
        for model, players in wanted.items()
        if model in session.asked and model not in still and not (model.occupies and elsewhere)
    }
    look = functools.partial(
        preflight, looked_at, settings, show=session.display.show_line, client=session.client
    )
    if unknown:
        try:
            for model in session.asked:
                model.require()
            await look(to_ask=unknown)
        except HarnessError as error:
            session.errors.append(error)
        keep_thinking(unknown, store, session.warn)
    else:
        session.look = look
    session.thinks = thinks | unknown


async def _carry_out(session: Session, *, handle_signals: bool) -> RunResult:
    """Ask, score and end the session, whatever happens; the result of the run."""
    errors, taken, outbox = session.errors, session.taken, session.outbox
    summaries: list[TaskSummary] = []
    status: Status = "failed"
    written: dict[Path, int] = {}
    try:
        session.notify("on_run_start", RunStarted(
            folder=taken.folder.path,
            tasks=tuple(each.task.name for each in session.prepared.tasks),
            model=taken.manifest.label,
            resumed=taken.resumed,
        ))  # fmt: skip
        await _ask_everything(session, handle_signals=handle_signals)
        written = {} if outbox is None else outbox.written
        summaries = _score_finished(session)
        errors[:] = [error for error in errors if not isinstance(error, RequestsWritten)]
        batched = any(model.patient for model in session.asked)
        status = _status_of(errors, stops=(Interrupted, BudgetSpent) if batched else (Interrupted,))
        put_off = any(stage.state is State.PUT_OFF for stage in session.stages)
        if status == "done" and (written or put_off):
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
        costs = session.costs(session.usage)
        taken.manifest = session_ended(
            taken.manifest,
            status,
            problem="\n".join(str(error) for error in errors) or None,
            usage=session.usage,
            costs=costs,
            limits=session.limits,
        )
        taken.save()
        session.notify("on_run_end", RunEnded(
            folder=taken.folder.path,
            status=status,
            exit_code=code,
            seconds=clock.seconds() - session.began,
        ))  # fmt: skip
    return RunResult(
        folder=taken.folder.path,
        status=status,
        exit_code=code,
        summaries=tuple(summaries),
        means=means_of_run(taken.folder, taken.manifest, summaries, session.plugins.benchmark),
        errors=tuple(errors),
        groups=session.prepared.groups,
        requests={str(path): many for path, many in written.items()},
        costs=costs,
    )


async def _ask_everything(session: Session, *, handle_signals: bool) -> None:
    """Run every stage; the session has what stopped the run, and why tasks were given up."""
    if session.errors:
        session.usage = session.client.usage.as_json()
        return
    settings = session.settings
    async with AsyncExitStack() as stack:
        session.display.start(session.progress)
        stack.callback(session.display.stop)
        if session.outbox is not None:
            stack.callback(session.outbox.drop)
        engines = EngineGate(
            one_at_a_time=settings.one_engine_at_a_time,
            announce=session.display.show_line,
            logs=session.taken.folder.path / ENGINES,
            models=session.asked,
            look=session.look,
            shared=session.engines,
        )
        stack.push_async_callback(_close, engines, session.errors)
        plan = Plan(runs=session.stages, resource=engines.resource)
        for stage in session.stages:
            if (stage.task, stage.context.stage.name) in session.later:
                plan.put_off(stage)
        try:
            executor = await open_executor(session, plan, engines, stack)
        except HarnessError as error:
            session.errors.append(error)
            return
        workers = executor.workers
        session.progress.costs = lambda: session.costs(workers.usage())
        session.progress.limits = workers.limits
        if handle_signals:
            stack.enter_context(_signals(executor, session))
        try:
            await executor.run()
        except HarnessError as error:
            session.errors.append(error)
        finally:
            session.usage, session.limits = workers.usage(), workers.limits()
        session.errors += executor.halted


async def _close(engines: EngineGate, errors: list[HarnessError]) -> None:
    try:
        await engines.close()
    except HarnessError as error:
        errors.append(error)


@contextmanager
def open_stores(session: Session) -> Iterator[tuple[Store, Store | None]]:
    """The run's own answers, and the store of calls if the run has one."""
    file, own = session.settings.store_file, session.taken.folder.own_answers
    with ExitStack() as stack:
        store = None
        if file is not None:
            store = stack.enter_context(closing(Store.open(file, warn=session.warn)))
        yield stack.enter_context(closing(Store.open(own, warn=session.warn, option=RUNS))), store


async def open_executor(
    session: Session, plan: Plan, engines: EngineGate, stack: AsyncExitStack
) -> Executor:
    """What runs the plan, in this process or on the session's machines; `stack` closes stores."""
    settings, taken = session.settings, session.taken
    own, store = stack.enter_context(open_stores(session))
    arrived = OwnAnswers(own, session=0)
    take_over(taken.folder, arrived)
    if session.machines is not None:
        if session.look is not None:
            await session.look()
        make_workers: Callable[[Executor], Lanes | RemoteWorkers] = functools.partial(
            RemoteWorkers, session=session, collector=Collector(own=own, store=store)
        )
    else:
        if session.answers:
            model = candidate_of(session.prepared, "--answers")
            for line in import_answers(session.answers, taken.folder, model, arrived):
                session.display.show_line(line)
        client = Client(
            store=store,
            run_id=taken.run_id,
            patience=settings.patience,
            engines=engines,
            fresh=taken.run_id if settings.fresh else None,
            announce=session.display.show_line,
            outbox=session.outbox,
            own=OwnAnswers(own, session=session.number),
        )
        client.follow(session.client)
        session.client = client
        make_workers = functools.partial(Lanes, client=client, memo=Memory(store or own, own))
    return Executor(
        plan=plan,
        make_workers=make_workers,
        limits=settings.max_failures,
        retry_failures=settings.retry_failures,
        ask_unanswered=not taken.done,
        on_stage_start=lambda stage: session.display.stage_started(stage.progress),
        on_stage_end=functools.partial(_stage_ended, session),
    )


def candidate_of(prepared: Prepared, option: str) -> Model:
    """The candidate's model, whose questions go to files; UsageError where they cannot."""
    candidate = prepared.candidate
    model = candidate.model if candidate else None
    if model is None or not model.takes_batches:
        raise UsageError(
            "the questions to this model cannot be written to files",
            where=option,
            found=candidate.label if candidate else "tasks that ask no candidate",
            expected="--model openai, vllm, or another kind that takes batches",
        )
    return model


def _stage_ended(session: Session, stage: StageRun) -> None:
    progress, taken = stage.progress, session.taken
    if progress.done == progress.total:
        taken.manifest = stage_finished(
            taken.manifest, stage.task, progress.stage, items=progress.total or 0
        )
        taken.save()
    session.display.stage_ended(progress)
    session.notify("on_stage_end", StageEnded(
        folder=taken.folder.path,
        task=stage.task,
        stage=progress.stage,
        items=progress.done,
        failures=dict(progress.failures),
        seconds=(progress.ended or 0.0) - (progress.started or 0.0),
    ))  # fmt: skip


def _score_finished(session: Session) -> list[TaskSummary]:
    """The summaries of all finished tasks.

    A task that cannot be scored, or in which a stage has no value at all, adds an error.
    """
    unfinished = {stage.task for stage in session.stages if stage.state is not State.DONE}
    taken = session.taken
    summaries = []
    for each in session.prepared.tasks:
        if each.task.name in unfinished:
            continue
        try:
            summary = score_task(taken.folder, taken.manifest, each.task.name, each.benchmark)
        except HarnessError as error:
            session.errors.append(error)
        else:
            summaries.append(summary)
            session.errors += nothing_read(summary, taken.folder.path.name)
    return summaries


def nothing_read(summary: TaskSummary, run: str) -> Iterator[TooManyFailures]:
    """An error for each stage of a task of this run that has items and not one value."""
    for name, stage in summary.stages.items():
        if stage.items and not stage.done:
            yield TooManyFailures(
                "no item has a value",
                where=f"{summary.task}/{name}",
                found=f"{stage.items} without one: "
                + ", ".join(f"{cause} {count}" for cause, count in stage.failures.items()),
                expected="a value of at least one item: these results measure nothing",
                hint=how_to_ask_again(stage.failures, run=run, asks=bool(stage.roles)),
            )


def _status_of(errors: list[HarnessError], *, stops: tuple[type[HarnessError], ...]) -> Status:
    """The status after these errors, of which `stops` leave the rest to the same command."""
    if not errors:
        return "done"
    if any(isinstance(error, stops) for error in errors):
        return "interrupted"
    if all(isinstance(error, TooManyFailures) for error in errors):
        return "too_many_failures"
    errors.sort(key=lambda error: isinstance(error, TooManyFailures))
    return "failed"


@contextmanager
def _signals(executor: Executor, session: Session) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM lets calls in flight finish, the second one stops at once.

    Nothing is said to finish where all calls in flight are in batches, which go on.
    """
    count, batched = 0, any(model.patient for model in session.asked)

    def interrupt() -> None:
        nonlocal count
        count += 1
        if count == 1 and (session.client.live or not batched):
            session.display.show_line(
                "finishing the calls in flight; press Ctrl-C again to stop at once"
            )
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
