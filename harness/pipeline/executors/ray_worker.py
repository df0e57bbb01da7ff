"""A worker on a node of the cluster: it works shards as the local executor works a stage."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import traceback
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import HarnessError, ModelError, StorageError, UsageError
from harness.calls.batch_answers import DeferredToBatch
from harness.calls.budget import Meter
from harness.calls.client import Client
from harness.calls.engines import EngineGate, SharedEngines
from harness.calls.leases import Account, Recall, WorkerGivenUp
from harness.calls.network_fs import network_type
from harness.calls.own_answers import Answer
from harness.calls.owners import OwnerLost, Owners, Question
from harness.calls.store import Store, default_path
from harness.contracts.model import Model
from harness.contracts.outcomes import Failure, tag_of
from harness.contracts.stage import Item
from harness.pipeline.executors.lanes import Lanes, ends_gently
from harness.pipeline.executors.node_check import WorkOrder, check_node, decoded, share_concurrency
from harness.pipeline.executors.ray_keeper import (
    GONE,
    distant_memory,
    more_of,
    sent_answers,
    sent_file,
)
from harness.pipeline.executors.run_keys import RunKeys, take_keys
from harness.pipeline.executors.sent_files import SentFile
from harness.pipeline.executors.shards import COUNTED, Counts, News, Shard, ShardDone, unpacked
from harness.pipeline.garbage import collect_rarely
from harness.pipeline.item_queue import Job, JobText, Queue, job_of
from harness.pipeline.plan import StageRun, State
from harness.pipeline.preflight import models_of, players_of_stages, preflight
from harness.pipeline.progress import StageProgress
from harness.pipeline.stage_context import StageContext
from harness.runs.journal import JournalWriter
from harness.runs.journal_parts import part_path
from harness.runs.run_folder import ENGINES, LOCK, RunFolder


@dataclass(eq=False, kw_only=True)
class ShardQueue:
    """The items that a worker was handed of a stage, and the part of the journal that it writes."""

    run: StageRun
    writer: JournalWriter
    decode_item: Callable[[bytes], Item]
    decode_value: Callable[[bytes], Any]
    sent: SentFile | None = None
    counts: Counts = field(default_factory=Counts)
    left: int = 0
    _jobs: deque[JobText] = field(default_factory=deque)
    _taken: int = 0
    _done: int = 0
    _waiting: deque[tuple[int, asyncio.Event]] = field(default_factory=deque)

    def add(self, shard: Shard) -> asyncio.Event:
        """Take a shard's items on; the event comes when as many are done as came up to here.

        Which ones these are does not matter: one slow item would hold up a whole shard.
        """
        self._jobs.extend(shard.items)
        self.left = len(self._jobs)
        self._taken += len(shard.items)
        room = asyncio.Event()
        self._waiting.append((self._taken, room))
        return room

    async def next(self) -> Job | None:
        """The next item to work on; None until the next shard comes."""
        if not self._jobs:
            return None
        self.left -= 1
        return job_of(self, self._jobs.popleft(), self.decode_item)

    def worked(self) -> None:
        """An item is recorded."""
        self._done += 1
        self._make_room()

    def give_up(self) -> None:
        """Leave the items that no lane has taken."""
        self._leave(len(self._jobs))

    def hand_back(self) -> tuple[JobText, ...]:
        """The later half of the items that no lane has taken, which are not worked here."""
        return self._leave(-(-len(self._jobs) // 2))

    def _leave(self, many: int) -> tuple[JobText, ...]:
        items = [self._jobs.pop() for _ in range(many)]
        self.left = len(self._jobs)
        self._taken -= many
        self._waiting = deque((min(up_to, self._taken), room) for up_to, room in self._waiting)
        self._make_room()
        return tuple(reversed(items))

    def _make_room(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._done:
            self._waiting.popleft()[1].set()

    def abandon(self) -> None:
        """End the wait for items that will not be worked."""
        for _, room in self._waiting:
            room.set()

    async def written(self) -> None:
        """Wait until the records are written where the driver reads them; StorageError if not."""
        self.writer.flush()
        if self.sent is not None:
            await self.sent.acknowledged()

    async def close(self) -> None:
        """Wait until the records are durably on disk; StorageError if not."""
        self.writer.close()
        if self.sent is not None:
            await self.sent.acknowledged()

    def counted(self) -> Counts:
        """What was counted since this was asked last."""
        progress, counts = self.run.progress, self.counts
        self.counts = Counts()
        for name in COUNTED:
            setattr(counts, name, getattr(progress, name))
            setattr(progress, name, 0)
        return counts


class HarnessWorker:
    """A process on a node that works shards: it has its own event loop, client and engines.

    It becomes an actor in `ray.py`. Its methods return errors instead of raising them, since Ray
    would wrap those.
    """

    def __init__(self) -> None:
        self._node = f"{socket.gethostname()} ({os.getpid()})"
        self._shared = SharedEngines()
        self._beginning = asyncio.Lock()
        self._begun = False

    async def begin(
        self, name: str, order: bytes, keys: RunKeys, keeper: Any, purse: Any
    ) -> tuple[str, HarnessError | None]:
        """Prepare the run's tasks, and check what the models need; nothing is paid for yet.

        Returns the name of the node, and what keeps it from working on this run. A worker that has
        worked on another run begins with the engines that it kept.
        """
        async with self._beginning:
            if self._begun:  # for a run that ended meanwhile
                await self.close(keep=True)
            self._name = name
            self._forget()
            take_keys(keys)
            collect_rarely()
            try:
                await self._begin(decoded(order, self._node), keeper, purse)
            except HarnessError as error:
                return self._node, self._named(error)
            self._begun = True
            return self._node, None

    def _forget(self) -> None:
        """Know nothing of an earlier run."""
        self._contexts: dict[tuple[str, str], StageContext] = {}
        self._queues: dict[tuple[str, str], ShardQueue] = {}
        self._lines: list[tuple[str, bool]] = []
        self._stopped: HarnessError | None = None
        self._ending: asyncio.Task[None] | None = None
        self._store: Store | None = None
        self._others: dict[str, Any] = {}
        self._joined = asyncio.Event()

    async def _begin(self, order: WorkOrder, keeper: Any, purse: Any) -> None:
        if order.settings.run_storage == "shared":
            _check_folder(order, self._name, self._node)
        for task, contexts in check_node(order, self._node, engines=self._shared).items():
            self._contexts |= {(task, context.stage.name): context for context in contexts}
        settings = order.settings
        players = models_of(players_of_stages(self._contexts.values(), settings, {}))
        for model in players:
            model.require()
        now = [self._contexts[place] for place in order.now()]
        asked = models_of(players_of_stages(now, settings, {}))
        await self._shared.make_room(players, {*asked}.intersection(self._shared.open))
        engines = {one: played for one, played in asked.items() if one.occupies is not None}
        if engines and not self._shared.open:  # whose GPUs are in use, and were looked at
            await preflight(engines, settings, show=self._say)
        share_concurrency(players, order, seat=seat_of(self._name))
        if settings.store_file is not None:
            self._store = Store.open(
                _on_local_disk(settings.store_file, self._node),
                warn=functools.partial(self._say, problem=True),
            )
        self._models = list(players)
        self._sends = settings.run_storage == "local"
        self._folder = RunFolder(order.run_folder)
        self._keeper, self._purse = keeper, purse
        more = None if purse is None else functools.partial(more_of, purse, self._name)
        self._meter = Meter(settings.budget, settings.prices, more=more)
        self._engines = EngineGate(
            one_at_a_time=settings.one_engine_at_a_time,
            announce=self._say,
            logs=self._logs(order, shown=bool(engines)),
            models=players,
            shared=self._shared,
        )
        self._owners = Owners(
            self._name,
            workers=lambda: self._others,
            ask=self._ask_owner,
            known=self._known_of_owner,
        )
        self._own = sent_answers(keeper, order.session)
        self._client = Client(
            store=self._store,
            run_id=order.run_id,
            patience=settings.patience,
            meter=self._meter,
            engines=self._engines,
            fresh=order.run_id if settings.fresh else None,
            announce=self._say,
            own=self._own,
            owners=self._owners,
        )
        self._lanes = Lanes(client=self._client, memo=distant_memory(keeper), overseer=self)

    async def work(self, *packed: bytes) -> ShardDone:
        """Work the items of a shard; when this returns, as many have records that are written."""
        shard = unpacked(packed)
        try:
            queue = self._queue(shard)
        except HarnessError as error:
            return ShardDone(Counts(), error)
        if self._stopped is not None:
            return ShardDone(queue.counted(), self._stopped)
        if shard.begun:
            self._own.look()
        self._client.know(shard.replies)
        room = queue.add(shard)
        self._lanes.add(queue, rounds=shard.rounds)
        self._lanes.start()
        await room.wait()
        unwritten: HarnessError | None = None
        try:
            await queue.written()
        except StorageError as error:
            unwritten = self._named(error)
        return ShardDone(queue.counted(), self._stopped or unwritten)

    async def give_up(self, task: str, stage: str) -> None:
        """Begin no further item of a stage."""
        if (queue := self._queues.get((task, stage))) is not None:
            queue.give_up()

    async def hand_back(self, task: str, stage: str) -> tuple[JobText, ...]:
        """Half of the items of a stage that the worker has not begun, for another worker."""
        queue = self._queues.get((task, stage))
        return () if queue is None or self._stopped is not None else queue.hand_back()

    async def finish(self, task: str, stage: str) -> HarnessError | None:
        """Write the worker's part of a stage durably to disk."""
        queue = self._queues.pop((task, stage), None)
        try:
            if queue is not None:
                await queue.close()
        except HarnessError as error:
            return self._named(error)
        return None

    async def news(self) -> News:
        """What the worker's calls used so far, and its lines for the user since the last news."""
        lines, self._lines = self._lines, []
        return News(
            self._client.usage.as_json(), self._client.limits(), tuple(lines), self._engines.running
        )

    async def stop(self, error: HarnessError, at_once: bool) -> None:
        """Send no further question; calls in flight may finish, or are dropped at once."""
        self._stop(error, at_once=at_once)

    async def know(self, workers: Mapping[str, Any]) -> bool:
        """Ask these workers, by their names, the questions that they own from now on.

        Returns whether this worker has owned any so far.
        """
        if not self._others.keys() <= workers.keys():
            self._own.look()  # one is gone, and what it was answered is kept
        self._others = dict(workers)
        return self._owners.asked

    async def join(self, workers: Mapping[str, Any], owned: Collection[str]) -> None:
        """Come after these workers, which know of this one; some have owned questions so far."""
        self._owners.follow(list(workers), owned)
        self._others = dict(workers)
        self._joined.set()

    async def answer(
        self, model: int, question: Question
    ) -> tuple[Answer | None, HarnessError | None]:
        """The answer to a question that this worker owns; nothing if it asks no more questions."""
        await self._joined.wait()
        if self._stopped is not None:
            return None, None
        try:
            return await self._client.answer(self._models[model], question), None
        except WorkerGivenUp:
            return None, None
        except HarnessError as error:
            return None, error

    async def known(self, key: str) -> tuple[Answer | None, HarnessError | None]:
        """The answer to a question that this worker owned before another one came, if it has it."""
        try:
            return await self._client.known(key), None
        except WorkerGivenUp:
            return None, None
        except HarnessError as error:
            return None, error

    async def give_back(self, recall: Recall) -> Account:
        """Give back what is not used of the lease."""
        return await self._meter.give_back(recall)

    async def say(self, text: str) -> None:
        """Show a line to the user."""
        self._lines.append((text, False))

    async def close(self, keep: bool = False) -> tuple[News, HarnessError | None]:
        """Close journals, answers and engines, unless these are kept for another run; the last
        news, and the first error."""
        self._begun = False
        failed: HarnessError | None = None
        if keep and self._ending is not None:
            await self._ending
        for task, stage in list(self._queues):
            failed = failed or await self.finish(task, stage)
        for closes in (self._own.close, self._engines.close):
            try:
                await closes()
            except HarnessError as error:
                failed = failed or self._named(error)
        if not keep:
            failed = failed or await self.end()
        if self._store is not None:
            self._store.close()
        self._meter.close()
        if self._purse is not None:
            self._purse.end.remote(self._name, self._meter.account())
        return await self.news(), failed

    async def end(self) -> HarnessError | None:
        """Close the engines that were kept; the first error."""
        try:
            await self._shared.close()
        except HarnessError as error:
            return self._named(error)
        return None

    @property
    def over(self) -> bool:
        """Whether the worker was stopped."""
        return self._stopped is not None

    def worked(self, queue: Queue, job: Job | None) -> None:
        """An item is recorded."""
        if job is not None:
            assert isinstance(queue, ShardQueue)
            queue.worked()

    def failed(self, queue: Queue, failure: Failure) -> None:
        """Keep a failure for the driver, which compares all of them with the limits."""
        assert isinstance(queue, ShardQueue)
        queue.counts.failures.append((tag_of(failure), failure.cause, failure.detail))

    def put_off(self, job: Job, question: DeferredToBatch) -> None:
        """Never called: a run on a cluster puts no question off."""
        raise AssertionError(question)

    def worker_ended(self, error: BaseException | None) -> None:
        """A worker of a lane has ended; its error stops this worker, and so mostly the run."""
        if isinstance(error, HarnessError):
            of_node = isinstance(error, (ModelError, StorageError))
            self._stop(self._named(error) if of_node else error, at_once=not ends_gently(error))
        elif error is not None:
            trace = "".join(traceback.format_exception(error)[-4:])
            crash = HarnessError(
                "the harness itself failed on a node", where=f"node {self._node}", found=trace
            )
            self._stop(crash, at_once=True)

    async def _ask_owner(self, owner: str, model: Model, question: Question) -> Answer:
        number = self._models.index(model)
        answer = await self._heard(owner, lambda actor: actor.answer.remote(number, question))
        if answer is None:
            raise OwnerLost(owner)
        return answer

    async def _known_of_owner(self, owner: str, key: str) -> Answer | None:
        return await self._heard(owner, lambda actor: actor.known.remote(key))

    async def _heard(self, owner: str, ask: Callable[[Any], Any]) -> Answer | None:
        """What another worker answers; OwnerLost if it is gone."""
        answer: Answer | None
        try:
            answer, error = await ask(self._others[owner])
        except (*GONE, KeyError) as lost:
            self._own.look()
            raise OwnerLost(owner) from lost
        if error is not None:
            raise error
        return answer

    def _logs(self, order: WorkOrder, *, shown: bool) -> Path:
        """The folder for the logs of engines: in the run folder, or else in the user's cache."""
        if order.settings.run_storage == "shared":
            return self._folder.path / ENGINES / self._name
        logs = default_path().parent / ENGINES / order.run_id / self._name
        if shown:
            self._say(f"logs of engines are on this node, in {logs}")
        return logs

    def _queue(self, shard: Shard) -> ShardQueue:
        place = shard.task, shard.stage
        if place not in self._queues:
            context = self._contexts[place]
            journal = self._folder.journal(shard.task, context.number, shard.stage)
            path = part_path(journal, shard.part)
            run = StageRun(
                context=context,
                journal=path,
                items=lambda: iter(()),
                progress=StageProgress(task=shard.task, stage=shard.stage),
                state=State.RUNNING,
            )
            sent = sent_file(self._keeper, path) if self._sends else None
            self._queues[place] = ShardQueue(
                run=run,
                writer=JournalWriter(path, new=True, sink=sent),
                sent=sent,
                decode_item=msgspec.json.Decoder(context.stage.item).decode,
                decode_value=msgspec.json.Decoder(context.stage.value).decode,
            )
        return self._queues[place]

    def _stop(self, error: HarnessError, *, at_once: bool) -> None:
        self._stopped = self._stopped or error
        self._client.stop(error)
        if at_once:
            self._lanes.drop()
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._abandon())

    async def _abandon(self) -> None:
        await self._lanes.settled()
        await self._lanes.ended()
        for queue in self._queues.values():
            queue.abandon()

    def _named(self, error: HarnessError) -> HarnessError:
        """The error, which says from now on that it is about this node."""
        if self._node not in (error.where or ""):
            error.where = ", ".join(filter(None, (f"node {self._node}", error.where)))
        return error

    def _say(self, text: str, *, problem: bool = False) -> None:
        self._lines.append((f"worker {self._name} on {self._node}: {text}", problem))


