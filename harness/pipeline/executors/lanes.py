"""Works items: asyncio workers take them from queues, do the stage's work and write the records."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from harness.base import clock
from harness.base.errors import (
    BudgetSpent,
    HarnessError,
    Interrupted,
    ModelError,
    PluginError,
    StorageError,
    UsageError,
)
from harness.calls.budget import player_name
from harness.calls.client import Client
from harness.contracts.model import Model
from harness.contracts.outcomes import FAILURES, Broken, Failure
from harness.contracts.records import CallRecord, Done, JournalLine, Judged
from harness.contracts.stage import Item, Memo
from harness.pipeline.desk import ItemDesk
from harness.pipeline.item_queue import Job, Queue
from harness.pipeline.plan import StageRun, State
from harness.runs.journal import holds_non_finite

MAX_BLOCKING_S = 0.02
"""Seconds of work after which the event loop runs timers and signal handlers."""

READY = 32
"""The fewest items that are prepared beyond those that a model is answering."""

ROUND_SIZE = 100_000
"""Items in flight in a stage that runs in rounds: all of them, bounded by memory."""

RUN_ENDING = (ModelError, BudgetSpent, StorageError, Interrupted, PluginError, UsageError)
"""Errors of a worker that end it, and the run as well; any other error costs one item."""

GENTLE = (BudgetSpent, Interrupted)
"""Errors after which calls in flight may finish: these are paid for, and valid."""


class LoopTurns:
    """Yields to the event loop when it is called, if that was held up for long."""

    def __init__(self) -> None:
        self._last = 0.0

    async def __call__(self) -> None:
        if clock.seconds() - self._last > MAX_BLOCKING_S:
            await asyncio.sleep(0)
            self._last = clock.seconds()


class Overseer(Protocol):
    """What lanes report to, and ask whether to go on."""

    @property
    def over(self) -> bool:
        """Whether no further item is to be taken."""

    def worker_ended(self, error: BaseException | None) -> None:
        """A worker has ended, by this error if it is not None."""


@dataclass(eq=False, kw_only=True)
class _Lane:
    """The stages that share a model, in order; the next one starts as the last items run."""

    width: int
    queues: deque[Queue] = field(default_factory=deque)
    workers: int = 0
    busy: int = 0


def lane_width(run: StageRun, *, rounds: bool) -> int:
    """The most items of a stage that are worked at once.

    More than the model's concurrency: answers come in bursts, and no request slot may wait until a
    record is written and the next prompt is rendered.
    """
    models = run.context.models
    width = ROUND_SIZE if rounds else max((m.concurrency for m in models), default=1)
    return width + max(width // 8, READY)


class Lanes:
    """The workers of a process, in a lane for each model: stages that share a model share them."""

    by_user = False
    """Whether items are taken by the hash of their user, and not as they were made."""

    def __init__(
        self, overseer: Overseer, *, client: Client, memo: Callable[[str, str], Memo]
    ) -> None:
        self._overseer = overseer
        self._client = client
        self._memo = memo
        self._lanes: dict[StageRun | Model | None, _Lane] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._dropped = asyncio.Event()
        self._yield_to_loop = LoopTurns()

    def add(self, queue: Queue, *, rounds: bool) -> None:
        """Add a queue to the lane of its model; `start` starts workers for it."""
        run = queue.run
        models = run.context.models
        lane_key = run if rounds or queue.alone else models[0] if models else None
        lane = self._lanes.get(lane_key)
        if lane is None:
            lane = self._lanes[lane_key] = _Lane(width=lane_width(run, rounds=rounds))
        if queue not in lane.queues:
            lane.queues.append(queue)

    def start(self) -> None:
        """Start as many workers on each lane as its width and items allow."""
        for lane in self._lanes.values():
            width = 1 if any(queue.alone for queue in lane.queues) else lane.width
            wanted = min(width, lane.busy + max(1, sum(queue.left for queue in lane.queues)))
            while lane.queues and lane.workers < wanted:
                lane.workers += 1
                task = asyncio.get_running_loop().create_task(self._work(lane))
                self._workers.add(task)
                task.add_done_callback(self._worker_ended)

    def usage(self) -> dict[str, dict[str, int]]:
        """The counts of the client's calls."""
        return self._client.usage.as_json()

    def limits(self) -> dict[str, Any]:
        """The history of the client's limiters."""
        return self._client.limits()

    def stop_calls(self, error: HarnessError) -> None:
        """Send no further question: those who wait to send one raise the error."""
        self._client.stop(error)

    def stage_ended(self, run: StageRun) -> None:
        """Nothing is kept of a stage: its queue gives no item any more."""

    @property
    def busy(self) -> bool:
        """Whether a worker is at work."""
        return bool(self._workers)

    async def settled(self) -> None:
        """Wait until all workers have ended, and the calls that they left in flight."""
        if self._workers:
            await asyncio.wait(self._workers)
        # A worker may have asked several questions at once and ended at the first error.
        landed, dropped = (
            asyncio.ensure_future(one) for one in (self._client.landed(), self._dropped.wait())
        )
        try:
            await asyncio.wait((landed, dropped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            landed.cancel()
            dropped.cancel()

    def drop(self) -> None:
        """End all workers at once."""
        self._dropped.set()
        for task in self._workers:
            task.cancel()

    async def ended(self) -> None:
        """Wait until workers that were dropped have ended."""
        await asyncio.gather(*self._workers, return_exceptions=True)

    def _worker_ended(self, task: asyncio.Task[None]) -> None:
        self._workers.discard(task)
        self._overseer.worker_ended(None if task.cancelled() else task.exception())

    async def _work(self, lane: _Lane) -> None:
        try:
            while not self._overseer.over and (job := await self._next(lane)) is not None:
                lane.busy += 1
                try:
                    await self._process(job)
                finally:
                    lane.busy -= 1
                    job.queue.run.progress.in_flight -= 1
                job.queue.worked()
                await self._yield_to_loop()
        finally:
            lane.workers -= 1

    async def _next(self, lane: _Lane) -> Job | None:
        while lane.queues and not self._overseer.over:
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
            queue.worked()
        return None

    async def _process(self, job: Job) -> None:
        context = job.queue.run.context
        desk = ItemDesk(
            item=job.item,
            context=context,
            client=self._client,
            memo=self._memo,
            refresh=job.again,
            asker=job.asker,
        )
        result: Any
        try:
            result = await context.stage.work(job.item, desk)
        except RUN_ENDING:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The worker was not cancelled, but something that it waited for.
            result = Broken("CancelledError", traceback.format_exc(limit=-4))
        except Exception as error:
            result = Broken(type(error).__name__, traceback.format_exc(limit=-4))
        calls, judged = tuple(desk.calls), tuple(desk.judged)
        failure = record_outcome(job.queue, job, result, calls=calls, judged=judged)
        if failure is not None:
            job.queue.failed(failure)


def record_outcome(
    queue: Queue,
    job: Job,
    result: Any,
    *,
    calls: tuple[CallRecord, ...] = (),
    judged: tuple[Judged, ...] = (),
) -> Failure | None:
    """Write an item's record and count it; the failure that was recorded, if it has no value."""
    run = queue.run
    recorded = run.context.stage.recorded
    outcome = result if isinstance(result, FAILURES) else _done(queue, result)
    record: JournalLine[Item, Any] = JournalLine(
        key=job.key,
        stage=run.context.key,
        user=job.item.user,
        id=job.item.id,
        item=recorded(job.item) if recorded else job.item,
        outcome=outcome,
        calls=calls,
        judged=judged or msgspec.UNSET,
    )
    try:
        queue.writer.append(record)
    except ValueError as error:
        outcome = Broken("unwritable_value", str(error))
        record = msgspec.structs.replace(record, outcome=outcome)
        try:
            queue.writer.append(record)
        except ValueError:  # of its calls or what was judged
            queue.writer.append(msgspec.structs.replace(record, calls=(), judged=msgspec.UNSET))
    _count(run, outcome, calls)
    return None if isinstance(outcome, Done) else outcome


def ends_gently(error: HarnessError) -> bool:
    """Whether calls in flight may finish after this error."""
    return isinstance(error, GENTLE)


def _done(queue: Queue, value: Any) -> Done[Any] | Broken:
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


RARELY = 10_000
"""Objects made between two collections. With Python's default of 700, collecting over all objects
that wait for a reply takes a tenth of a run's processor time."""

_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []
"""The thresholds that each active run found; the first ones are those from before all runs."""


def collect_rarely() -> None:
    """Collect garbage less often from now on."""
    often, *rest = gc.get_threshold()
    if 0 < often < RARELY:
        gc.set_threshold(RARELY, *rest)


@contextmanager
def rare_collection() -> Iterator[None]:
    """Collect garbage less often until the last of several overlapping runs ends."""
    with _lock:
        _before.append(_before[0] if _before else gc.get_threshold())
        collect_rarely()
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before:
                gc.set_threshold(*before)
