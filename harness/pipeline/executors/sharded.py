"""Has workers in other processes work the stages of a run: hands them shards, collects records."""

from __future__ import annotations

import asyncio
import functools
import operator
import sys
from collections import Counter, deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

import msgspec

from harness.base.errors import HarnessError, ModelError, StorageError, UsageError
from harness.calls.budget import UNITS, Budget, budget_spent, combined
from harness.calls.client import OwnAnswer
from harness.contracts.executor import Executor as Machines
from harness.contracts.executor import ExecutorSettings, Worker, WorkerDied
from harness.contracts.model import Model
from harness.pipeline.executors.lanes import LoopTurns, Overseer, lane_width
from harness.pipeline.executors.shard_worker import (
    COUNTED,
    DIED,
    Counts,
    News,
    ShardDone,
    ShardWorker,
    keys_of,
    share_concurrency,
    work_order,
)
from harness.pipeline.executors.shards import (
    MOST_DEATHS,
    Collector,
    LogLine,
    Shard,
    ShardFiles,
    item_of,
    memo_lines,
    shard_size,
    write_earlier,
)
from harness.pipeline.item_queue import JobText, StageQueue
from harness.pipeline.plan import StageRun, State
from harness.pipeline.progress import ClusterProgress
from harness.pipeline.session import Session
from harness.pipeline.settings import LOCAL, RunSettings
from harness.registry import Plugins, made

NEWS_SECONDS = 0.5
"""How often workers are asked for their news."""

ROOM_SECONDS = 30.0
"""How long workers that have begun wait for others, which may wait for room."""

ENDING_SECONDS = 60.0
"""How long a worker may take to close its engines."""

MOST_CALLS = 2
"""Calls with a shard during which workers may die again and again; in the second one, its items are
worked alone where they may be the reason."""

