"""What a running stage still has to do: items drawn one by one, those with a record passed over."""

from __future__ import annotations

import traceback
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from harness.errors import HarnessError, PluginError
from harness.hashing import canonical, digest_bytes
from harness.pipeline.benchmark import Item
from harness.pipeline.limits import FailureWatch
from harness.pipeline.plan import StageRun
from harness.results.journal import JournalWriter
from harness.results.lines import OutcomeTag

Breathe = Callable[[], Awaitable[None]]
"""Lets timers, signals and other stages have their turn, now and then."""

BROKEN = "broken"
"""The tag of items that a fault of the benchmark cost: they are worked again, for it may be mended
by now, and what was answered is in the store."""

MANY = 256
"""Items counted between two breaths."""


def record_key(stage_key: str, item: Item) -> str:
    """The key of an item's record: the stage's key with the item's content."""
    return digest_bytes(stage_key.encode("ascii") + canonical(msgspec.to_builtins(item)))


async def count_items(run: StageRun, breathe: Breathe) -> int:
    """How many items a stage has; raises PluginError where two have the same id."""
    import numpy as np

    hashes = array("q")
    for item in draw(run):
        hashes.append(hash(item.id))
        if len(hashes) % MANY == 0:
            await breathe()
    if len(np.unique(np.frombuffer(hashes, dtype=np.int64))) < len(hashes):
        times = Counter(item.id for item in draw(run))
        repeated = [name for name, count in times.items() if count > 1]
        if repeated:
            raise PluginError(
                f"stage {run.context.stage.name!r} gives several items one id",
                where=f"benchmark {run.context.benchmark}",
                found=f"{repeated[0]!r} {times[repeated[0]]} times",
                expected="an id of its own for each item of a stage",
            )
    return len(hashes)


def draw(run: StageRun) -> Iterator[Item]:
    """The items of a stage; what its benchmark raises in making them comes as a PluginError."""
    try:
        yield from run.items()
    except HarnessError:
        raise
    except Exception as error:
        raise PluginError(
            f"stage {run.context.stage.name!r} cannot make its items",
            where=f"task {run.task}, benchmark {run.context.benchmark}",
            found=traceback.format_exc(limit=-4).strip(),
        ) from error


@dataclass(frozen=True, kw_only=True)
class Job:
    """An item to work on. `again` means that it failed before and is to be asked anew."""

    feed: Feed
    item: Item
    key: str
    again: bool


@dataclass(eq=False, kw_only=True)
class Feed:
    """A running stage's items that have no record yet, and where their records go."""

    run: StageRun
    recorded: dict[bytes, OutcomeTag | None]
    writer: JournalWriter
    watch: FailureWatch
    retry_failures: bool
    breathe: Breathe
    left: int
    exhausted: bool = False
    _items: Iterator[Item] = field(init=False)
    _broken: bool = False

    def __post_init__(self) -> None:
        self._items = draw(self.run)

    async def next(self) -> Job | None:
        """The next item to work on; None when there is none left."""
        while (item := self._draw()) is not None:
            self.left -= 1
            key = self._key(item)
            record = bytes.fromhex(key)
            if record not in self.recorded:
                return Job(feed=self, item=item, key=key, again=False)
            failure = self.recorded.pop(record)
            if failure is not None and (self.retry_failures or failure.type == BROKEN):
                return Job(feed=self, item=item, key=key, again=self.retry_failures)
            self._take_over(failure)
            await self.breathe()
        if not (self.exhausted or self._broken):
            self.exhausted = True
            # What is left is of items that are gone: an earlier stage says something else now.
            self.writer.drop(self.run.context.key, self.recorded)
        return None

    def _draw(self) -> Item | None:
        if self._broken:
            return None
        try:
            return next(self._items, None)
        except HarnessError:
            self._broken = True
            raise

    def _key(self, item: Item) -> str:
        try:
            return record_key(self.run.context.key, item)
        except (TypeError, ValueError) as error:
            self._broken = True
            raise PluginError(
                f"an item of stage {self.run.context.stage.name!r} can have no key",
                where=f"task {self.run.task}, item {item.id!r}",
                found=str(error),
                expected="values that JSON has: no NaN, no infinity",
            ) from error

    def _take_over(self, failure: OutcomeTag | None) -> None:
        progress = self.run.progress
        progress.resumed += 1
        progress.done += 1
        if failure is not None:
            progress.failures[failure.cause] += 1
            self.watch.failed(failure.type, failure.cause)
