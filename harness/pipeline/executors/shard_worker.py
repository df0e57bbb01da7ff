"""Works shards in a process of its own, as the local executor works whole stages."""

from __future__ import annotations

import asyncio
import functools
import os
import platform
import secrets
import socket
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import BudgetSpent, HarnessError, ModelError, StorageError, UsageError
from harness.base.key_files import hand_over, key_text
from harness.base.threads import in_thread
from harness.calls.budget import Budget, Meter
from harness.calls.client import Answer, Client, OwnAnswer, OwnAnswers
from harness.calls.engines import EngineGate, SharedEngines
from harness.calls.store import Store, network_type
from harness.contracts.model import Model
from harness.contracts.outcomes import Broken, Failure, tag_of
from harness.pipeline.desk import StageContext
from harness.pipeline.executors.lanes import Lanes, collect_rarely, ends_gently, record_outcome
from harness.pipeline.executors.shards import MOST_DEATHS, LogLine, Shard, ShardFiles, log_lines
from harness.pipeline.item_queue import Job, JobText, Queue
from harness.pipeline.memos import CopiedMemory, Entry
from harness.pipeline.plan import StageRun, State
from harness.pipeline.preflight import models_of, players_of_stages, preflight
from harness.pipeline.preparation import prepare_without_data
from harness.pipeline.progress import StageProgress
from harness.pipeline.session import Session
from harness.pipeline.settings import OF_EXECUTOR, RunSettings
from harness.registry import Plugins, load_plugins
from harness.registry.hookspecs import HARNESS
from harness.runs.journal import JournalWriter, LackingRecord, recorded
from harness.runs.run_folder import ENGINES, LOCK, RunFolder

DECIDING = (HARNESS, "json-repair", "jinja2")
"""The packages whose versions decide how prompts are rendered and replies are read."""


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a work order that every version of the harness can read."""

    versions: dict[str, str]


class WorkOrder(Versions, frozen=True, kw_only=True):
    """Everything that a worker needs to know of a run, except data, items and keys.

    `folder` is the run folder, `cwd` the folder of the command, and `lock` what the command wrote
    into the run folder's lock. `session` counts the commands of the run. `workers` share its
    `--concurrency`. `stages` has the components of each stage's key, by task and stage, `thinking`
    the models that think, by task, role and number in it.
    """

    settings: RunSettings
    cwd: str
    run_id: str
    folder: str
    lock: str
    session: int
    workers: int
    stages: dict[str, dict[str, dict[str, Any]]]
    thinking: set[tuple[str, str, int]]

    def __repr__(self) -> str:
        # Without the settings: an address in them may hold a password.
        return f"WorkOrder(run_id={self.run_id!r}, tasks={list(self.stages)!r})"


def work_order(session: Session) -> bytes:
    """The order for `read_order`: in its process, a worker asks as a local run does."""
    contexts = session.contexts
    folder = session.taken.folder.path
    order = WorkOrder(
        settings=msgspec.structs.replace(
            session.settings, executor="local", **dict.fromkeys(OF_EXECUTOR, None)
        ),
        cwd=str(Path.cwd()),
        run_id=session.taken.run_id,
        folder=str(folder.absolute()),
        lock=(folder / LOCK).read_text(),
        session=session.number,
        workers=session.workers,
        stages={
            task: {one.stage.name: _plain(one.components) for one in each}
            for task, each in contexts.items()
        },
        thinking={
            (task, role, number)
            for task, each in contexts.items()
            for one in each
            for role, binding in one.bindings.items()
            for number, model in enumerate(binding.models)
            if model in one.thinking
        },
        versions=_versions(session.plugins),
    )
    return msgspec.msgpack.encode(order, enc_hook=str)


def read_order(data: bytes) -> tuple[WorkOrder, dict[tuple[str, str], StageContext], SharedEngines]:
    """The order, and the contexts of its stages as this process has them, with their engines.

    UsageError where it has other versions, plugins or prompts than the command, or does not see the
    run folder. The process works in the command's folder from now on, if there is one here.
    """
    plugins = load_plugins()
    broken = {f"plugin {one.plugin}": one.error for one in plugins.broken}
    wanted = msgspec.msgpack.decode(data, type=Versions).versions
    _check_versions(wanted, broken | _versions(plugins))
    order = msgspec.msgpack.decode(data, type=WorkOrder, dec_hook=lambda kind, value: kind(value))
    _check_folder(Path(order.folder), order.lock)
    if here := Path(order.cwd).is_dir():
        os.chdir(order.cwd)
    engines = SharedEngines()
    try:
        bound = prepare_without_data(order.settings, plugins, order.stages, engines=engines)
        bindings = {each.task.name: each.bindings for each in bound}
        thinking = [bindings[task][role].models[number] for task, role, number in order.thinking]
        contexts = {
            (each.task.name, context.stage.name): context
            for each in bound
            for context in each.contexts(order.run_id, thinking)
        }
    except HarnessError as error:
        if not here:
            lacking = f"there is no {order.cwd} here, so relative paths begin in {Path.cwd()}"
            error.hint = f"{error.hint}; {lacking}" if error.hint else lacking
        raise
    for (task, stage), context in contexts.items():
        _check_stage(context, order.stages[task][stage])
    return order, contexts, engines


def share_concurrency(models: Iterable[Model], workers: int, *, seat: int) -> None:
    """Give the worker on this seat, from 0, its share of the requests that a server may get at the
    same time, where a number was given; the first workers have the largest."""
    for model in models:
        if model.limited and model.occupies is None:
            share, rest = divmod(model.concurrency, workers)
            model.concurrency = share + (seat < rest)


class RunKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What the keys and addresses of a run's models come from; no text shows the values.

    `variables` has the value of each environment variable, None for one that is not set, and
    `files` the texts of key files.
    """

    variables: dict[str, str | None] = {}
    files: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"RunKeys(variables={list(self.variables)!r}, files={list(self.files)!r})"

    def take(self) -> None:
        """Set the variables in this process, and keep the files' texts.

        What was not set where the run was started is not set here either, so that no request goes
        to an address, and with a key, that only this machine names.
        """
        for name, value in self.variables.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        hand_over(self.files)


