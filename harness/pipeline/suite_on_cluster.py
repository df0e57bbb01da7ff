"""Carries out the runs of a suite on a Ray cluster, side by side where they have room."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

from harness.base.errors import Interrupted
from harness.pipeline.executors.cluster import connect, disconnect
from harness.pipeline.executors.shared_workers import SharedWorkers, SuiteRoom
from harness.pipeline.run import on_interrupt
from harness.pipeline.suite_runs import PlannedSuiteRun, SuiteRunner, judges_come_later


class ClusterSuiteRunner(SuiteRunner):
    """Runs what is left of a suite on a cluster.

    Models run side by side, each with its seeds one after another. A model begins once those
    before it in the file have room. Judges with engines come after all of them.
    """

    async def run(self, planned: Sequence[PlannedSuiteRun]) -> None:
        """Carry out these runs; raises Interrupted when the user stops them."""
        if not planned:
            return
        room = SuiteRoom()
        stopped = Interrupted("interrupted", hint="the same command continues the suite")
        with ExitStack() as stack:
            connect(planned[0].settings.ray_address)
            stack.callback(disconnect)
            stack.enter_context(on_interrupt(lambda: room.stop(stopped)))
            later = await self._side_by_side(planned, room)
            judges = SharedWorkers(suite=room)
            try:
                await self._judge(later, judges)
            finally:
                await self._close(judges)

    async def _side_by_side(
        self, planned: Sequence[PlannedSuiteRun], room: SuiteRoom
    ) -> list[PlannedSuiteRun]:
        """Carry out these runs; what is left of those whose judges were left for later, the ones
        with the largest engines first."""
        models: dict[str, list[PlannedSuiteRun]] = {}
        for each in planned:
            models.setdefault(each.name, []).append(each)
        later = judges_come_later(planned)
        under_way: dict[asyncio.Task[list[PlannedSuiteRun]], SharedWorkers] = {}
        for runs in models.values():
            workers = SharedWorkers(suite=room, among=len(models), judge_later=later)
            task = asyncio.create_task(self._in_turn(runs, workers))
            under_way[task] = workers
            granted = asyncio.create_task(workers.granted.wait())
            await asyncio.wait({task, granted}, return_when=asyncio.FIRST_COMPLETED)
            granted.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        room.check()
        largest = sorted(under_way, key=lambda task: -under_way[task].gpus)
        return [left for task in largest for left in task.result()]

    async def _in_turn(
        self, runs: Sequence[PlannedSuiteRun], workers: SharedWorkers
    ) -> list[PlannedSuiteRun]:
        """Carry out the runs of one model; what is left of them."""
        left: list[PlannedSuiteRun] = []
        try:
            for each in runs:
                workers.suite.check()
                left += await self._one(each, workers)
        finally:
            await self._close(workers)
        return left

    def _ended(self, planned: PlannedSuiteRun, status: str) -> None:
        self._say(f"{planned.label}: {status}")
