"""What the workers of a run share: one process next to the run folder, which keeps their memos."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.calls.store import Store
from harness.pipeline.memos import Memory
from harness.runs.atomic_files import RUNS


class HarnessKeeper:
    """Owns the memos of a run: the first write of a key wins, whichever worker makes it.

    It becomes an actor on the driver's node. A value is on disk before the worker has it.
    """

    def __init__(self, store: Path | None, own: Path) -> None:
        self._memory = Memory(
            None if store is None else Store.open(store), Store.open(own, option=RUNS)
        )

    def known(self, name: str, asker: str, keys: Sequence[str]) -> dict[str, str]:
        """The values of these keys in a memo, of those that have one."""
        return self._memory(name, asker).known(keys)

    def keep(self, name: str, asker: str, values: Mapping[str, str]) -> dict[str, str]:
        """The values that hold from now on for these keys of a memo."""
        return self._memory(name, asker).keep(values)


_ASKING = ThreadPoolExecutor(1, "keeper")
"""A thread that waits for the keeper: in the thread of an event loop, Ray warns of waiting."""


@dataclass(frozen=True)
class KeptMemo:
    """A memo of the run, as one item sees it from a worker."""

    keeper: Any
    name: str
    asker: str

    def known(self, keys: Iterable[str]) -> dict[str, str]:
        """The values of these keys, of those that have one."""
        return self._ask(self.keeper.known, list(keys))

    def keep(self, values: Mapping[str, str]) -> dict[str, str]:
        """The values that hold from now on for these keys."""
        return self._ask(self.keeper.keep, dict(values))

    def _ask(self, method: Any, given: Any) -> dict[str, str]:
        import ray

        answer = method.remote(self.name, self.asker, given)
        found: Any = _ASKING.submit(ray.get, answer).result()
        return dict(found)
