"""Opens the executor of a session: in this process, or with workers that a plugin places."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack

from harness.base.errors import UsageError
from harness.calls.budget import Budget, combined
from harness.calls.client import Client, OwnAnswers
from harness.calls.engines import EngineGate
from harness.calls.store import Store
from harness.contracts.executor import Executor as Machines
from harness.contracts.executor import ExecutorSettings
from harness.contracts.model import Model
from harness.contracts.stage import CANDIDATE
from harness.pipeline.elsewhere import import_answers, take_over
from harness.pipeline.executors.lanes import LoopTurns
from harness.pipeline.executors.local import LocalExecutor
from harness.pipeline.executors.planned import Executor, PlannedRun
from harness.pipeline.executors.sharded import ShardedExecutor
from harness.pipeline.executors.shards import Collector, collect_left_behind
from harness.pipeline.executors.work_order import keys_of, share_concurrency, work_order
from harness.pipeline.memos import Memory
from harness.pipeline.plan import Plan, StageRun
from harness.pipeline.preparation import Prepared
from harness.pipeline.progress import ClusterProgress
from harness.pipeline.resume import LockedFolder
from harness.pipeline.session import Session
from harness.pipeline.settings import LOCAL, RunSettings
from harness.registry import Plugins, made
from harness.runs.atomic_files import RUNS


def machines_of(settings: RunSettings, plugins: Plugins) -> Machines | None:
    """The executor that the settings name; None for this process."""
    if settings.executor == LOCAL:
        return None
    return made(
        plugins.executor(settings.executor),
        ExecutorSettings(
            address=settings.ray_address, workers=settings.workers, engines=settings.engines
        ),
    )


def join(machines: Machines, settings: RunSettings, models: Sequence[Model]) -> int:
    """The number of workers that a run with these models has on the machines.

    UsageError for a number of workers or engines that no model of the run has a use for, and for
    models that are asked in batches.
    """
    for model in models:
        if model.patient:
            raise UsageError(
                "batches are asked by one process, not by workers elsewhere",
                where=model.identity.label,
                found=f"--executor {settings.executor}",
                expected="--executor local",
            )
    on_engines = [one.identity.label for one in models if one.occupies is not None]
    by_rest = [one.identity.label for one in models if one.occupies is None]
    if settings.engines is not None and not on_engines:
        raise UsageError(
            "--engines needs a model for which the harness starts an engine",
            found=", ".join(by_rest),
            expected="a model such as vllm, or --workers N: the processes that ask servers",
        )
    if settings.workers is not None and not by_rest:
        raise UsageError(
            "--workers needs a model that has a server of its own",
            found=", ".join(on_engines),
            expected="--engines N: each engine has one worker, on the machine of the engine",
        )
    return machines.join(models)


def candidate_of(prepared: Prepared, option: str) -> Model:
    """The candidate's model, whose questions go to files; UsageError where they cannot."""
    roles = [each.bindings[CANDIDATE] for each in prepared.tasks if CANDIDATE in each.bindings]
    model = roles[0].model if roles else None
    if model is None or not model.takes_batches:
        raise UsageError(
            "the questions to this model cannot be written to files",
            where=option,
            found=roles[0].label if roles else "tasks that ask no candidate",
            expected="--model openai, vllm, or another kind that takes batches",
        )
    return model


async def take_left_behind(taken: LockedFolder, settings: RunSettings) -> None:
    """Take over what workers of a session that was killed left in the run folder."""

    def collector(stack: ExitStack) -> Collector:
        store = None
        if settings.store_file is not None:
            store = Store.open(settings.store_file)
            stack.callback(store.close)
        own = Store.open(taken.folder.own_answers, option=RUNS)
        stack.callback(own.close)
        return Collector(own=own, store=store, memory=Memory(store, own))

    await collect_left_behind(taken.folder.path, collector, LoopTurns())


async def open_executor(
    run: Session,
    plan: Plan,
    engines: EngineGate,
    stack: AsyncExitStack,
    *,
    on_stage_end: Callable[[StageRun], None],
) -> Executor:
    """The executor that the session's settings name; `stack` closes what it needs."""
    settings = run.settings
    planned = PlannedRun(
        plan=plan,
        limits=settings.max_failures,
        retry_failures=settings.retry_failures,
        ask_unanswered=not run.taken.done,
        on_stage_start=lambda stage: run.display.stage_started(stage.progress),
        on_stage_end=on_stage_end,
    )
    warn = functools.partial(run.display.show_line, problem=True)
    store = None
    if settings.store_file is not None:
        store = Store.open(settings.store_file, warn=warn)
        stack.callback(store.close)
    own = Store.open(run.taken.folder.own_answers, warn=warn, option=RUNS)
    stack.callback(own.close)
    arrived = OwnAnswers(own, session=0)
    take_over(run.taken.folder, arrived)
    if run.machines is not None:
        if run.start.look is not None:
            await run.start.look()
        return _elsewhere(run, planned, run.machines, own, store)
    if run.answers:
        model = candidate_of(run.prepared, "--answers")
        for line in import_answers(run.answers, run.taken.folder, model, arrived):
            run.display.show_line(line)
    client = Client(
        store=store,
        run_id=run.taken.run_id,
        patience=settings.patience,
        engines=engines,
        fresh=run.taken.run_id if settings.fresh else None,
        announce=run.display.show_line,
        outbox=run.outbox,
        own=OwnAnswers(own, session=len(run.taken.manifest.sessions)),
    )
    client.follow(run.start.client)
    return LocalExecutor(planned, client=client, memo=Memory(store, own))


def _elsewhere(
    run: Session, planned: PlannedRun, machines: Machines, own: Store, store: Store | None
) -> Executor:
    """The executor that hands shards to workers in other processes."""
    settings, earlier = run.settings, run.start.client
    session = len(run.taken.manifest.sessions)
    order = work_order(
        settings,
        [stage.context for stage in planned.plan.runs],
        run.plugins,
        run_id=run.taken.run_id,
        folder=run.taken.folder.path,
        session=session,
        workers=run.workers,
    )
    meter = earlier.meter
    used = Budget(calls=meter.calls, tokens=meter.tokens, cost=meter.spent)
    run.progress.cluster = ClusterProgress()
    keys = keys_of(run.start.asked)
    share_concurrency(run.start.asked, run.workers, seat=0)
    return ShardedExecutor(
        planned,
        machines=machines,
        arguments=[(order, keys, seat) for seat in range(run.workers)],
        own=own,
        store=store,
        bound=settings.budget,
        left=combined(operator.sub, settings.budget, used),
        usage=earlier.usage,
        earlier=session > 1,
        seen=run.progress.cluster,
        announce=run.display.show_line,
    )
