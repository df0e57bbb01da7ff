"""What the workers of a run share, in processes on the driver's node: its memos and its budget."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness.calls.leases import Account, Lease, Purse, Recall, Spent, Used
from harness.calls.policy import Budget
from harness.calls.store import Store
from harness.pipeline.memos import DistantMemory, Entry, Memory
from harness.runs.atomic_files import RUNS


class HarnessKeeper:
    """Owns the memos of a run: the first write of a key wins, whichever worker makes it.

    It becomes an actor. A value is in a file before a worker has it.
    """

    def __init__(self, store: Path | None, own: Path) -> None:
        kept = Store.open(own, option=RUNS)
        self._memory = Memory(kept if store is None else Store.open(store), kept)

    def entries(self, name: str, keys: list[str]) -> dict[str, Entry]:
        """The entries of these keys in a memo, of those that have one."""
        return self._memory.entries(name, keys)

    def keep(self, name: str, asker: str, values: Mapping[str, str]) -> dict[str, Entry]:
        """The entries that hold from now on for these keys of a memo."""
        return self._memory.keep(name, asker, values)


_ASKING = ThreadPoolExecutor(1, "keeper")
"""A thread that waits for the keeper, since Ray warns of waiting in an event loop's thread."""


def distant_memory(keeper: Any) -> DistantMemory:
    """The memos of the run, as a worker sees them."""
    import ray

    def ask(method: Any, *given: Any) -> dict[str, Entry]:
        found: Any = _ASKING.submit(ray.get, method.remote(*given)).result()
        return dict(found)

    return DistantMemory(
        entries=lambda name, keys: ask(keeper.entries, name, keys),
        keep=lambda name, asker, values: ask(keeper.keep, name, asker, values),
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
