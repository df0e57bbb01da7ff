"""Runs a plan in this process: workers take items from queues and write a record of each."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.base.errors import (
    BudgetSpent,
    HarnessError,
    Interrupted,
    ModelError,
    PluginError,
    StorageError,
    UsageError,
)
from harness.calls.batch_answers import DeferredToBatch
from harness.calls.client import Client
from harness.calls.usage import player_name
from harness.contracts.desk import Memo
from harness.contracts.model import Model
from harness.contracts.outcomes import FAILURES, Broken, tag_of
from harness.contracts.records import CallRecord, Done, JournalLine
from harness.contracts.stage import Item
from harness.pipeline.desk import ItemDesk
from harness.pipeline.failure_limits import FailureWatch, limits_of
from harness.pipeline.item_queue import ItemQueue, Job, make_items
from harness.pipeline.plan import Plan, StageRun, State
from harness.runs.journal import holds_non_finite, open_journal, recorded

MAX_BLOCKING_S = 0.02
"""Seconds of work after which the event loop runs timers and signal handlers."""

READY = 32
"""The fewest items that are prepared beyond those that a model is answering."""

ROUND_SIZE = 100_000
"""Items in flight in a stage that runs in rounds: all of them, bounded by memory."""

RUN_ENDING = (ModelError, BudgetSpent, StorageError, Interrupted, PluginError, UsageError)
"""Errors of a worker that end the run; any other error costs one item."""

GENTLE = (BudgetSpent, Interrupted)
"""Errors after which calls in flight may finish: these are paid for, and valid."""


@dataclass(eq=False, kw_only=True)
class _Lane:
    """The stages that share a model, in order; the next one starts as the last items run."""

    width: int
    queues: deque[ItemQueue] = field(default_factory=deque)
    workers: int = 0
    busy: int = 0


class LocalExecutor:
    """Runs every stage of a plan; a run that is stopped keeps all its records.

    `limits` are the command's limits of failures by family. `retry_failures` asks the questions of
    failed items again, past the store.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        client: Client,
        memo: Callable[[str, str], Memo],
        limits: Mapping[str, float],
        on_stage_start: Callable[[StageRun], None],
        on_stage_end: Callable[[StageRun], None],
        retry_failures: bool = False,
        on_put_off: Callable[[StageRun, DeferredToBatch], None] | None = None,
    ) -> None:
        self._plan = plan
        self._client = client
        self._memo = memo
        self._limits = limits
        self._retry_failures = retry_failures
        self._on_stage_start = on_stage_start
        self._on_stage_end = on_stage_end
        self._on_put_off = on_put_off
        self._lanes: dict[StageRun | Model | None, _Lane] = {}
        self._queues: list[ItemQueue] = []
        self._workers: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._stopped_by: HarnessError | None = None
        self._crash: BaseException | None = None
        self._dropped = asyncio.Event()
        self._last_yield = 0.0
        self.halted: list[HarnessError] = []

    async def run(self) -> None:
        """Run the plan; raises what stopped it. `halted` holds why tasks were given up."""
        try:
            await self._run_stages()
            if self._workers:
                await asyncio.wait(self._workers)
            # A worker may have asked several questions at once and ended at the first error.
            await wait_for_first(self._client.landed(), self._dropped.wait())
        finally:
            self._drop_workers()
            await asyncio.gather(*self._workers, return_exceptions=True)
            self._close_journals()
        if self._crash is not None:
            raise self._crash
        if self._stopped_by is not None:
            raise self._stopped_by

    def stop(self, error: HarnessError, *, at_once: bool = False) -> None:
        """End the run with this error: calls in flight may finish, or are dropped at once."""
        self._stopped_by = self._stopped_by or error
        self._client.stop(error)
        if at_once:
            self._drop_workers()
        self._changed.set()

    @property
    def _over(self) -> bool:
        return self._stopped_by is not None or self._crash is not None

    async def _run_stages(self) -> None:
        while not self._over:
            self._changed.clear()
            try:
                await self._start_ready_stages()
            except HarnessError as error:
                self.stop(error, at_once=not isinstance(error, GENTLE))
                return
            if not self._plan.unfinished():
                return
            if not self._workers and not self._changed.is_set():
                waiting = ", ".join(run.context.label for run in self._plan.unfinished())
                raise HarnessError(
                    "deadlock: none of the unfinished stages can start",
                    found=waiting,
                    expected="stages whose `after` lead back to a stage without `after`",
                )
            await self._changed.wait()

    async def _start_ready_stages(self) -> None:
        while not self._over and (admitted := self._plan.admit()):
            for run in admitted:
                if not self._over:
                    await self._start(run)
            for lane in self._lanes.values():
                self._start_workers(lane)

    async def _start(self, run: StageRun) -> None:
        run.progress.started = time.monotonic()
        self._on_stage_start(run)
        item_file = await make_items(run, self._yield_to_loop, lambda: self._over)
        if item_file is None:
            return
        run.progress.total = len(item_file)
        queue = ItemQueue(
            run=run,
            item_file=item_file,
            recorded=recorded(run.journal, run.context.key),
            writer=open_journal(run.journal),
            watch=FailureWatch(
                limits=limits_of(run.context.task, self._limits),
                total=run.progress.total,
                asks_candidate=run.context.stage.asks_candidate,
            ),
            retry_failures=self._retry_failures,
            yield_to_loop=self._yield_to_loop,
            decode_value=msgspec.json.Decoder(run.context.stage.value).decode,
        )
        self._queues.append(queue)
        rounds = self._plan.in_rounds(run)
        models = run.context.models
        lane_key = run if rounds else models[0] if models else None
        width = ROUND_SIZE if rounds else max((m.concurrency for m in models), default=1)
        # More than the model's concurrency: answers come in bursts, and no request slot may wait
        # until a record is written and the next prompt is rendered.
        lane = self._lanes.setdefault(lane_key, _Lane(width=width + max(width // 8, READY)))
        lane.queues.append(queue)

    def _start_workers(self, lane: _Lane) -> None:
        """Start as many workers on a lane as its width and items allow."""
        wanted = min(lane.width, lane.busy + max(1, sum(queue.left for queue in lane.queues)))
        while lane.queues and lane.workers < wanted:
            lane.workers += 1
            task = asyncio.get_running_loop().create_task(self._work(lane))
            self._workers.add(task)
            task.add_done_callback(self._worker_ended)

    def _worker_ended(self, task: asyncio.Task[None]) -> None:
        self._workers.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, HarnessError):
                self.stop(error, at_once=not isinstance(error, GENTLE))
            else:
                self._crash = self._crash or error
                self._drop_workers()
        self._changed.set()

    def _drop_workers(self) -> None:
        self._dropped.set()
        for task in self._workers:
            task.cancel()

    async def _work(self, lane: _Lane) -> None:
        try:
            while not self._over and (job := await self._next(lane)) is not None:
                lane.busy += 1
                try:
                    await self._process(job)
                finally:
                    lane.busy -= 1
                    job.queue.run.progress.in_flight -= 1
                self._end_if_over(job.queue)
                await self._yield_to_loop()
        finally:
            lane.workers -= 1

    async def _next(self, lane: _Lane) -> Job | None:
        while lane.queues and not self._over:
            queue = lane.queues[0]
            # Counted in advance: the stage must not end while its next item is being taken.
            queue.run.progress.in_flight += 1
            job = None
            try:
                job = await queue.next() if queue.run.state is State.RUNNING else None
            finally:
                queue.run.progress.in_flight -= job is None
            if job is not None:
                return job
            if lane.queues and lane.queues[0] is queue:
                lane.queues.popleft()
            self._end_if_over(queue)
        return None

    async def _process(self, job: Job) -> None:
        context = job.queue.run.context
        desk = ItemDesk(
            item=job.item,
            context=context,
            client=self._client,
            memo=self._memo,
            refresh=job.again,
            asker=f"{context.label} {job.key} {job.replaces}",
        )
        result: Any
        try:
            result = await context.stage.work(job.item, desk)
        except RUN_ENDING:
            raise
        except DeferredToBatch as question:
            self._put_off(job, question)
            return
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The worker was not cancelled, but something that it waited for.
            result = Broken("CancelledError", traceback.format_exc(limit=-4))
        except Exception as error:
            result = Broken(type(error).__name__, traceback.format_exc(limit=-4))
        self._record(job, result, desk)

    def _put_off(self, job: Job, question: DeferredToBatch) -> None:
        """Write a question to a file; a stage whose questions follow from answers is given up."""
        queue = job.queue
        _, most = queue.run.context.calls(job.item)
        if most > 1:
            error = NotBatchable(
                "the questions of this stage cannot be written to a file",
                where=queue.run.context.label,
                found=f"up to {most} questions per item, each of which may depend on earlier"
                " answers",
                expected="a stage with one question per item",
                hint="`harness run` with the same options asks them live, in the same run folder",
            )
            self._give_up(queue, error)
            return
        queue.run.progress.put_off += 1
        if self._on_put_off is not None:
            self._on_put_off(queue.run, question)

    async def _yield_to_loop(self) -> None:
        if time.monotonic() - self._last_yield > MAX_BLOCKING_S:
            await asyncio.sleep(0)
            self._last_yield = time.monotonic()

    def _record(self, job: Job, result: Any, desk: ItemDesk) -> None:
        queue, run = job.queue, job.queue.run
        calls = tuple(desk.calls)
        outcome = result if isinstance(result, FAILURES) else _done(queue, result)
        record: JournalLine[Item, Any] = JournalLine(
            key=job.key,
            stage=run.context.key,
            user=job.item.user,
            id=job.item.id,
            item=job.item,
            outcome=outcome,
            calls=calls,
            judged=tuple(desk.judged) or msgspec.UNSET,
        )
        try:
            queue.writer.append(record)
        except ValueError as error:
            outcome = Broken("unwritable_value", str(error))
            self._record_without(queue, msgspec.structs.replace(record, outcome=outcome))
        _count(run, outcome, calls)
        if not isinstance(outcome, Done):
            queue.watch.failed(tag_of(outcome), outcome.cause, outcome.detail)
            if queue.watch.hopeless():
                self._give_up(queue, queue.watch.error(run.context.label))

    def _record_without(self, queue: ItemQueue, record: JournalLine[Item, Any]) -> None:
        """Record that an item has no value, without the parts that cannot be encoded."""
        try:
            queue.writer.append(record)
        except ValueError:
            queue.writer.append(msgspec.structs.replace(record, calls=(), judged=msgspec.UNSET))

    def _end_if_over(self, queue: ItemQueue) -> None:
        run = queue.run
        worked = run.progress.done + run.progress.put_off
        whole = queue.exhausted and worked == run.progress.total
        if not whole or run.progress.in_flight or run.state is not State.RUNNING:
            return
        queue.writer.close()
        if run.progress.put_off:
            self._plan.put_off(run)
            self._end(queue, State.PUT_OFF)
        elif queue.watch.too_many():
            self._give_up(queue, queue.watch.error(run.context.label))
        else:
            self._end(queue, State.DONE)

    def _give_up(self, queue: ItemQueue, why: HarnessError) -> None:
        if queue.run.state is State.RUNNING:
            self._plan.halt(queue.run.task)
            self.halted.append(why)
            self._end(queue, State.HALTED)

    def _end(self, queue: ItemQueue, state: State) -> None:
        queue.run.state = state
        queue.run.progress.ended = time.monotonic()
        self._on_stage_end(queue.run)
        self._changed.set()

    def _close_journals(self) -> None:
        failed: StorageError | None = None
        for queue in self._queues:
            try:
                queue.writer.close()
            except StorageError as error:
                failed = failed or error
        if failed is not None:
            raise failed


class NotBatchable(HarnessError):
    """A stage's questions follow from answers, so that they cannot be written in advance."""


async def wait_for_first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Return when one of the coroutines is done; the others are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _done(queue: ItemQueue, value: Any) -> Done[Any] | Broken:
    """The outcome of an item with a value: Broken if the value does not fit the stage's type.

    A value that JSON cannot hold is left to the journal, which says so.
    """
    try:
        queue.decode_value(msgspec.json.encode(value))
    except msgspec.ValidationError as error:
        if not holds_non_finite(value):
            stage = queue.run.context.stage
            return Broken(
                "wrong_type",
                f"stage {stage.name!r} returned a {type(value).__name__}, which does not fit its "
                f"declared value {stage.value!r}: {error}. Return such a value, or change `value` "
                "of the Stage",
            )
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    return Done(value)


def _count(run: StageRun, outcome: Any, calls: tuple[CallRecord, ...]) -> None:
    progress = run.progress
    progress.done += 1
    if not isinstance(outcome, Done):
        progress.failures[outcome.cause] += 1
    for call in calls:
        progress.calls += 1
        if call.source != "model":
            progress.calls_from_store += 1
        elif call.usage is not None:
            progress.prompt_tokens += call.usage.prompt_tokens
            progress.completion_tokens += call.usage.completion_tokens
        elif call.finish is not None:
            player = player_name(call.role, call.member)
            progress.unreported += player not in run.context.by_rule
