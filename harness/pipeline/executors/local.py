"""Runs a plan in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.base.errors import HarnessError
from harness.calls.batch_answers import DeferredToBatch
from harness.calls.client import Client
from harness.contracts.desk import Memo
from harness.pipeline.executors.lanes import Lanes
from harness.pipeline.executors.planned import Executor, PlannedRun
from harness.pipeline.item_queue import ItemQueue, Job
from harness.pipeline.plan import StageRun


class LocalExecutor(Executor):
    """Runs every stage of a plan in this process, with asyncio workers in a lane for each model.

    `on_put_off` gets the questions that are to go to files.
    """

    def __init__(
        self,
        planned: PlannedRun,
        *,
        client: Client,
        memo: Callable[[str, str], Memo],
        on_put_off: Callable[[StageRun, DeferredToBatch], None] | None = None,
    ) -> None:
        super().__init__(planned)
        self._client = client
        self._lanes = Lanes(client=client, memo=memo, overseer=self)
        self._on_put_off = on_put_off

    def usage(self) -> dict[str, dict[str, int]]:
        """The counts of the client's calls."""
        return self._client.usage.as_json()

    def limits(self) -> dict[str, Any]:
        """The history of the client's limiters."""
        return self._client.limits()

    def put_off(self, job: Job, question: DeferredToBatch) -> None:
        """Write a question to a file; a stage whose questions follow from answers is given up."""
        queue = job.queue
        assert isinstance(queue, ItemQueue)
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

    @property
    def _busy(self) -> bool:
        return self._lanes.busy

    def _serve(self, queue: ItemQueue, *, rounds: bool) -> None:
        self._lanes.add(queue, rounds=rounds)

    def _start_work(self) -> None:
        self._lanes.start()

    def _stop_calls(self, error: HarnessError) -> None:
        self._client.stop(error)

    def _drop(self) -> None:
        self._lanes.drop()

    async def _settled(self) -> None:
        await self._lanes.settled()

    async def _ended(self) -> None:
        await self._lanes.ended()


class NotBatchable(HarnessError):
    """A stage's questions follow from answers, so that they cannot be written in advance."""