IN_HAND = 2
"""The shards of a worker: one fills its lanes as the other one drains."""


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

    UsageError for a number of workers or engines that no model of the run has a use for, and for
    models that are asked in batches.
    """
    for model in models:
        if model.patient:
            raise UsageError(
                "batches are asked by one process, not by workers elsewhere",
                where=model.identity.label,
                found=f"--executor {settings.executor}",
                expected="--executor local",
            )
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


@dataclass(eq=False, kw_only=True)
class _Seat:
    """A worker: the shards that it has in hand, and whether one is to be worked alone. A worker is
    `late` that others did not wait for. `given_up` has the shards that each of its lives was told
    to give up."""

    worker: Worker
    begun: bool = False
    in_hand: int = 0
    alone: bool = False
    late: bool = False
    engines: int = 0
    life: str = ""
    node: str = ""
    given_up: set[tuple[str, str, str, int]] = field(default_factory=set)


@dataclass(eq=False, kw_only=True)
class _Stage:
    """A stage whose items are handed out, and what was heard of its shards."""

    queue: StageQueue
    files: ShardFiles
    size: int
    rounds: bool
    cut: int = 0
    deaths: Counter[int] = field(default_factory=Counter)
    heard: dict[int, Counts] = field(default_factory=dict)


class RunOverseer(Overseer, Protocol):
    """What runs the plan, and hears of the end of the run."""

    stopped_by: HarnessError | None
    yield_to_loop: LoopTurns

    def stop(self, error: HarnessError, *, at_once: bool = False) -> None:
        """End the run with this error."""


class RemoteWorkers:
    """Workers in other processes, which work the stages of a session in shards.

    The session's client has the counts of calls that were made before, and gets those of the
    workers.
    """

    by_user = True

    def __init__(self, overseer: RunOverseer, session: Session, collector: Collector) -> None:
        assert session.machines is not None
        self._overseer = overseer
        self._session = session
        self._machines = session.machines
        self._announce = session.display.show_line
        self._machines.show = functools.partial(self._announce, problem=True)
        self._collector = collector
        self._seen = session.progress.cluster = ClusterProgress()
        client = session.client
        self._usage = client.usage
        used = Budget(calls=client.meter.calls, tokens=client.meter.tokens, cost=client.meter.spent)
        self._bound = session.settings.budget
        self._left = combined(operator.sub, self._bound, used)
        self._held = combined(operator.sub, self._left, self._left)
        self._killers = 0
        self._stages: dict[tuple[str, str], _Stage] = {}
        self._returned: deque[Shard] = deque()
        self._seats: list[_Seat] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._hands: set[asyncio.Task[None]] = set()
        self._dropped = asyncio.Event()
        self._room = asyncio.Event()
        self._limits: dict[str, Any] = {}
        share_concurrency(session.asked, session.workers, seat=0)

    def usage(self) -> dict[str, dict[str, int]]:
        """The counts of all workers' calls, as they last reported them."""
        return self._usage.as_json()

    def limits(self) -> dict[str, Any]:
        """The history of each worker's limiters, as it last reported it."""
        return dict(self._limits)

    @property
    def busy(self) -> bool:
        """Whether items are being worked."""
        return any(one.queue.run.state is State.RUNNING for one in self._stages.values())

    def add(self, queue: StageQueue, *, rounds: bool) -> None:
        """Take a queue on, whose items are handed out once `start` is called."""
        run = queue.run
        files = ShardFiles(run.journal)
        if self._session.number > 1:
            write_earlier(files, run.context.label, self._collector.own, queue.recorded)
        width = lane_width(run, rounds=rounds)
        size = shard_size(len(queue.item_file), self._session.workers, width=width, rounds=rounds)
        self._stages[run.task, run.context.stage.name] = _Stage(
            queue=queue, files=files, size=size, rounds=rounds
        )

    def start(self) -> None:
        """Begin to hand out shards of all queues."""
        self._room.set()
        if not self._opening:
            self._opening.add(self._begin(self._hand_out()))

    def stop_calls(self, error: HarnessError) -> None:
        """Have no worker send a further question."""
        self._tell("stop", error, False)

    def stage_ended(self, run: StageRun) -> None:
        """Remove the files of a stage that is done; have workers give up another one."""
        name = run.context.stage.name
        if run.state is State.DONE:
            self._stages[run.task, name].files.forget_all()
        else:
            self._tell("give_up", run.task, name)

    def drop(self) -> None:
        """End all work at once."""
        if not self._dropped.is_set():
            self._dropped.set()
            why = self._overseer.stopped_by or HarnessError("the run has ended")
            self._tell("stop", why, True)
        for task in self._opening:
            task.cancel()

    async def settled(self) -> None:
        """Wait until workers have no shard in hand, or their work was dropped."""
        dropped = asyncio.ensure_future(self._dropped.wait())
        while self._hands and not dropped.done():
            await asyncio.wait({*self._hands, dropped}, return_when=asyncio.FIRST_COMPLETED)
        dropped.cancel()

    async def ended(self) -> None:
        """Have workers close their engines, and end them."""
        try:
            async with asyncio.timeout(ENDING_SECONDS):
                while self._hands:
                    await asyncio.wait(self._hands)
                self._cancel()
                await asyncio.gather(*(self._close(one) for one in self._seats if one.begun))
            if self._overseer.stopped_by is None and (
                never := sum(not one.begun for one in self._seats)
            ):
                many = f"{never} of {len(self._seats)} workers"
                self._announce(f"{many} never began: the others did their work", problem=True)
        except TimeoutError:
            self._announce("workers did not end by themselves, and are killed", problem=True)
        finally:
            self._cancel()
            await self._machines.close()

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do this at the side; an error of it ends the run."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._hands.discard(task)
            self._room.set()
            if not task.cancelled() and (error := task.exception()) is not None:
                self._overseer.worker_ended(error)

        task.add_done_callback(ended)
        return task

    def _tell(self, method: str, *given: Any) -> None:
        for seat in [one for one in self._seats if one.begun]:
            self._begin(_tell_worker(seat.worker, method, *given))

    async def _hand_out(self) -> None:
        while not self._overseer.over:
            self._room.clear()
            shard = self._returned.popleft() if self._returned else await self._next_shard()
            if shard is None:
                await self._room.wait()
                continue
            if not self._seats:
                await self._open()
            if self._overseer.over:
                return
            while (seat := self._roomiest(shard)) is None or not self._affordable(shard):
                self._room.clear()
                await self._room.wait()
                if self._overseer.over:
                    return
            run = self._stages[shard.task, shard.stage].queue.run
            if run.state is not State.RUNNING:
                run.progress.in_flight -= shard.items
                continue
            seat.alone = shard.exclusive
            shard = msgspec.structs.replace(shard, share=self._share(shard))
            seat.in_hand += 1
            self._hands.add(self._begin(self._hand(seat, shard)))

    async def _next_shard(self) -> Shard | None:
        """The next items of the first stage that has some left, in a file; None if none has."""
        for stage in list(self._stages.values()):
            run, queue = stage.queue.run, stage.queue
            if run.state is not State.RUNNING or queue.exhausted:
                continue
            texts: list[JobText] = []
            run.progress.in_flight += 1  # the stage must not end while its items are taken
            while len(texts) < stage.size and (text := await queue.next_text()) is not None:
                texts.append(text)
            run.progress.in_flight += len(texts) - 1
            if texts:
                return self._cut(stage, texts)
            queue.worked()
        return None

    def _cut(self, stage: _Stage, texts: list[JobText], answers: Sequence[OwnAnswer] = ()) -> Shard:
        """A new shard of these items, whose files are written."""
        context = stage.queue.run.context
        stage.cut += 1
        memos = memo_lines(self._collector.memory, f"{context.memo_key}:")
        start = chain(memos, (LogLine(answer=one) for one in answers))
        stage.files.write(stage.cut, texts, start)
        return Shard(
            task=context.task.name,
            stage=context.stage.name,
            number=stage.cut,
            items=len(texts),
            rounds=stage.rounds,
        )

    def _roomiest(self, shard: Shard) -> _Seat | None:
        most = 1 if shard.exclusive else IN_HAND
        free = [one for one in self._seats if one.begun and not one.alone and one.in_hand < most]
        return min(free, key=lambda one: one.in_hand, default=None)

    async def _open(self) -> None:
        """Open the workers; nothing is paid for until those that have room were found able to work
        on the run."""
        session = self._session
        order, keys = work_order(session), keys_of(session.asked)
        workers = await self._machines.open(
            ShardWorker, [(order, keys, seat) for seat in range(session.workers)]
        )
        self._seats = [_Seat(worker=one) for one in workers]
        self._seen.opening = len(workers)
        begins = [self._begin(self._ready(seat)) for seat in self._seats]
        self._opening.update(begins)
        first = asyncio.FIRST_EXCEPTION
        _, late = await asyncio.wait(begins, timeout=ROOM_SECONDS, return_when=first)
        for seat in self._seats:
            seat.late = not seat.begun
        if late and not self._overseer.over:
            many = f"{len(late)} of {len(workers)} workers"
            line = f"{many} have not begun: they start slowly, or wait for room"
            self._announce(line, problem=True)
            if len(late) == len(workers):
                await asyncio.wait(begins, return_when=asyncio.FIRST_COMPLETED)
        if not self._overseer.over:
            begun = [seat.node for seat in self._seats if seat.begun]
            self._announce(f"{len(begun)} of {len(workers)} workers have begun: {', '.join(begun)}")

    async def _ready(self, seat: _Seat) -> None:
        seat.node, error = await seat.worker.call("ready")
        if error is not None:
            raise error
        seat.begun = True
        if seat.late:
            self._announce(f"worker {self._seats.index(seat) + 1} has begun: {seat.node}")
        self._seen.opening -= 1
        self._seen.workers += 1
        self._begin(self._listen(seat))

    async def _listen(self, seat: _Seat) -> None:
        while True:
            await asyncio.sleep(NEWS_SECONDS)
            try:
                self._hear(seat, await seat.worker.call("news"))
                # A process that was started again does not know.
                if (error := self._overseer.stopped_by) is not None:
                    await seat.worker.call("stop", error, self._dropped.is_set())
            except WorkerDied:
                continue  # whoever waits for a shard hears of it too

    def _hear(self, seat: _Seat, news: News) -> None:
        self._usage.take(news.life, news.usage)
        place = self._seats.index(seat) + 1
        if seat.life not in ("", news.life):
            self._seen.lost += 1
            line = f"worker {place} died on {seat.node}, and was started again on {news.node}"
            self._announce(line, problem=True)
        seat.life, seat.node = news.life, news.node
        self._limits |= {f"{model} on worker {place}": one for model, one in news.limits.items()}
        seat.engines = news.engines
        self._seen.engines = sum(one.engines for one in self._seats)
        for (task, name, number), counts in news.counts.items():
            stage = self._stages[task, name]
            self._count(stage, number, counts)
            # A shard may have begun after all were told, or in a process that was started again.
            given_up = (news.life, task, name, number)
            if stage.queue.run.state is not State.RUNNING and given_up not in seat.given_up:
                seat.given_up.add(given_up)
                self._begin(_tell_worker(seat.worker, "give_up", task, name))
        for line, problem in news.lines:
            self._announce(line, problem=problem)

    def _count(self, stage: _Stage, number: int, counts: Counts) -> None:
        """Count what is new since a shard was heard of last.

        Its done and failed items include those of earlier attempts, its calls do not.
        """
        before, progress = stage.heard.get(number, Counts()), stage.queue.run.progress
        if counts.attempt < before.attempt:
            return  # of a process that is cut off
        same = counts.attempt == before.attempt
        for name in COUNTED:
            old = before.progress.get(name, 0) if same or name == "done" else 0
            setattr(progress, name, getattr(progress, name) + counts.progress[name] - old)
        stage.heard[number] = counts
        for (tag, cause), count in counts.failures.items():
            new = count - before.failures.get((tag, cause), 0)
            progress.failures[cause] += new
            if cause == DIED.cause:
                self._killers += new
            for _ in range(new):
                stage.queue.count_failure(tag, cause, counts.details.get(cause, ""))
        if self._killers > 1 and not self._overseer.over:
            self._overseer.stop(ModelError(
                "several items each end the worker that works them",
                where=stage.queue.run.context.label,
                found=f"{self._killers} items",
                expected="workers that survive their items",
                hint="look at the memory of the machines, and at the executor's log of a worker; "
                "the same command continues the run",
            ))  # fmt: skip

    async def _hand(self, seat: _Seat, shard: Shard) -> None:
        stage = self._stages[shard.task, shard.stage]
        try:
            done: ShardDone = await seat.worker.call("work", shard)
        except WorkerDied as died:
            stage.deaths[shard.number] += 1
            if stage.deaths[shard.number] > MOST_CALLS:
                raise
            line = f"{died.problem} ({died.found}): those at work are worked one by one"
            self._announce(line, problem=True)
            self._held = combined(operator.add, self._held, shard.share)
            attempts = stage.files.attempts(shard.number, shard.first)
            self._returned.append(msgspec.structs.replace(shard, alone=True, first=attempts + 1))
            return
        finally:
            seat.in_hand -= 1
            seat.alone = False
            self._room.set()
        await self._take_back(stage, shard, done)

    async def _take_back(self, stage: _Stage, shard: Shard, done: ShardDone) -> None:
        """Collect a shard; items that a spent share left are handed out again."""
        queue = stage.queue
        self._left = combined(operator.add, self._left, done.returned)
        if done.counts is not None:
            self._count(stage, shard.number, done.counts)
            stage.heard[shard.number] = Counts(attempt=sys.maxsize)  # later news are old
        elif done.spent:  # its worker died, with its share
            self._held = combined(operator.add, self._held, shard.share)
            stage.deaths[shard.number] += 1
            self._returned.append(msgspec.structs.replace(
                shard, first=done.attempts + 1,
                alone=shard.alone or stage.deaths[shard.number] >= MOST_DEATHS,
            ))  # fmt: skip
            return
        texts = [*stage.files.items(shard.number)] if done.spent else []
        answers = [*stage.files.answers(shard.number, done.attempts)] if done.spent else []
        recorded = await self._collector.collect(
            stage.files, shard.number, done.attempts, queue.writer, self._overseer.yield_to_loop
        )
        queue.run.progress.in_flight -= shard.items
        lacking = shard.items - len(recorded)
        if done.error is not None:
            self._overseer.worker_ended(done.error)
        elif done.spent and queue.run.state is State.RUNNING:
            left = [text for text in texts if text.key not in recorded]
            queue.run.progress.in_flight += len(left)
            if left:
                answers = [one for one in answers if item_of(one.asker) not in recorded]
                again = self._cut(stage, left, answers)
                # With a little more, as sums of shares are rounded.
                needed = Budget(cost=done.short.cost and done.short.cost * 1.000001)
                self._returned.append(
                    msgspec.structs.replace(again, alone=shard.alone, share=needed)
                )
        elif lacking and queue.run.state is State.RUNNING:
            raise StorageError(
                "records of a worker are missing",
                where=str(stage.files.folder),
                found=f"{len(recorded)} records of {shard.items} items",
                expected="a folder that shows on one machine what another one has written there",
                hint="repeat the same command: it continues where it stopped",
            )
        queue.worked()

    def _share(self, shard: Shard) -> Budget:
        """What a shard may use: of what is left, the part that its items are of those left, and no
        more than what is left divided by the shards that may be in hand yet."""
        free = sum(IN_HAND - one.in_hand for one in self._seats)
        waiting = self._stages[shard.task, shard.stage].queue.left
        part = min(1 / free, shard.items / (shard.items + waiting))
        left = self._left
        share = Budget(
            calls=None if left.calls is None else max(int(left.calls * part), 1),
            tokens=None if left.tokens is None else max(int(left.tokens * part), 1),
            cost=None
            if left.cost is None
            else min(left.cost, max(left.cost * part, shard.share.cost or 0.0)),
        )
        self._left = combined(operator.sub, left, share)
        return share

    def _affordable(self, shard: Shard) -> bool:
        """Whether what is left pays for a call; False while shards in hand may return some.

        BudgetSpent if nothing will come back.
        """
        needed = Budget(calls=1, tokens=1, cost=shard.share.cost)
        rest = combined(operator.sub, self._left, needed)
        lacking = next((unit for unit in UNITS if (getattr(rest, unit) or 0) < 0), None)
        if lacking is None:
            return True
        if not any(one.in_hand for one in self._seats):
            bound, left = getattr(self._bound, lacking), getattr(self._left, lacking)
            found = f"{bound - left:.4g} of {bound:.4g} {lacking}"
            if held := getattr(self._held, lacking):
                found += f", {held:.4g} of which workers held that died: they count as spent"
            if lacking == "cost":
                found += f", and the next call may cost {needed.cost:.4g}"
            raise budget_spent(lacking, found, f"at most {bound:.4g}")
        return False

    async def _close(self, seat: _Seat) -> None:
        try:
            news, error = await seat.worker.call("close")
        except ModelError:
            return  # it died, and its engine with it
        self._hear(seat, news)
        if error is not None:
            self._overseer.worker_ended(error)


async def _tell_worker(worker: Worker, method: str, *given: Any) -> None:
    try:
        await worker.call(method, *given)
    except HarnessError:
        return  # it died, and so does what it was told of
