"""The items of a running stage: made once, and kept aside until their turn comes."""

from __future__ import annotations

import reprlib
import tempfile
import traceback
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import HarnessError, PluginError
from harness.base.hashing import KEY_BYTES, digest_bytes, struct_texts
from harness.contracts.stage import Item
from harness.pipeline.failure_limits import FailureWatch
from harness.pipeline.plan import StageRun
from harness.runs.atomic_files import storage_error
from harness.runs.journal import JournalWriter
from harness.runs.journal_index import OutcomeTag

Breathe = Callable[[], Awaitable[None]]
"""Lets timers, signals and other stages have their turn, now and then."""

BUFFER = 1 << 16
"""Bytes that are written and read at a time: as many as stay in the processor's cache."""

HELD = 1 << 23
"""Bytes of items that are held in memory; more of them go into a file without a name."""


class Stock:
    """Keys and items in the order in which they were made."""

    def __init__(self, folder: Path, kind: Any) -> None:
        self._file = tempfile.SpooledTemporaryFile(HELD, buffering=BUFFER, dir=str(folder))  # noqa: SIM115
        self._folder = folder
        self._sizes = array("I")
        self._decode = msgspec.json.Decoder(kind).decode

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, stage_key: str, item: Item) -> None:
        """Keep an item; ValueError where it would not come back, StorageError where no room is."""
        text, canonical = struct_texts(item)
        if (read := self._decode(text)) != item:
            raise ValueError(_difference(item, read))
        with self._room():
            self._file.write(bytes.fromhex(record_key(stage_key, canonical)))
            self._file.write(text)
        self._sizes.append(len(text))

    def seal(self) -> None:
        """End the adding; StorageError where what was added finds no room after all."""
        with self._room():
            self._file.flush()

    def take(self) -> Iterator[tuple[bytes, Callable[[], Item]]]:
        """Each key with a function that gives its item, since many keys are only looked at."""
        self._file.seek(0)
        for size in self._sizes:
            key = self._file.read(KEY_BYTES)
            data = self._file.read(size)
            yield key, lambda data=data: self._decode(data)  # type: ignore[misc]

    def close(self) -> None:
        """Give the room back."""
        self._file.close()

    @contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise storage_error(self._folder, error) from error


async def fill(run: StageRun, breathe: Breathe, over: Callable[[], bool]) -> Stock | None:
    """All items of a stage; None where the run was over before the last was made.

    Raises PluginError where they cannot be made or kept, or two have one id.
    """
    import numpy as np

    folder = run.journal.parent
    folder.mkdir(parents=True, exist_ok=True)
    stock = Stock(folder, run.context.stage.item)
    ids = array("q")
    for item in _made(run):
        _keep(stock, run, item)
        ids.append(hash(item.id))
        await breathe()
        if over():
            stock.close()
            return None
    stock.seal()
    if len(np.unique(np.frombuffer(ids, dtype=np.int64))) < len(ids):
        times = Counter(item().id for _, item in stock.take())
        repeated = [name for name, count in times.items() if count > 1]
        if repeated:
            raise PluginError(
                f"stage {run.context.stage.name!r} gives several items one id",
                where=f"benchmark {run.context.benchmark}",
                found=f"{repeated[0]!r} {times[repeated[0]]} times",
                expected="an id of its own for each item of a stage",
            )
    return stock


def record_key(stage_key: str, item: bytes) -> str:
    """The key of an item's record, from the stage's key and the item's canonical text."""
    return digest_bytes(stage_key.encode("ascii") + item)


def _made(run: StageRun) -> Iterator[Item]:
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


def _keep(stock: Stock, run: StageRun, item: Item) -> None:
    try:
        stock.add(run.context.key, item)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PluginError(
            f"an item of stage {run.context.stage.name!r} cannot be kept",
            where=f"task {run.task}, item {getattr(item, 'id', None)!r}",
            found=str(error),
            expected=f"an item that JSON gives back as it was: {run.context.stage.item.__name__} "
            "itself, every field of its declared type, no NaN, no infinity",
        ) from error


def _difference(item: Any, read: Any) -> str:
    """What came back from JSON otherwise than it went there."""
    if type(read) is not type(item):
        return f"{type(item).__name__} comes back as {type(read).__name__}"
    for name in item.__struct_fields__:
        before, after = getattr(item, name), getattr(read, name)
        if before != after:
            return f"`$.{name}`: {reprlib.repr(before)} comes back as {reprlib.repr(after)}"
    return f"{type(item).__name__} never equals another"


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