def keys_of(models: Iterable[Model]) -> RunKeys:
    """The variables and files that the models read, with their values in this process.

    A file that cannot be read is left out: the node may have it, and says so if it does not.
    """
    variables: dict[str, str | None] = {}
    files: dict[str, str] = {}
    for model in models:
        variables |= {name: os.environ.get(name) for name in model.variables}
        for named in model.key_files:
            with suppress(OSError, UnicodeDecodeError, RuntimeError):
                files[named] = key_text(named)
    return RunKeys(variables=variables, files=files)


def _versions(plugins: Plugins) -> dict[str, str]:
    """The versions of Python, of deciding packages, and of each plugin by its entry point."""
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in DECIDING},
        **{f"plugin {one.plugin}": f"{one.distribution} {one.version}" for one in plugins.loaded},
    }


def _check_versions(wanted: Mapping[str, str], here: Mapping[str, str]) -> None:
    for name, expected in wanted.items():
        if here.get(name) != expected:
            raise UsageError(
                f"{name} is not what it was where the run was prepared",
                where=name,
                found=here.get(name, "nothing"),
                expected=expected,
                hint="install the same versions on all machines",
            )


def _check_folder(folder: Path, lock: str) -> None:
    found = "another folder of the same name"
    try:
        if (folder / LOCK).read_text() == lock:
            return
    except OSError as error:
        found = str(error)
    raise UsageError(
        "the run folder cannot be seen from a worker",
        where=str(folder),
        found=found,
        expected="a folder that all machines share",
        hint="name one with --output_path",
    )


def _check_stage(context: StageContext, wanted: Mapping[str, Any]) -> None:
    differ = list(_differences(_plain(context.components), wanted))
    if differ:
        raise UsageError(
            "a stage has another key here than where the run was prepared",
            where=context.label,
            found="; ".join(f"{name}: {here}" for name, here, _ in differ),
            expected="; ".join(f"{name}: {there}" for name, _, there in differ),
            hint="give this machine the same models, prompts, variables and versions",
        )


