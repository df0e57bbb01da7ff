"""Carries a plan out in this process: workers pull items, one record an item."""

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
from harness.calls.batch_answers import PutOff
from harness.calls.client import Client
from harness.calls.usage import player_name
from harness.contracts.desk import Memo
from harness.contracts.model import Model
from harness.contracts.outcomes import FAILURES, Broken, tag_of
from harness.contracts.records import CallRecord, Done, JournalLine
from harness.contracts.stage import Item
from harness.pipeline.desk import ItemDesk
from harness.pipeline.failure_limits import FailureWatch, limits_of
from harness.pipeline.item_queue import Feed, Job, fill
from harness.pipeline.plan import Plan, StageRun, State
from harness.runs.journal import JournalWriter, recorded

BREATH = 0.02
"""Seconds of work without a pause after which timers and signals get their turn."""

READY = 32
"""Items at least that are made ready beyond those a model has in hand."""

ROUND_SIZE = 100_000
"""Items in flight in a stage that goes in rounds: all of them, within memory."""

RUN_ENDING = (ModelError, BudgetSpent, StorageError, Interrupted, PluginError, UsageError)
"""What ends a run when a worker meets it; anything else costs one item."""

GENTLE = (BudgetSpent, Interrupted)
"""Ends that let calls in flight finish: they are paid for, and good."""


@dataclass(eq=False, kw_only=True)
class _Lane:
    """The stages that share a model, in order; the next one fills the tail of the one before."""

    width: int
    feeds: deque[Feed] = field(default_factory=deque)
    workers: int = 0
    busy: int = 0


@dataclass(frozen=True, kw_only=True)
class LocalSettings:
    """How a plan is carried out. `retry_failures` asks failed items again, past the store.

    `limits` are the shares of failures that were given, by family.
    """

    limits: Mapping[str, float]
    retry_failures: bool = False


