"""Runs a plan: its stages start in the plan's order, and end when their items are done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING

from harness.base import clock
from harness.base.errors import HarnessError, StorageError
from harness.pipeline.executors.lanes import Lanes, LoopTurns, ends_gently
from harness.pipeline.item_queue import FailureWatch, StageQueue, limits_of, make_items
from harness.pipeline.plan import Plan, StageRun, State
from harness.runs.journal import open_journal, recorded

if TYPE_CHECKING:
    from harness.pipeline.executors.sharded import RemoteWorkers


@dataclass(eq=False, kw_only=True)
class Executor:
    """Runs every stage of a plan; a run that is stopped keeps all its records.

    `make_workers` makes what works the items: the lanes of this process, or workers elsewhere.
    `limits` are the command's limits of failures by family. `ask_unanswered` asks again what ended
    without an answer, and `retry_failures` all questions of failed items, past the store. `halted`
    holds why tasks were given up.
    """

    plan: Plan
    make_workers: InitVar[Callable[[Executor], Lanes | RemoteWorkers]]
    limits: Mapping[str, float]
    retry_failures: bool = False
    ask_unanswered: bool = False
    on_stage_start: Callable[[StageRun], None] = lambda run: None
    on_stage_end: Callable[[StageRun], None] = lambda run: None
    halted: list[HarnessError] = field(default_factory=list)
    stopped_by: HarnessError | None = None

    def __post_init__(self, make_workers: Callable[[Executor], Lanes | RemoteWorkers]) -> None:
        self._queues: list[StageQueue] = []
        self._changed = asyncio.Event()
        self._crash: BaseException | None = None
        self.yield_to_loop = LoopTurns()
        self.workers = make_workers(self)

    async def run(self) -> None:
        """Run the plan; raises what stopped it."""
        try:
            await self._run_stages()
            await self.workers.settled()
        finally:
            self.workers.drop()
            try:
                await self.workers.ended()
            finally:
                self._close_journals()
        if self._crash is not None:
            raise self._crash
        if self.stopped_by is not None:
            raise self.stopped_by

    def stop(self, error: HarnessError, *, at_once: bool = False) -> None:
        """End the run with this error: calls in flight may finish, or are dropped at once."""
        self.stopped_by = self.stopped_by or error
        self.workers.stop_calls(error)
        if at_once:
            self.workers.drop()
        self._changed.set()

    @property
    def over(self) -> bool:
        """Whether the run was stopped, so that no further item is to be taken."""
        return self.stopped_by is not None or self._crash is not None

    def worker_ended(self, error: BaseException | None) -> None:
        """A worker has ended; its error ends the run."""
        if isinstance(error, HarnessError):
            self.stop(error, at_once=not ends_gently(error))
        elif error is not None:
            self._crash = self._crash or error
            self.workers.drop()
        self._changed.set()

    async def _run_stages(self) -> None:
        while not self.over:
            self._changed.clear()
            try:
                while not self.over and (admitted := self.plan.admit()):
                    for run in admitted:
                        if not self.over:
                            await self._start(run)
                    self.workers.start()
            except HarnessError as error:
                self.stop(error, at_once=not ends_gently(error))
                return
            if not self.plan.unfinished():
                return
            if not self.workers.busy and not self._changed.is_set():
                waiting = ", ".join(run.context.label for run in self.plan.unfinished())
                raise HarnessError(
                    "deadlock: none of the unfinished stages can start",
                    found=waiting,
                    expected="stages whose `after` lead back to a stage without `after`",
                )
            await self._changed.wait()

    async def _start(self, run: StageRun) -> None:
        run.progress.started = clock.seconds()
        self.on_stage_start(run)
        item_file = await make_items(
            run, self.yield_to_loop, lambda: self.over, by_user=self.workers.by_user
        )
        if item_file is None:
            return
        run.progress.total = len(item_file)
        stage = run.context.stage
        queue = StageQueue(
            run=run,
            item_file=item_file,
            recorded=recorded(run.journal, run.context.key),
            writer=open_journal(run.journal),
            watch=FailureWatch(
                run=run.journal.parent.parent.name,  # RUN/TASK/JOURNAL
                limits=limits_of(run.context.task, self.limits),
                total=run.progress.total,
                scored=stage.scored and bool(stage.roles),
                asks=bool(stage.roles or stage.judges),
            ),
            retry_failures=self.retry_failures,
            ask_unanswered=self.ask_unanswered,
            yield_to_loop=self.yield_to_loop,
            on_end=self._stage_ended,
        )
        self._queues.append(queue)
        self.workers.add(queue, rounds=self.plan.in_rounds(run))

    def _stage_ended(self, run: StageRun, why: HarnessError | None) -> None:
        """End a stage that is done; its task is given up if there is a reason `why`."""
        if run.state is not State.RUNNING:
            return
        if why is not None:
            self.plan.halt(run.task)
            self.halted.append(why)
        run.state = State.DONE if why is None else State.HALTED
        run.progress.ended = clock.seconds()
        self.on_stage_end(run)
        self.workers.stage_ended(run)
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