def _plain(components: Mapping[str, Any]) -> dict[str, Any]:
    """The components as JSON values, as they are after a way over bytes."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(components))
    return plain


def _differences(here: Any, there: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """What differs in two components, with both values: `roles.candidate.model.name`."""
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        for key in dict.fromkeys([*there, *here]):
            yield from _differences(here.get(key), there.get(key), f"{name}.{key}".strip("."))
    elif here != there:
        yield name, here, there


TAKEN = 16
"""The items that are noted as begun by one write to the disk."""

DIED = Broken(
    "worker_died",
    "its worker died three times as it worked this item or others, and once more as it worked this "
    "one alone",
)
"""The outcome of an item during which, alone, a worker died."""

COUNTED = (
    "done", "calls", "calls_from_store", "prompt_tokens", "completion_tokens", "unreported",
)  # fmt: skip
"""The counters of a stage's progress that workers count."""


class Counts(msgspec.Struct, kw_only=True):
    """What attempt number `attempt` at a shard counted so far, with the records of those before.

    `progress` has what is `COUNTED`; failures are counted by tag and cause, each with one detail.
    """

    attempt: int = 0
    progress: dict[str, int] = {}
    failures: dict[tuple[str, str], int] = {}
    details: dict[str, str] = {}


class News(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker reports from time to time: its counts by shard, what its calls used, its
    limiters' history, its lines for the user, each with whether it is a problem, and the number of
    its open engines. `life` is another one in each process, `node` its name."""

    life: str
    node: str
    counts: dict[tuple[str, str, int], Counts]
    usage: dict[str, Any]
    limits: dict[str, Any]
    lines: tuple[tuple[str, bool], ...]
    engines: int


class ShardDone(msgspec.Struct, frozen=True, kw_only=True):
    """A shard came to an end; all that was recorded is on disk.

    If the `error` ended it, which ends the run, or a `spent` share, items may have no record.
    `returned` is what is left of shares, `short` what the next call would have needed.
    """

    attempts: int = 0
    counts: Counts | None = None
    error: HarnessError | None = None
    spent: bool = False
    short: Budget = Budget()
    returned: Budget = Budget()


@dataclass(eq=False, kw_only=True)
class ShardQueue(Queue):
    """The items of a shard that no attempt has recorded.

    The `suspects` may have ended workers, and are worked alone, before the others; `killers` are
    those that an attempt before began alone. Once no suspect is left, `widen` has several worked at
    a time again. `ended` is set once no item is left or at work, and `closed` once the files are.
    """

    shard: Shard
    attempt: int
    log: JournalWriter
    logs: dict[str, JournalWriter]
    texts: Iterator[JobText]
    before: dict[bytes, LackingRecord | None]
    suspects: set[str]
    killers: set[str]
    widen: Callable[[], None]
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    details: dict[str, str] = field(default_factory=dict)
    taken: deque[JobText] = field(default_factory=deque)
    askers: list[str] = field(default_factory=list)
    learnt: list[str] = field(default_factory=list)
    given: int = 0
    drained: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.left = self.shard.items - len(self.before)
        self.run.progress.done = len(self.before)
        for one in self.before.values():
            if one is not None and one.failed:
                self.failures[one.type, one.cause] += 1
        if self.suspects:
            self.alone = True
            self.texts = iter(sorted(self.texts, key=lambda text: text.key not in self.suspects))

    async def next_text(self) -> JobText | None:
        if not self.taken:
            left = (text for text in self.texts if bytes.fromhex(text.key) not in self.before)
            self.taken.extend(islice(left, 1 if self.alone else TAKEN))
            if self.alone:
                self.writer.flush()
            for text in self.taken:
                if text.key not in self.killers:
                    self.log.note(LogLine(begun=text.key, alone=self.alone))
            self.log.flush()  # so that it is known if their worker dies of one
        if self.taken:
            self.left -= 1
            return self.taken.popleft()
        self.left, self.drained = 0, True
        return None

    async def next(self) -> Job | None:
        while (job := await super().next()) is not None:
            self.given += 1
            self.suspects.discard(job.key)
            if job.key not in self.killers:
                self.logs[job.asker] = self.log
                self.askers.append(job.asker)
                break
            record_outcome(self, job, DIED)
            self.failed(DIED)
        return job

    def failed(self, failure: Failure) -> None:
        """Count a failure; the command compares all of them with the limits."""
        self.failures[tag_of(failure), failure.cause] += 1
        self.details.setdefault(failure.cause, failure.detail)

    def worked(self) -> None:
        """An item is recorded, or there is none left."""
        if self.drained and not self.run.progress.in_flight:
            self.ended.set()
        elif self.alone and not self.suspects:
            self.alone = False
            self.widen()

    def counts(self) -> Counts:
        progress = self.run.progress
        return Counts(
            attempt=self.attempt,
            failures=dict(self.failures),
            details=dict(self.details),
            progress={name: getattr(progress, name) for name in COUNTED},
        )


class ShardAnswers(OwnAnswers):
    """The answers that earlier attempts and sessions got, by key; new ones go to the log of the
    attempt whose item asked."""

    def __init__(self, session: int, logs: dict[str, JournalWriter]) -> None:
        super().__init__(session=session)
        self.known: dict[str, OwnAnswer] = {}
        self._logs = logs

    def earlier(self, key: str) -> OwnAnswer | None:
        return self.known.get(key)

    def keep(self, asker: str, answer: Answer) -> None:
        """Keep an answer; one that comes after the end of its item's shard is too late for that."""
        if (log := self._logs.get(asker)) is not None:
            own = OwnAnswer(session=self._session, asker=asker, answer=answer)
            log.note(LogLine(answer=own))


class ShardWorker:
    """Works shards of one run, with a client, limiters and engines of its own.

    An executor makes it in another process, and makes it again where that process died; see
    `harness.contracts.executor`. Its methods return errors, as an executor may lose what is raised.
    """

    def __init__(self, order: bytes, keys: RunKeys, seat: int) -> None:
        self._order = order
        self._keys = keys
        self._seat = seat
        self._node = f"{socket.gethostname()} ({os.getpid()})"
        self._life = secrets.token_hex(8)
        self._preparing = asyncio.Lock()
        self._prepared = self._begun = False
        self._error: HarnessError | None = None
        self._works: dict[tuple[str, str, int], asyncio.Task[ShardDone]] = {}
        self._queues: list[ShardQueue] = []
        self._lines: list[tuple[str, bool]] = []
        self._logs: dict[str, JournalWriter] = {}
        self._stopped: HarnessError | None = None
        self._spent = False
        self._ending: asyncio.Task[None] | None = None

    async def ready(self) -> tuple[str, HarnessError | None]:
        """The name of the process, and what keeps it from working on the run; pays for nothing."""
        async with self._preparing:
            if not self._prepared:
                self._prepared = True
                self._keys.take()
                collect_rarely()
                try:
                    await self._prepare()
                except Exception as error:
                    self._error = self._error_here(error)
        return self._node, self._error

    async def work(self, shard: Shard) -> ShardDone:
        """Work the items of a shard that no attempt has recorded.

        A call that comes again, as one whose connection broke, joins the first.
        """
        place = shard.task, shard.stage, shard.number
        if place not in self._works:
            self._works[place] = asyncio.get_running_loop().create_task(self._work(shard))
            self._works[place].add_done_callback(lambda task: self._works.pop(place))
        return await asyncio.shield(self._works[place])

    async def _work(self, shard: Shard) -> ShardDone:
        _, error = await self.ready()
        if error is not None:
            return ShardDone(error=error)
        if self._spent and self._ending is not None:
            await asyncio.shield(self._ending)
        if self._stopped is not None:
            return ShardDone(error=self._stopped)
        context = self._contexts[shard.task, shard.stage]
        files = ShardFiles(self._folder.journal(shard.task, context.number, shard.stage))
        attempts = files.attempts(shard.number, shard.first)
        if attempts >= shard.first and shard.share != Budget():
            # A worker died with the share, and nobody knows what it used of it.
            return ShardDone(attempts=attempts, spent=True)
        try:
            queue = self._begin(shard, files, attempts + 1)
        except Exception as failed:
            return ShardDone(attempts=attempts, error=self._error_here(failed))
        self._queues.append(queue)
        self._meter.grant(shard.share)
        self._lanes.add(queue, rounds=shard.rounds)
        self._lanes.start()
        await queue.ended.wait()
        return await self._end(queue)

    async def news(self) -> News:
        """What the worker counted so far, and its lines for the user since the last news."""
        lines, self._lines = tuple(self._lines), []
        for one in self._queues:  # what is told is not done again if the process dies
            with suppress(StorageError):  # which the next record raises
                one.writer.flush()
        me: dict[str, Any] = {"life": self._life, "node": self._node, "lines": lines}
        if not self._begun:
            return News(**me, counts={}, usage={}, limits={}, engines=0)
        return News(
            **me,
            counts={
                (one.shard.task, one.shard.stage, one.shard.number): one.counts()
                for one in self._queues
            },
            usage=self._client.usage.as_json(),
            limits=self._client.limits(),
            engines=self._gate.running,
        )

    async def stop(self, error: HarnessError, at_once: bool) -> None:
        """Send no further question; calls in flight may finish, or are dropped at once."""
        if self._begun:
            self._stop(error, at_once=at_once)
        else:  # a process that was started again, and prepares for a shard
            self._stopped = self._stopped or error

    async def give_up(self, task: str, stage: str) -> None:
        """Begin no further item of a stage."""
        for queue in self._queues:
            if (queue.shard.task, queue.shard.stage) == (task, stage):
                queue.texts, queue.left = iter(()), 0
                queue.taken.clear()

    async def close(self) -> tuple[News, HarnessError | None]:
        """Close engines and store; the last news, and the first error."""
        failed: HarnessError | None = None
        if self._begun:
            for closes in (self._gate.close, self._engines.close):
                try:
                    await closes()
                except HarnessError as error:
                    failed = failed or self._error_here(error)
            if self._store is not None:
                self._store.close()
        return await self.news(), failed

    @property
    def over(self) -> bool:
        """Whether no further item is to be taken."""
        return self._stopped is not None or self._spent

    def worker_ended(self, error: BaseException | None) -> None:
        """A task of a lane has ended: a spent share ends all shards, another error the run."""
        if type(error) is BudgetSpent and self._stopped is None:
            self._spent = True
            if self._ending is None:
                self._ending = asyncio.get_running_loop().create_task(self._renew())
        elif isinstance(error, HarnessError):
            if isinstance(error, (ModelError, StorageError)):
                error = self._error_here(error)
            self._stop(error, at_once=not ends_gently(error))
        elif error is not None:
            self._stop(self._error_here(error), at_once=True)

    def _error_here(self, error: BaseException) -> HarnessError:
        """The error, or that of a crash, which says from now on that it is about this node."""
        if not isinstance(error, HarnessError):
            trace = "".join(traceback.format_exception(error)[-4:])
            error = HarnessError("the harness itself failed in a worker", found=trace)
        if self._node not in (error.where or ""):
            error.where = ", ".join(filter(None, (f"node {self._node}", error.where)))
        return error

    async def _prepare(self) -> None:
        order, self._contexts, self._engines = read_order(self._order)
        self._run, settings = order, order.settings
        self._folder = RunFolder(Path(order.folder))
        players = models_of(players_of_stages(self._contexts.values(), settings))
        for model in players:
            model.require()
        engines = {one: played for one, played in players.items() if one.occupies is not None}
        if engines:  # the command cannot look at what they need here
            await preflight(engines, settings, show=self._say)
        share_concurrency(players, order.workers, seat=self._seat)
        self._store = self._open_store(settings.store_file)
        self._answers = ShardAnswers(order.session, self._logs)
        self._memory = CopiedMemory(
            lambda name, asker, values: self._logs[asker].note(LogLine(memo=(name, asker, values)))
        )
        nothing = {unit: 0 for unit, bound in msgspec.to_builtins(settings.budget).items() if bound}
        self._meter = Meter(Budget(**nothing), settings.prices)
        self._models = list(players)
        self._make_client()
        self._begun = True

    def _make_client(self) -> None:
        order, settings = self._run, self._run.settings
        self._gate = EngineGate(
            one_at_a_time=settings.one_engine_at_a_time,
            announce=self._say,
            logs=self._folder.path / ENGINES / f"worker-{self._seat + 1}",
            models=self._models,
            shared=self._engines,
        )
        self._client = Client(
            store=self._store,
            run_id=order.run_id,
            patience=settings.patience,
            meter=self._meter,
            engines=self._gate,
            fresh=order.run_id if settings.fresh else None,
            announce=self._say,
            own=self._answers,
        )
        self._lanes = Lanes(self, client=self._client, memo=self._memory)

    def _open_store(self, path: Path | None) -> Store | None:
        """The store of this machine; none where its place is on a disk that machines share."""
        if path is None:
            return None
        if (kind := network_type(path)) is not None:
            self._say(f"no store of calls: {path} is on {kind}; HARNESS_CACHE names a local folder")
            return None
        return Store.open(path, warn=functools.partial(self._say, problem=True))

    def _begin(self, shard: Shard, files: ShardFiles, attempt: int) -> ShardQueue:
        """The queue of a new attempt at a shard, with what those before it recorded and learnt."""
        if not files.items_of(shard.number).exists():
            raise StorageError(
                "the file of a shard's items is missing",
                where=str(files.items_of(shard.number)),
                hint="repeat the same command: it continues where it stopped",
            )
        context = self._contexts[shard.task, shard.stage]
        before: dict[bytes, LackingRecord | None] = {}
        begun: Counter[str] = Counter()
        killers: set[str] = set()
        later: set[str] = set()
        learnt: list[str] = []
        logs = {one: files.log(shard.number, one) for one in range(attempt)}
        for one in range(1, attempt):
            before = recorded(files.part(shard.number, one), context.key) | before
        for one, log in ({-1: files.earlier} | logs).items():
            for line in log_lines(log):
                if line.begun is not None:
                    begun[line.begun] += 1
                    if line.alone:
                        killers.add(line.begun)
                    if one >= shard.first:
                        later.add(line.begun)
                elif line.answer is not None:
                    self._answers.known[line.answer.answer.key] = line.answer
                    learnt.append(line.answer.answer.key)
                elif line.memo is not None:
                    name, asker, values = line.memo
                    self._memory.learn(
                        name, {key: Entry(value, asker or None) for key, value in values.items()}
                    )
        suspects: set[str] = set()
        if shard.alone:  # those at work at so many deaths, or at one since
            often = {key for key, times in begun.items() if times >= MOST_DEATHS}
            left = often | later | killers
            suspects = {key for key in left if bytes.fromhex(key) not in before}
        part = files.part(shard.number, attempt)
        return ShardQueue(
            run=StageRun(
                context=context,
                journal=part,
                items=lambda: iter(()),
                progress=StageProgress(task=shard.task, stage=shard.stage),
                state=State.RUNNING,
            ),
            writer=JournalWriter(part, new=True, kept=True),
            log=JournalWriter(files.log(shard.number, attempt), new=True, kept=True),
            logs=self._logs,
            shard=shard,
            attempt=attempt,
            texts=files.items(shard.number),
            before=before,
            suspects=suspects,
            killers=killers,
            widen=self._lanes.start,
            learnt=learnt,
        )

    async def _end(self, queue: ShardQueue) -> ShardDone:
        error, returned = self._stopped, self._meter.give_back(len(self._queues))
        broken_off = len(queue.before) + queue.given > queue.run.progress.done
        spent, short = self._spent, self._meter.short
        self._queues.remove(queue)
        for asker in queue.askers:
            del self._logs[asker]
        held = {key for other in self._queues for key in other.learnt}
        for key in queue.learnt:
            if key not in held:
                self._answers.known.pop(key, None)
        for file in (queue.log, queue.writer):
            try:
                try:
                    file.flush()
                finally:  # in a thread, as a disk takes as long as hundreds of questions
                    await in_thread(file.close)
            except StorageError as failed:
                error = error or self._error_here(failed)
        queue.closed.set()
        return ShardDone(
            attempts=queue.attempt,
            counts=queue.counts(),
            error=error,
            spent=spent,
            short=short if spent and broken_off else Budget(),
            returned=returned,
        )

    def _stop(self, error: HarnessError, *, at_once: bool) -> None:
        self._stopped = self._stopped or error
        self._client.stop(error)
        if at_once:
            self._lanes.drop()
        if self._ending is None or self._spent:
            self._ending = asyncio.get_running_loop().create_task(self._abandon())

    async def _abandon(self) -> None:
        await self._lanes.settled()
        await self._lanes.ended()
        for queue in self._queues:
            queue.ended.set()

    async def _renew(self) -> None:
        """End all shards, and ask with a new client from then on, which has another share."""
        ending = [*self._queues]
        await self._abandon()
        await asyncio.gather(*(queue.closed.wait() for queue in ending))
        try:
            await self._gate.close()
        except HarnessError as error:
            self._stop(self._error_here(error), at_once=True)
            return
        earlier = self._client
        self._make_client()
        self._client.follow(earlier)
        self._spent, self._ending = False, None

    def _say(self, text: str, *, problem: bool = False) -> None:
        self._lines.append((f"worker {self._seat + 1} on {self._node}: {text}", problem))
