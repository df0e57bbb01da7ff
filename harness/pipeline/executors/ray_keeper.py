"""What the workers of a run share, in processes on the driver's node: its answers, its memos, its
budget and, where they do not see the run folder, its files."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from ray.exceptions import ActorUnavailableError, ObjectLostError, RayActorError, RayError

from harness.base import clock
from harness.base.errors import HarnessError, StorageError, UsageError
from harness.calls.leases import Account, Lease, Purse, Recall, Spent, Used, WorkerGivenUp
from harness.calls.policy import Budget
from harness.calls.store import Store
from harness.pipeline.executors.sent_answers import SentAnswers
from harness.pipeline.executors.sent_files import ReceivedFiles, SentFile
from harness.pipeline.executors.shards import in_pieces
from harness.pipeline.memos import DistantMemory, Entry, Memory
from harness.runs.atomic_files import RUNS
from harness.runs.run_folder import LOCK, RunFolder

T = TypeVar("T")

GONE = (RayActorError, ObjectLostError)
"""What Ray raises for an actor that has died, or a node with a reply of it that was large."""

LONGEST_REASON = 200
"""Characters of Ray's account of a death that are shown."""

PROCESS_GONE = "Worker unexpectedly exits with a connection error code"
"""What Ray's account says of a process that ended, before its common causes."""

REASON = re.compile("The actor (?:is dead|died) because ")
"""What Ray writes before the reason."""

PATIENCE_SECONDS = 30.0
"""How long a message is repeated while Ray does not know whether its receiver lives."""

KEEPER, PURSE = "keeps records and memos", "divides the budget"
"""What the processes do, for the error that one is gone."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[bytes, bytes]).decode


class HarnessKeeper:
    """Owns the memos of a run: the first write of a key wins, whichever worker makes it.

    It becomes an actor. A value is in a file before a worker has it. It keeps all answers, and
    writes the parts of journals that workers send.
    """

    def __init__(self) -> None:
        self._files = ReceivedFiles()

    def begin(self, folder: Path, lock: str, store: Path | None) -> HarnessError | None:
        """Open the run's files; returns why not, as where the folder is not that of the driver."""
        found = "another folder of the same name"
        try:
            if (folder / LOCK).read_text() == lock:
                own = Store.open(RunFolder(folder).own_answers, option=RUNS)
                self._memory = Memory(own if store is None else Store.open(store), own)
                self._own = own
                return None
        except HarnessError as error:
            return error
        except OSError as error:
            found = str(error)
        return UsageError(
            "the run folder cannot be seen from the head of the cluster",
            where=str(folder),
            found=found,
            expected="a folder that the cluster and the machine of this command share",
            hint="name one with --output_path, or give the command on a machine of the cluster",
        )

    def entries(self, name: str, keys: list[str]) -> dict[str, Entry]:
        """The entries of these keys in a memo, of those that have one."""
        return self._memory.entries(name, keys)

    def keep(self, name: str, asker: str, values: Mapping[str, str]) -> dict[str, Entry]:
        """The entries that hold from now on for these keys of a memo."""
        return self._memory.keep(name, asker, values)

    def keep_answers(self, *packed: bytes) -> StorageError | None:
        """Write answers of the run."""
        try:
            self._own.put_all(_decode(b"".join(packed)))
        except StorageError as error:
            return error
        return None

    def answers(self, keys: Collection[bytes]) -> dict[bytes, bytes] | StorageError:
        """The answers with these keys, of those that are there."""
        try:
            found = {key: self._own.get(key) for key in keys}
        except StorageError as error:
            return error
        return {key: value for key, value in found.items() if value is not None}

    def write(self, path: Path, place: int, lines: bytes) -> StorageError | None:
        """Append lines to a worker's part of a journal."""
        return self._files.write(path, place, lines)

    def close(self, path: Path) -> StorageError | None:
        """Write a worker's part of a journal durably to disk."""
        return self._files.close(path)


_ASKING = ThreadPoolExecutor(1, "keeper")
"""A thread that waits for the keeper, since Ray warns of waiting in an event loop's thread."""