def seat_of(worker: str) -> int:
    """The number of a worker's seat, which the one that takes its place has too.

    >>> seat_of("3.1")
    3
    """
    return int(worker.partition(".")[0])


def seen_file(folder: Path, worker: str) -> Path:
    """The file by which the driver sees that a worker writes into the run folder."""
    return folder / f"seen-by-{worker}"


def _check_folder(order: WorkOrder, worker: str, node: str) -> None:
    """Raise UsageError where the node does not see the driver's run folder; else leave a sign."""
    folder = order.run_folder
    try:
        if (folder / LOCK).read_text() != order.lock:
            raise not_shared(order.folder, node)
        seen_file(folder, worker).touch()
    except OSError as error:
        raise not_shared(order.folder, node, found=str(error)) from error


def not_shared(
    folder: str, node: str, found: str = "another folder of the same name"
) -> UsageError:
    """The error for a node that does not see the run folder."""
    return UsageError(
        "the run folder cannot be seen from a node of the cluster",
        where=f"node {node}, {folder}",
        found=found,
        expected="a folder that all nodes share",
        hint="name one with --output_path, or have records sent with --run_storage local",
    )


def _on_local_disk(store: Path, node: str) -> Path:
    """The file of the store, if it is on a disk of the node."""
    kind = network_type(store)
    if kind is not None:
        raise UsageError(
            "the store of calls of a node cannot be on a file system that machines share",
            where=f"node {node}, {store}",
            found=kind,
            expected="a file on a disk of the node",
            hint="set HARNESS_CACHE on the nodes to a folder on a local disk, give --store, or "
            "--no_store",
        )
    return store
