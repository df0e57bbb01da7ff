"""What a running stage still has to do: items in turn, those with a record passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from harness.pipeline.benchmark import Item
from harness.pipeline.executors.stock import Breathe, Stock
from harness.pipeline.limits import FailureWatch
from harness.pipeline.plan import StageRun
from harness.results.journal import JournalWriter
from harness.results.lines import OutcomeTag

BROKEN = "broken"
"""The tag of items that a fault of the benchmark cost: they are worked again, for it may be mended
by now, and what was answered is in the store."""


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
    stock: Stock
    recorded: dict[bytes, OutcomeTag | None]
    writer: JournalWriter
    watch: FailureWatch
    retry_failures: bool
    breathe: Breathe
    left: int = field(init=False)
    exhausted: bool = False
    _items: Iterator[tuple[bytes, Callable[[], Item]]] = field(init=False)

    def __post_init__(self) -> None:
        self.left = len(self.stock)
        self._items = self.stock.take()

    async def next(self) -> Job | None:
        """The next item to work on; None when there is none left."""
        for key, item in self._items:
            self.left -= 1
            if key not in self.recorded:
                return Job(feed=self, item=item(), key=key.hex(), again=False)
            failure = self.recorded.pop(key)
            if failure is not None and (self.retry_failures or failure.type == BROKEN):
                return Job(feed=self, item=item(), key=key.hex(), again=self.retry_failures)
            self._take_over(failure)
            await self.breathe()
        if not self.exhausted:
            self.exhausted = True
            self.stock.close()
            # What is left is of items that are gone: an earlier stage says something else now.
            self.writer.drop(self.run.context.key, self.recorded)
        return None

    def _take_over(self, failure: OutcomeTag | None) -> None:
        progress = self.run.progress
        progress.resumed += 1
        progress.done += 1
        if failure is not None:
            progress.failures[failure.cause] += 1
            self.watch.failed(failure.type, failure.cause)