def distant_memory(keeper: Any) -> DistantMemory:
    """The memos of the run, as a worker sees them."""
    import ray

    def ask(method: Any, *given: Any) -> dict[str, Entry]:
        try:
            found: Any = _ASKING.submit(ray.get, method.remote(*given)).result()
        except GONE as error:
            raise _lost(KEEPER, error) from error
        return dict(found)

    return DistantMemory(
        entries=lambda name, keys: ask(keeper.entries, name, keys),
        keep=lambda name, asker, values: ask(keeper.keep, name, asker, values),
    )


def sent_file(keeper: Any, path: Path) -> SentFile:
    """A new file in the run folder whose lines the keeper writes."""

    return SentFile(
        send=lambda place, lines: _kept(lambda: keeper.write.remote(path, place, lines)),
        close=lambda: _kept(lambda: keeper.close.remote(path)),
    )


def sent_answers(keeper: Any, session: int) -> SentAnswers:
    """The answers of the run, as a worker sees them."""

    async def find(keys: Collection[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] | StorageError = await _kept(lambda: keeper.answers.remote(keys))
        if isinstance(found, StorageError):
            raise found
        return found

    async def send(answers: dict[bytes, bytes]) -> StorageError | None:
        pieces = in_pieces(_encode(answers))
        return await _kept(lambda: keeper.keep_answers.remote(*pieces))

    return SentAnswers(session=session, send=send, find=find)


async def _kept(ask: Callable[[], Awaitable[T]]) -> T | StorageError:
    """What the keeper answers; the error if it is gone."""
    try:
        return await patiently(ask)
    except RayError as error:
        return _lost(KEEPER, error)


async def more_of(purse: Any, worker: str, account: Account, wanted: Used) -> Lease | Spent:
    """What the purse answers to a worker that needs more than it was leased.

    Raises WorkerGivenUp, and StorageError if the purse is gone.
    """
    try:
        answer: Lease | Spent | WorkerGivenUp = await patiently(
            lambda: purse.more.remote(worker, account, wanted)
        )
    except RayError as error:
        raise _lost(PURSE, error) from error
    if isinstance(answer, WorkerGivenUp):
        raise answer
    return answer


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """What an actor answers; it is asked again while Ray does not know whether it lives."""
    deadline = clock.seconds() + PATIENCE_SECONDS
    while True:
        try:
            return await ask()
        except ActorUnavailableError:
            if clock.seconds() > deadline:
                raise
            await asyncio.sleep(1)


def reason_of(error: RayError) -> str:
    """Why an actor died, in a line."""
    text = " ".join(str(error).split())
    if PROCESS_GONE in text:
        return "its process was killed, as by a node without memory to spare, or crashed"
    text = REASON.split(text, 1)[-1]
    if len(text) > LONGEST_REASON:
        text = text[:LONGEST_REASON].rpartition(" ")[0] + " …"
    return text


def _lost(what: str, error: RayError) -> StorageError:
    return StorageError(
        f"the process that {what} for the workers cannot be reached any more",
        where="the machine where the run was started",
        found=reason_of(error),
        hint="repeat the same command: it continues where it stopped",
    )


class HarnessPurse:
    """Leases the budget of a run to its workers. It becomes an actor with an event loop."""

    def __init__(self, budget: Budget, workers: int, used: Used) -> None:
        self._actors: dict[str, Any] = {}
        self._purse = Purse(
            budget, recall=self._recall, workers=workers, used=used, announce=self._announce
        )

    async def more(
        self, worker: str, account: Account, wanted: Used
    ) -> Lease | Spent | WorkerGivenUp:
        """A lease that covers what the worker wants, or why there is none."""
        try:
            return await self._purse.more(worker, account, wanted)
        except WorkerGivenUp as error:
            return error

    async def know(self, worker: str, actor: Any) -> None:
        """Ask this actor when the worker is to give back what it does not use."""
        self._actors[worker] = actor

    async def end(self, worker: str, account: Account) -> None:
        """Take the last account of a worker."""
        self._purse.end(worker, account)

    async def lost(self, worker: str) -> None:
        """Count what a worker that died had leased as used."""
        self._purse.lost(worker)

    async def _recall(self, worker: str, recall: Recall) -> Account:
        account: Account = await patiently(lambda: self._actors[worker].give_back.remote(recall))
        return account

    def _announce(self, text: str) -> None:
        for actor in list(self._actors.values())[:1]:
            actor.say.remote(text)
