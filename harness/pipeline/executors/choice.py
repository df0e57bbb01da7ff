"""Opens the executor of a session: in this process, or with workers that a plugin places."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack

from harness.base.errors import UsageError
from harness.calls.batch_answers import BatchAnswers
from harness.calls.budget import combined
from harness.calls.client import Client
from harness.calls.engines import EngineGate
from harness.calls.own_answers import OwnAnswers
from harness.calls.policy import Budget
from harness.calls.store import Store
from harness.contracts.executor import Executor as Machines
from harness.contracts.executor import ExecutorSettings
from harness.contracts.model import Model
from harness.pipeline.executors.lanes import LoopTurns
from harness.pipeline.executors.local import LocalExecutor
from harness.pipeline.executors.planned import Executor, PlannedRun
from harness.pipeline.executors.sharded import ShardedExecutor
from harness.pipeline.executors.shards import Collector, collect_left_behind
from harness.pipeline.executors.work_order import keys_of, share_concurrency, work_order
from harness.pipeline.memos import Memory
from harness.pipeline.plan import Plan, StageRun
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

    UsageError for a number of workers or engines that no model of the run has a use for.
    """
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
    if run.machines is not None:
        if run.start.look is not None:
            await run.start.look()
        return _elsewhere(run, planned, run.machines, own, store)
    answers = None
    if run.taken.folder.answers.exists():
        answers = Store.open(run.taken.folder.answers, warn=warn, option=RUNS)
        stack.callback(answers.close)
    client = Client(
        store=store,
        run_id=run.taken.run_id,
        patience=settings.patience,
        engines=engines,
        fresh=run.taken.run_id if settings.fresh else None,
        announce=run.display.show_line,
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


def _elsewhere(
    run: Session, planned: PlannedRun, machines: Machines, own: Store, store: Store | None
) -> Executor:
    """The executor that hands shards to workers in other processes."""
    settings, earlier = run.settings, run.start.client
    if run.taken.folder.answers.exists():
        raise UsageError(
            "the run has answers that came in batches, which workers elsewhere cannot read",
            where=str(run.taken.folder.answers),
            expected="--executor local, which finishes the same run",
        )
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
