"""What executors share: stages start in the order of a plan, and end when their items are done."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.base import clock
from harness.base.errors import HarnessError, StorageError
from harness.contracts.outcomes import Failure, tag_of
from harness.pipeline.executors.lanes import LoopTurns, ends_gently
from harness.pipeline.failure_limits import FailureWatch, limits_of
from harness.pipeline.item_queue import ItemQueue, Job, Queue, make_items
from harness.pipeline.plan import Plan, StageRun, State
from harness.runs.journal import open_journal, recorded


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """What an executor is to run, and who hears of the stages.

    `limits` are the command's limits of failures by family. `ask_unanswered` asks again what ended
    without an answer, and `retry_failures` all questions of failed items, past the store.
    """

    plan: Plan
    limits: Mapping[str, float]
    on_stage_start: Callable[[StageRun], None]
    on_stage_end: Callable[[StageRun], None]
    retry_failures: bool = False
    ask_unanswered: bool = False


class Executor(ABC):
    """Runs every stage of a plan; a run that is stopped keeps all its records.

    `halted` holds why tasks were given up. A subclass works the
    items of a queue that `_serve` gives it, and calls `worked` as they are done. `by_user`: items
    are taken by the hash of their user.
    """

    by_user = False

    def __init__(self, planned: PlannedRun) -> None:
        self._planned = planned
        self._plan = planned.plan
        self._queues: list[ItemQueue] = []
        self._changed = asyncio.Event()
        self._yield_to_loop = LoopTurns()
        self._stopped_by: HarnessError | None = None
        self._crash: BaseException | None = None
        self.halted: list[HarnessError] = []

    async def run(self) -> None:
        """Run the plan; raises what stopped it."""
        try:
            await self._run_stages()
            await self._settled()
        finally:
            self._drop()
            try:
                await self._ended()
            finally:
                self._close_journals()
        if self._crash is not None:
            raise self._crash
        if self._stopped_by is not None:
            raise self._stopped_by

    def stop(self, error: HarnessError, *, at_once: bool = False) -> None:
        """End the run with this error: calls in flight may finish, or are dropped at once."""
        self._stopped_by = self._stopped_by or error
        self._stop_calls(error)
        if at_once:
            self._drop()
        self._changed.set()

    @abstractmethod
    def usage(self) -> dict[str, dict[str, int]]:
        """The counts of the session's calls by stage and role, as manifests have them."""

    @abstractmethod
    def limits(self) -> dict[str, Any]:
        """The history of the models' limiters, as manifests have it."""

    @property
    def over(self) -> bool:
        """Whether the run was stopped, so that no further item is to be taken."""
        return self._stopped_by is not None or self._crash is not None

    @property
    @abstractmethod
    def _busy(self) -> bool:
        """Whether items are being worked."""

    @abstractmethod
    def _serve(self, queue: ItemQueue, *, rounds: bool) -> None:
        """Take a queue on, whose items `_start_work` has worked."""

    @abstractmethod
    def _start_work(self) -> None:
        """Begin to work items of all queues, as many as there is room for."""

    @abstractmethod
    def _stop_calls(self, error: HarnessError) -> None:
        """Send no further question to a model: those who wait to send one raise the error."""

    @abstractmethod
    def _drop(self) -> None:
        """End all work at once."""

    @abstractmethod
    async def _settled(self) -> None:
        """Wait until work and calls in flight have ended."""

    @abstractmethod
    async def _ended(self) -> None:
        """Wait until work that was dropped has ended."""

    async def _run_stages(self) -> None:
        while not self.over:
            self._changed.clear()
            try:
                while not self.over and (admitted := self._plan.admit()):
                    for run in admitted:
                        if not self.over:
                            await self._start(run)
                    self._start_work()
            except HarnessError as error:
                self.stop(error, at_once=not ends_gently(error))
                return
            if not self._plan.unfinished():
                return
            if not self._busy and not self._changed.is_set():
                waiting = ", ".join(run.context.label for run in self._plan.unfinished())
                raise HarnessError(
                    "deadlock: none of the unfinished stages can start",
                    found=waiting,
                    expected="stages whose `after` lead back to a stage without `after`",
                )
            await self._changed.wait()

    async def _start(self, run: StageRun) -> None:
        run.progress.started = clock.seconds()
        self._planned.on_stage_start(run)
        item_file = await make_items(
            run, self._yield_to_loop, lambda: self.over, by_user=self.by_user
        )
        if item_file is None:
            return
        run.progress.total = len(item_file)
        queue = ItemQueue(
            run=run,
            item_file=item_file,
            recorded=recorded(run.journal, run.context.key),
            writer=open_journal(run.journal),
            watch=FailureWatch(
                limits=limits_of(run.context.task, self._planned.limits),
                total=run.progress.total,
                scored=run.context.stage.scored and bool(run.context.stage.roles),
                asks=bool(run.context.stage.roles or run.context.stage.judges),
            ),
            retry_failures=self._planned.retry_failures,
            ask_unanswered=self._planned.ask_unanswered,
            yield_to_loop=self._yield_to_loop,
        )
        self._queues.append(queue)
        self._serve(queue, rounds=self._plan.in_rounds(run))

    def worker_ended(self, error: BaseException | None) -> None:
        """A worker has ended; its error ends the run."""
        if isinstance(error, HarnessError):
            self.stop(error, at_once=not ends_gently(error))
        elif error is not None:
            self._crash = self._crash or error
            self._drop()
        self._changed.set()

    def failed(self, queue: Queue, failure: Failure) -> None:
        """Count a failure; the task is given up if too many can no longer be avoided."""
        assert isinstance(queue, ItemQueue)
        self._count_failure(queue, tag_of(failure), failure.cause, failure.detail)

    def _count_failure(self, queue: ItemQueue, tag: str, cause: str, detail: str) -> None:
        queue.watch.failed(tag, cause, detail)
        if queue.watch.hopeless():
            self._give_up(queue, queue.watch.error(queue.run.context.label))

    def worked(self, queue: Queue, job: Job | None) -> None:
        """End the queue's stage if all its items are done."""
        assert isinstance(queue, ItemQueue)
        run = queue.run
        whole = queue.exhausted and run.progress.done == run.progress.total
        if not whole or run.progress.in_flight or run.state is not State.RUNNING:
            return
        queue.close()
        if queue.watch.too_many():
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
        queue.run.progress.ended = clock.seconds()
        self._planned.on_stage_end(queue.run)
        self._changed.set()

    def _close_journals(self) -> None:
        failed: StorageError | None = None
        for queue in self._queues:
            try:
                queue.close()
            except StorageError as error:
                failed = failed or error
        if failed is not None:
            raise failed
