"""What the workers of a run share, in processes on the driver's node: its memos, its budget and,
where they do not see the run folder, its files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ray.exceptions import ActorUnavailableError, ObjectLostError, RayActorError, RayError

from harness.base.errors import HarnessError, StorageError, UsageError
from harness.calls.leases import Account, Lease, Purse, Recall, Spent, Used
from harness.calls.policy import Budget
from harness.calls.store import Store
from harness.pipeline.executors.sent_files import ReceivedFiles, SentFile
from harness.pipeline.memos import DistantMemory, Entry, Memory
from harness.runs.atomic_files import RUNS
from harness.runs.run_folder import LOCK, RunFolder

GONE = (RayActorError, ObjectLostError)
"""What Ray raises for an actor that has died, or a node with a reply of it that was large."""

LONGEST_REASON = 200
"""Characters of Ray's account of a death that are shown."""

PROCESS_GONE = "Worker unexpectedly exits with a connection error code"
"""What Ray's account says of a process that ended, before its common causes."""

PATIENCE_SECONDS = 30.0
"""How long a message is repeated while Ray does not know whether its receiver lives."""


class HarnessKeeper:
    """Owns the memos of a run: the first write of a key wins, whichever worker makes it.

    It becomes an actor. A value is in a file before a worker has it. It writes the parts of
    journals that workers send.
    """

    def __init__(self) -> None:
        self._files = ReceivedFiles()

    def begin(self, folder: Path, lock: str, store: Path | None) -> HarnessError | None:
        """Open the run's files; returns why not, as where the folder is not that of the driver."""
        found = "another folder of the same name"
        try:
            if (folder / LOCK).read_text() == lock:
                kept = Store.open(RunFolder(folder).own_answers, option=RUNS)
                self._memory = Memory(kept if store is None else Store.open(store), kept)
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
            raise _keeper_lost(error) from error
        return dict(found)

    return DistantMemory(
        entries=lambda name, keys: ask(keeper.entries, name, keys),
        keep=lambda name, asker, values: ask(keeper.keep, name, asker, values),
    )


def sent_file(keeper: Any, path: Path) -> SentFile:
    """A new file in the run folder whose lines the keeper writes."""

    async def repeated(ask: Callable[..., Any], *given: Any) -> StorageError | None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                failed: StorageError | None = await ask(path, *given)
                return failed
            except ActorUnavailableError as error:
                if time.monotonic() > deadline:
                    return _keeper_lost(error)
                await asyncio.sleep(1)
            except RayError as error:
                return _keeper_lost(error)

    return SentFile(
        send=lambda place, lines: repeated(keeper.write.remote, place, lines),
        close=lambda: repeated(keeper.close.remote),
    )


def reason_of(error: RayError) -> str:
    """Why an actor died, in a line."""
    text = " ".join(str(error).split())
    if PROCESS_GONE in text:
        return "its process was killed, as by a node without memory to spare, or crashed"
    text = text.partition("The actor is dead because ")[2] or text
    if len(text) > LONGEST_REASON:
        text = text[:LONGEST_REASON].rpartition(" ")[0] + " …"
    return text


def _keeper_lost(error: RayError) -> StorageError:
    return StorageError(
        "the process that keeps records and memos for the workers cannot be reached any more",
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

    async def more(self, worker: str, account: Account, wanted: Used) -> Lease | Spent:
        """A lease that covers what the worker wants, or why there is none."""
        return await self._purse.more(worker, account, wanted)

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
        account: Account = await self._actors[worker].give_back.remote(recall)
        return account

    def _announce(self, text: str) -> None:
        for actor in list(self._actors.values())[:1]:
            actor.say.remote(text)
