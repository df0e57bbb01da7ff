"""Runs a plan on a Ray cluster: this process has the plan, workers on the nodes ask the models.

Imported only by runs that ask for it, as it imports Ray.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ray.exceptions import RayError

from harness.base import clock
from harness.base.errors import HarnessError, ModelError
from harness.calls.leases import WorkerGivenUp
from harness.calls.limiter import limits_of_workers
from harness.calls.usage import UsageBook
from harness.pipeline.executors.cluster import LOOK_SECONDS, count_nodes, head_problem
from harness.pipeline.executors.earlier_answers import EarlierAnswers
from harness.pipeline.executors.lanes import lane_width
from harness.pipeline.executors.planned import Executor, PlannedRun
from harness.pipeline.executors.ray_keeper import GONE, reason_of
from harness.pipeline.executors.ray_workers import Workers
from harness.pipeline.executors.shards import (
    COUNTED,
    Counts,
    News,
    Shard,
    fair_share,
    packed,
    shard_size,
)
from harness.pipeline.executors.shared_workers import ENDING_SECONDS
from harness.pipeline.item_queue import ItemQueue, Job, JobText, Queue
from harness.pipeline.plan import StageRun, State
from harness.pipeline.progress import ClusterProgress
from harness.runs.journal import JournalWriter, recorded
from harness.runs.journal_parts import next_part, part_path

NEWS_SECONDS = 0.5
"""How often workers are asked for their news."""

SILENT_LOOKS, SILENT_SECONDS = 30, 300.0
"""How long a worker may give no news, as if its process hangs, and how often this is looked at
meanwhile; then it is killed."""

HEADLESS_SECONDS = 30.0
"""How long the head may not answer, as if it starts again; Ray ends this process after a minute."""

MOST_DEATHS = 3
"""Workers that may die one after the other in a place without a finished shard."""


@dataclass(eq=False, kw_only=True)
class _Worker:
    """A living worker: the parts that it writes, and the items that it has in hand of a stage."""

    name: str
    actor: Any
    parts: dict[StageRun, int] = field(default_factory=dict)
    items: Counter[StageRun] = field(default_factory=Counter)
    engines: int = 0
    finished: bool = False
    died: RayError | WorkerGivenUp | None = None
    more: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False, kw_only=True)
class _Served:
    """A stage whose items are handed out. `lost`: a worker died that may have had some of them.

    `first` is its first item, until there are workers. `busy` are workers that have begun all the
    items that they have in hand, once no others are left.
    """

    queue: ItemQueue
    rounds: bool
    earlier: EarlierAnswers
    first: tuple[JobText, ...] = ()
    busy: set[_Worker] = field(default_factory=set)
    lost: bool = False
    ending: bool = False
    taking: asyncio.Lock = field(default_factory=asyncio.Lock)


class RayExecutor(Executor):
    """Runs every stage of a plan with `count` workers on the cluster that Ray is connected to.

    `usage` has the counts of calls that were made before, and gets those of the workers. `seen`
    shows what is used of the cluster.
    """

    by_user = True

    def __init__(
        self,
        planned: PlannedRun,
        *,
        workers: Workers,
        count: int,
        announce: Callable[..., None],
        usage: UsageBook,
        seen: ClusterProgress,
    ) -> None:
        super().__init__(planned)
        self._opener = workers
        self._count = count
        self._announce = announce
        self._usage = usage
        self._seen = seen
        self._served: dict[StageRun, _Served] = {}
        self._next_parts: dict[StageRun, int] = {}
        self._workers: list[_Worker] = []
        self._seats: list[asyncio.Task[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._limits_of: dict[str, dict[str, Any]] = {}

    def usage(self) -> dict[str, dict[str, int]]:
        """The counts of all workers' calls, as they last reported them."""
        return self._usage.as_json()

    def limits(self) -> dict[str, Any]:
        """The history of each worker's limiters, as it last reported it."""
        return limits_of_workers(dict(self._limits_of))

    def worked(self, queue: Queue, job: Job | None) -> None:
        """End the queue's stage if all its items are done."""
        served = self._served[queue.run]
        run, whole = queue.run, served.queue.exhausted and not queue.run.progress.in_flight
        if whole and run.state is State.RUNNING and not served.ending and not self.over:
            served.ending = True
            self._begin(self._finish(served))

    @property
    def _busy(self) -> bool:
        return any(run.state is State.RUNNING for run in self._served)

    def _writer(self, run: StageRun) -> JournalWriter:
        number = next_part(run.journal)
        self._next_parts[run] = number + 1
        return JournalWriter(part_path(run.journal, number), new=True)

    def _serve(self, queue: ItemQueue, *, rounds: bool) -> None:
        served = self._served[queue.run] = _Served(
            queue=queue,
            rounds=rounds,
            earlier=EarlierAnswers(queue.run.journal, queue.run.context.key),
        )
        if not self._seats:
            self._begin(self._begin_stage(served))

    def _start_work(self) -> None:
        self._wake()

    async def _begin_stage(self, served: _Served) -> None:
        """Open workers if the stage has an item left, or else end it."""
        async with served.taking:
            served.first = await _take(served.queue, 1)
        if not served.first:
            self.worked(served.queue, None)
        elif not self._seats and not self.over:
            loop = asyncio.get_running_loop()
            self._seats = [loop.create_task(self._seat(n)) for n in range(1, self._count + 1)]
            self._seats.append(loop.create_task(self._watch_head()))
            for seat in self._seats:
                seat.add_done_callback(self._task_ended)
        self._wake()

    def _stop_calls(self, error: HarnessError) -> None:
        for worker in self._workers:
            worker.actor.stop.remote(error, False)

    def _drop(self) -> None:
        error = self._stopped_by or HarnessError("the run has ended")
        for worker in self._workers:
            worker.actor.stop.remote(error, True)
        for seat in self._seats:
            seat.cancel()

    async def _settled(self) -> None:
        while hands := [task for task in self._tasks if not task.done()]:
            await asyncio.wait(hands)

    async def _ended(self) -> None:
        await asyncio.gather(*self._seats, return_exceptions=True)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=ENDING_SECONDS)
        workers, self._workers = self._workers, []
        for error in await asyncio.gather(*map(self._close, workers), return_exceptions=True):
            self.worker_ended(error)

    def _wake(self) -> None:
        for worker in self._workers:
            worker.more.set()

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do this at the side; an error of it ends the run."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.worker_ended(error)

    async def _seat(self, number: int) -> None:
        """Have a worker at work, and another one in its place when it dies."""
        deaths = 0
        for incarnation in range(1, 1_000_000):
            name = f"{number}.{incarnation}"
            worker = None
            try:
                self._seen.opening += 1
                try:
                    actor = await self._opener.open(name)
                finally:
                    self._seen.opening -= 1
                worker = _Worker(name=name, actor=actor)
                self._workers.append(worker)
                self._seen.workers = len(self._workers)
                if self._stopped_by is not None:
                    worker.actor.stop.remote(self._stopped_by, False)
                await self._feed(worker)
            except (*GONE, WorkerGivenUp) as error:
                deaths = 1 if worker is not None and worker.finished else deaths + 1
                if worker is not None:
                    self._bury(worker)
                why = error.problem if isinstance(error, WorkerGivenUp) else reason_of(error)
                if deaths == MOST_DEATHS:
                    raise ModelError(
                        "the workers on the cluster die before they have worked any item",
                        where=f"worker {name}",
                        found=why,
                        expected=f"one finished shard; {deaths} workers in a row had none",
                        hint="look at the memory of the node and at Ray's log of the worker; the "
                        "same command continues the run",
                    ) from error
                line = f"worker {name} died ({why}); another one takes its place"
                self._announce(line, problem=True)

    async def _watch_head(self) -> None:
        """Count the nodes; raise an error if the head of the cluster does not answer for long."""
        answered = clock.seconds()
        while True:
            problem = await asyncio.to_thread(head_problem)
            if problem is None:
                answered = clock.seconds()
                with suppress(RayError):
                    self._seen.nodes = await asyncio.to_thread(count_nodes)
            elif clock.seconds() - answered > HEADLESS_SECONDS:
                raise problem
            await asyncio.sleep(LOOK_SECONDS)

    async def _feed(self, worker: _Worker) -> None:
        """Hand shards to a worker, as many as it has room for; raises why it died."""
        listening = asyncio.get_running_loop().create_task(self._listen(worker))
        listening.add_done_callback(self._task_ended)
        hands: list[asyncio.Task[None]] = []
        try:
            await self._opener.checked.wait()
            while worker.died is None:
                worker.more.clear()
                while (chosen := await self._next_shard(worker)) is not None:
                    hands.append(self._begin(self._hand(worker, *chosen)))
                hands = [task for task in hands if not task.done()]
                await worker.more.wait()
            if hands:  # these end as the worker did
                await asyncio.wait(hands)
            raise worker.died
        finally:
            listening.cancel()

    async def _listen(self, worker: _Worker) -> None:
        """Ask a worker for its news until it dies; a worker that gives none for long is killed."""
        while worker.died is None:
            await asyncio.sleep(NEWS_SECONDS)
            try:
                news = await news_of(worker.actor)
                if news is None:
                    silent = f"has not answered for {SILENT_SECONDS:.0f} s and is killed"
                    self._announce(f"worker {worker.name} {silent}", problem=True)
                    self._opener.kill(worker.name)
                else:
                    self._hear(worker, news)
            except GONE as error:
                worker.died = error
                worker.more.set()

    def _hear(self, worker: _Worker, news: News) -> None:
        self._usage.take(worker.name, news.usage)
        self._limits_of[worker.name] = news.limits
        worker.engines = news.engines
        self._seen.engines = sum(one.engines for one in self._workers)
        for line, problem in news.lines:
            self._announce(line, problem=problem)

    async def _next_shard(self, worker: _Worker) -> tuple[_Served, Shard] | None:
        """The next items for a worker, from the first stage that has some left, or else from a
        worker that is behind."""
        for served in list(self._served.values()) if worker.died is None else ():
            run, queue = served.queue.run, served.queue
            if self.over or run.state is not State.RUNNING or queue.exhausted:
                continue
            total, width = run.progress.total or 0, lane_width(run, rounds=served.rounds)
            size = shard_size(total, self._count, width=width, rounds=served.rounds)
            # The worker says that items are done when they make up a shard.
            if worker.items.total() >= width + size:
                return None
            outstanding = queue.left + run.progress.in_flight
            if worker.items[run] >= fair_share(outstanding, self._count):
                continue
            async with served.taking:
                items = served.first + await _take(queue, size - len(served.first))
                served.first = ()
            if items:
                return served, self._shard(worker, served, items)
            self.worked(queue, None)
        if worker.died is None and not worker.items.total():
            return await self._taken_over(worker)
        return None

    async def _taken_over(self, worker: _Worker) -> tuple[_Served, Shard] | None:
        """Items for an idle worker that another one has not begun, of a stage without others."""
        for served in list(self._served.values()):
            run, width = served.queue.run, lane_width(served.queue.run, rounds=served.rounds)
            for other in list(self._workers):
                if self.over or run.state is not State.RUNNING or not served.queue.exhausted:
                    break
                if other in served.busy or other.items[run] <= width:
                    continue
                if items := await self._handed_back(other, served):
                    return served, self._shard(worker, served, items)
        return None

    async def _handed_back(self, other: _Worker, served: _Served) -> tuple[JobText, ...]:
        """What a worker that is behind hands back; the items count as in flight from now on."""
        run = served.queue.run
        items: tuple[JobText, ...] = ()
        run.progress.in_flight += 1  # The stage must not end while items are on their way.
        try:
            items = await other.actor.hand_back.remote(run.task, run.context.stage.name)
        except GONE as died:
            served.lost, other.died = True, died
            other.more.set()
        finally:
            run.progress.in_flight += len(items) - 1
        if not items:
            served.busy.add(other)
            self.worked(served.queue, None)
        return items

    def _shard(self, worker: _Worker, served: _Served, items: tuple[JobText, ...]) -> Shard:
        """The shard of these items, which the worker has in hand from now on."""
        run = served.queue.run
        worker.items[run] += len(items)
        if run not in worker.parts:
            worker.parts[run] = self._next_parts[run]
            self._next_parts[run] += 1
        again = [one.replaces for one in items if one.replaces and not one.again]
        return Shard(
            task=run.task,
            stage=run.context.stage.name,
            part=worker.parts[run],
            rounds=served.rounds,
            begun=self._opener.order.session > 1 or self._seen.lost > 0,
            items=items,
            # The answers in earlier records of items that are worked again.
            replies={
                key: reply for each in again for key, reply in served.earlier.of(each).items()
            },
        )

    async def _hand(self, worker: _Worker, served: _Served, shard: Shard) -> None:
        """Have a worker work a shard; count what it worked until it has room for another one."""
        run, count = served.queue.run, len(shard.items)
        error: HarnessError | None = None
        try:
            if run.state is State.RUNNING:
                counts, error = await worker.actor.work.remote(*packed(shard))
                self._count_in(served.queue, counts)
                worker.finished = worker.finished or error is None
                if isinstance(error, WorkerGivenUp):
                    raise error
        except (*GONE, WorkerGivenUp) as died:
            served.lost, worker.died, error = True, died, None
        finally:
            worker.items[run] -= count
            run.progress.in_flight -= count
            worker.more.set()
        if error is not None:
            self.worker_ended(error)
        self.worked(served.queue, None)

    def _count_in(self, queue: ItemQueue, counts: Counts) -> None:
        progress = queue.run.progress
        for name in COUNTED:
            setattr(progress, name, getattr(progress, name) + getattr(counts, name))
        for tag, cause, detail in counts.failures:
            progress.failures[cause] += 1
            self._count_failure(queue, tag, cause, detail)

    def _give_up(self, queue: ItemQueue, why: HarnessError) -> None:
        super()._give_up(queue, why)
        for worker in self._workers:
            worker.actor.give_up.remote(queue.run.task, queue.run.context.stage.name)

    async def _finish(self, served: _Served) -> None:
        """End a stage once its records are on disk, or hand out again what a dead worker lost."""
        queue = served.queue
        run = queue.run
        writers = [worker for worker in self._workers if worker.parts.pop(run, None)]
        place = run.task, run.context.stage.name
        closed = (worker.actor.finish.remote(*place) for worker in writers)
        for error in await asyncio.gather(*closed, return_exceptions=True):
            if isinstance(error, GONE):
                served.lost = True  # its seat finds out too
            elif error is not None:
                raise error
        if served.lost or run.progress.done != run.progress.total:
            queue.writer.flush()
            queue.rewind(recorded(run.journal, run.context.key))
            served.lost = served.ending = False
            served.busy.clear()
            self._wake()
        else:
            super().worked(queue, None)

    def _bury(self, worker: _Worker) -> None:
        """Forget a worker that died: what it did not record is handed out again."""
        self._workers.remove(worker)
        for run in worker.parts:
            self._served[run].lost = True
        self._opener.lost(worker.name)
        self._seen.lost += 1
        self._seen.workers = len(self._workers)

    async def _close(self, worker: _Worker) -> HarnessError | None:
        """End a worker with its engines; its error, if it has one."""
        well = False
        try:
            async with asyncio.timeout(ENDING_SECONDS):
                news, error = await worker.actor.close.remote(self._opener.keeps)
            self._hear(worker, news)
            well = error is None
            failed: HarnessError | None = error
            return failed
        except (TimeoutError, *GONE):  # what it had recorded is on disk
            line = f"worker {worker.name} did not end by itself: it is killed with its engine"
            self._announce(line, problem=True)
            return None
        finally:
            self._opener.ended(worker.name, well=well)


async def news_of(actor: Any) -> News | None:
    """The news of a worker; None if it gives none for long.

    Time in which this process stood still does not count, as replies may wait in it.
    """
    asked = asyncio.ensure_future(actor.news.remote())
    try:
        for _ in range(SILENT_LOOKS):
            await asyncio.wait({asked}, timeout=SILENT_SECONDS / SILENT_LOOKS)
            if asked.done():
                news: News = asked.result()
                return news
        return None
    finally:
        asked.cancel()


async def _take(queue: ItemQueue, size: int) -> tuple[JobText, ...]:
    """The next items of a queue, which count as in flight from now on."""
    items: list[JobText] = []
    progress = queue.run.progress
    while len(items) < size:
        # Counted in advance: the stage must not end while its next item is being taken.
        progress.in_flight += 1
        text = None
        try:
            text = await queue.next_text()
        finally:
            progress.in_flight -= text is None
        if text is None:
            break
        items.append(text)
    return tuple(items)