class LocalExecutor:
    """Runs every stage of a plan; what it is told to stop, it stops with everything kept."""

    def __init__(
        self,
        *,
        plan: Plan,
        client: Client,
        memo: Callable[[str], Memo],
        settings: LocalSettings,
        on_stage_start: Callable[[StageRun], None],
        on_stage_end: Callable[[StageRun], None],
        on_put_off: Callable[[StageRun, PutOff], None] | None = None,
    ) -> None:
        self._plan = plan
        self._client = client
        self._memo = memo
        self._settings = settings
        self._on_stage_start = on_stage_start
        self._on_stage_end = on_stage_end
        self._on_put_off = on_put_off
        self._lanes: dict[StageRun | Model | None, _Lane] = {}
        self._feeds: list[Feed] = []
        self._workers: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._stopped_by: HarnessError | None = None
        self._crash: BaseException | None = None
        self._dropped = asyncio.Event()
        self._last_breath = 0.0
        self.halted: list[HarnessError] = []

    async def run(self) -> None:
        """Carry the plan out; raises what stopped it. `halted` holds why tasks were given up."""
        try:
            await self._run_stages()
            if self._workers:
                await asyncio.wait(self._workers)
            # A worker may have asked several questions at once and ended at the first refusal.
            await first_of(self._client.landed(), self._dropped.wait())
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
                    "no stage can go on, though some are not done",
                    found=waiting,
                    expected="stages whose `after` lead back to a first one",
                )
            await self._changed.wait()

    async def _start_ready_stages(self) -> None:
        while not self._over and (admitted := self._plan.admit()):
            for run in admitted:
                if not self._over:
                    await self._start(run)
            for lane in self._lanes.values():
                self._man(lane)

    async def _start(self, run: StageRun) -> None:
        run.progress.started = time.monotonic()
        self._on_stage_start(run)
        stock = await fill(run, self._breathe, lambda: self._over)
        if stock is None:
            return
        run.progress.total = len(stock)
        feed = Feed(
            run=run,
            stock=stock,
            recorded=recorded(run.journal, run.context.key),
            writer=JournalWriter(run.journal),
            watch=FailureWatch(
                limits=limits_of(run.context.task, self._settings.limits),
                total=run.progress.total,
            ),
            retry_failures=self._settings.retry_failures,
            breathe=self._breathe,
        )
        self._feeds.append(feed)
        rounds = self._plan.in_rounds(run)
        models = run.context.models
        lane_key = run if rounds else models[0] if models else None
        width = ROUND_SIZE if rounds else max((m.concurrency for m in models), default=1)
        # More than the model takes at once: answers come in bursts, and none of its places may wait
        # until a record and the next prompt are made.
        lane = self._lanes.setdefault(lane_key, _Lane(width=width + max(width // 8, READY)))
        lane.feeds.append(feed)

    def _man(self, lane: _Lane) -> None:
        """Put as many workers on a lane as it has width and items for."""
        wanted = min(lane.width, lane.busy + max(1, sum(feed.left for feed in lane.feeds)))
        while lane.feeds and lane.workers < wanted:
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
                    job.feed.run.in_flight -= 1
                self._end_if_over(job.feed)
                await self._breathe()
        finally:
            lane.workers -= 1

    async def _next(self, lane: _Lane) -> Job | None:
        while lane.feeds and not self._over:
            feed = lane.feeds[0]
            # Counted before it is drawn: the stage must not end while its next item is sought.
            feed.run.in_flight += 1
            job = None
            try:
                job = await feed.next() if feed.run.state is State.RUNNING else None
            finally:
                feed.run.in_flight -= job is None
            if job is not None:
                return job
            if lane.feeds and lane.feeds[0] is feed:
                lane.feeds.popleft()
            self._end_if_over(feed)
        return None

    async def _process(self, job: Job) -> None:
        context = job.feed.run.context
        desk = ItemDesk(
            item=job.item,
            context=context,
            client=self._client,
            memo=self._memo,
            refresh=job.again,
        )
        result: Any
        try:
            result = await context.stage.work(job.item, desk)
        except RUN_ENDING:
            raise
        except PutOff as question:
            self._put_off(job, question)
            return
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Not we were cancelled, but something that the worker waited for.
            result = Broken("CancelledError", traceback.format_exc(limit=-4))
        except Exception as error:
            result = Broken(type(error).__name__, traceback.format_exc(limit=-4))
        self._record(job, result, desk)

    def _put_off(self, job: Job, question: PutOff) -> None:
        """Have a question written down; its stage is given up where answers lead to others."""
        feed = job.feed
        _, most = feed.run.context.calls(job.item)
        if most > 1:
            self._give_up(feed, asks_again(feed.run.context.label, most))
            return
        feed.run.progress.put_off += 1
        if self._on_put_off is not None:
            self._on_put_off(feed.run, question)

    async def _breathe(self) -> None:
        if time.monotonic() - self._last_breath > BREATH:
            await asyncio.sleep(0)
            self._last_breath = time.monotonic()

    def _record(self, job: Job, result: Any, desk: ItemDesk) -> None:
        feed, run = job.feed, job.feed.run
        calls = tuple(desk.calls)
        outcome = result if isinstance(result, FAILURES) else Done(result)
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
            feed.writer.append(record)
        except ValueError as error:
            outcome = Broken("unwritable_value", str(error))
            self._record_without(feed, msgspec.structs.replace(record, outcome=outcome))
        _count(run, outcome, calls)
        if not isinstance(outcome, Done):
            feed.watch.failed(tag_of(outcome), outcome.cause, outcome.detail)
            if feed.watch.hopeless():
                self._give_up(feed, feed.watch.error(run.context.label))

    def _record_without(self, feed: Feed, record: JournalLine[Item, Any]) -> None:
        """Write that an item has no value, leaving out what no file can hold."""
        try:
            feed.writer.append(record)
        except ValueError:
            feed.writer.append(msgspec.structs.replace(record, calls=(), judged=msgspec.UNSET))

    def _end_if_over(self, feed: Feed) -> None:
        run = feed.run
        worked = run.progress.done + run.progress.put_off
        whole = feed.exhausted and worked == run.progress.total
        if not whole or run.in_flight or run.state is not State.RUNNING:
            return
        feed.writer.close()
        if run.progress.put_off:
            self._plan.put_off(run)
            self._end(feed, State.PUT_OFF)
        elif feed.watch.too_many():
            self._give_up(feed, feed.watch.error(run.context.label))
        else:
            self._end(feed, State.DONE)

    def _give_up(self, feed: Feed, why: HarnessError) -> None:
        if feed.run.state is State.RUNNING:
            self._plan.halt(feed.run.task)
            self.halted.append(why)
            self._end(feed, State.HALTED)

    def _end(self, feed: Feed, state: State) -> None:
        feed.run.state = state
        feed.run.progress.ended = time.monotonic()
        self._on_stage_end(feed.run)
        self._changed.set()

    def _close_journals(self) -> None:
        failed: StorageError | None = None
        for feed in self._feeds:
            try:
                feed.writer.close()
            except StorageError as error:
                failed = failed or error
        if failed is not None:
            raise failed


class AsksAgain(HarnessError):
    """A stage whose questions follow from answers, so that no file holds them beforehand."""


def asks_again(label: str, most: int) -> AsksAgain:
    """The error for a stage that asks up to so many questions an item."""
    return AsksAgain(
        "this stage's questions cannot be written down",
        where=label,
        found=f"up to {most} questions an item, one after the other's answer",
        expected="a stage that asks once an item",
        hint="`harness run` with the same options asks it live, and goes on in the same folder",
    )


async def first_of(*waits: Coroutine[Any, Any, Any]) -> None:
    """Return when one of them is over; the others are dropped."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


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
            progress.untold += player not in run.context.by_rule
