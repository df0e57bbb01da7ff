"""Runs a plan in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.base.errors import HarnessError
from harness.calls.client import Client
from harness.contracts.desk import Memo
from harness.pipeline.executors.lanes import Lanes
from harness.pipeline.executors.planned import Executor, PlannedRun
from harness.pipeline.item_queue import ItemQueue


class LocalExecutor(Executor):
    """Runs every stage of a plan in this process, with asyncio workers in a lane for each model."""

    def __init__(
        self, planned: PlannedRun, *, client: Client, memo: Callable[[str, str], Memo]
    ) -> None:
        super().__init__(planned)
        self._client = client
        self._lanes = Lanes(client=client, memo=memo, overseer=self)

    def usage(self) -> dict[str, dict[str, int]]:
        """The counts of the client's calls."""
        return self._client.usage.as_json()

    def limits(self) -> dict[str, Any]:
        """The history of the client's limiters."""
        return self._client.limits()

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
