"""Opens the executor of a session: the local one, or the one on a Ray cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack

from harness.base.errors import UsageError
from harness.calls.batch_answers import BatchAnswers
from harness.calls.client import Client
from harness.calls.engines import EngineGate, SharedEngines
from harness.calls.own_answers import OwnAnswers
from harness.calls.store import Store
from harness.contracts.model import Model
from harness.pipeline.executors.cluster import (
    check_models,
    connect,
    disconnect,
    nodes,
    workers_of,
)
from harness.pipeline.executors.local import LocalExecutor
from harness.pipeline.executors.node_check import share_concurrency, work_order
from harness.pipeline.executors.planned import Executor, PlannedRun
from harness.pipeline.executors.run_keys import keys_of
from harness.pipeline.executors.shared_workers import SharedWorkers
from harness.pipeline.memos import Memory
from harness.pipeline.plan import Plan, StageRun, State
from harness.pipeline.progress import ClusterProgress
from harness.pipeline.session import Session
from harness.pipeline.settings import RunSettings
from harness.pipeline.stage_context import StageContext
from harness.runs.atomic_files import RUNS


def join_cluster(
    settings: RunSettings,
    models: Sequence[Model],
    stack: ExitStack,
    engines: SharedEngines | None = None,
) -> None:
    """Join the cluster until the stack closes, if the settings name one; HarnessError if the run
    does not fit on it.

    Runs that share `engines` there wait for room when they have begun.
    """
    if settings.executor == "ray":
        check_models(models, settings)
        connect(settings.ray_address)
        stack.callback(disconnect)
        if not isinstance(engines, SharedWorkers):
            workers_of(models, settings, nodes())


async def open_executor(
    run: Session,
    plan: Plan,
    engines: EngineGate,
    stack: AsyncExitStack,
    *,
    on_stage_end: Callable[[StageRun], None],
) -> Executor:
    """The executor that the session's settings name; `stack` closes what it needs."""
    chosen = _on_cluster if run.settings.executor == "ray" else _in_this_process
    planned = PlannedRun(
        plan=plan,
        limits=run.settings.max_failures,
        retry_failures=run.settings.retry_failures,
        ask_unanswered=not run.taken.done,
        on_stage_start=lambda stage: run.display.stage_started(stage.progress),
        on_stage_end=on_stage_end,
    )
    return await chosen(run, planned, engines, stack)


async def _in_this_process(
    run: Session, planned: PlannedRun, engines: EngineGate, stack: AsyncExitStack
) -> Executor:
    """The executor that asks from this process."""
    settings, announce = run.settings, run.display.show_line
    warn = functools.partial(announce, problem=True)
    store = answers = None
    if settings.store_file is not None:
        store = Store.open(settings.store_file, warn=warn)
        stack.callback(store.close)
    own = Store.open(run.taken.folder.own_answers, warn=warn, option=RUNS)
    stack.callback(own.close)
    if run.taken.folder.answers.exists():
        answers = Store.open(run.taken.folder.answers, warn=warn, option=RUNS)
        stack.callback(answers.close)
    client = Client(
        store=store,
        run_id=run.taken.run_id,
        patience=settings.patience,
        engines=engines,
        fresh=run.taken.run_id if settings.fresh else None,
        announce=announce,
        mailbox=BatchAnswers(answers, puts_off=run.outbox is not None),
        own=OwnAnswers(own, session=len(run.taken.manifest.sessions)),
    )
    client.follow(run.start.client)
    return LocalExecutor(
        planned,
        client=client,
        memo=Memory(store, own),
        on_put_off=None if run.outbox is None else run.outbox.write,
    )


async def _on_cluster(
    run: Session, planned: PlannedRun, engines: EngineGate, stack: AsyncExitStack
) -> Executor:
    """The executor that asks from workers on a Ray cluster."""
    from harness.pipeline.executors.ray import RayExecutor
    from harness.pipeline.executors.ray_workers import Workers

    settings, announce = run.settings, run.display.show_line
    if run.taken.folder.answers.exists():
        raise UsageError(
            "the run has answers that came in batches, which workers on a cluster cannot read",
            where=str(run.taken.folder.answers),
            expected="--executor local, which finishes the same run",
        )
    if run.start.look is not None:
        await run.start.look()
    contexts: dict[str, list[StageContext]] = {}
    for stage in planned.plan.runs:
        contexts.setdefault(stage.task, []).append(stage.context)
    stack.callback(run.joined.close)
    models = run.start.asked
    later = [stage for stage in planned.plan.runs if stage.state is State.PUT_OFF]
    shared = run.engines if isinstance(run.engines, SharedWorkers) else None
    if shared is None:
        count, gpus = workers_of(models, settings, nodes())
    else:
        now = [stage.context.models for stage in planned.plan.runs if stage not in later]
        asked = [model for model in models if any(model in those for those in now)]
        count, gpus = await shared.room(asked, settings, announce)
    order = work_order(
        settings,
        contexts,
        run.plugins,
        run_id=run.taken.run_id,
        folder=run.taken.folder.path,
        session=len(run.taken.manifest.sessions),
        workers=count,
        put_off={(stage.task, stage.context.stage.name) for stage in later},
    )
    share_concurrency(models, order)
    earlier = run.start.client
    workers = Workers(
        order=order,
        keys=keys_of(models),
        gpus=gpus,
        used=earlier.meter.used(),
        announce=announce,
        shared=shared,
    )
    stack.callback(workers.close)
    run.progress.cluster = ClusterProgress()
    return RayExecutor(
        planned,
        workers=workers,
        count=count,
        usage=earlier.usage,
        seen=run.progress.cluster,
        announce=announce,
    )
