"""The items of a running stage: made once, and kept in memory or a file until they are taken."""

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
from typing import Any, Protocol

import msgspec

from harness.base.errors import HarnessError, PluginError
from harness.base.hashing import KEY_BYTES, digest_bytes, stable_int, struct_texts
from harness.contracts.stage import Item
from harness.pipeline.failure_limits import FailureWatch
from harness.pipeline.plan import StageRun
from harness.runs.atomic_files import storage_error
from harness.runs.journal import FailedRecord, JournalWriter

YieldToLoop = Callable[[], Awaitable[None]]
"""Yields to the event loop from time to time."""

BUFFER = 1 << 16
"""Bytes that are written and read at a time: small enough for the processor's cache."""

AT_ONCE = 10_000
"""Places of items that are made into numbers at a time."""

NUMBER = 40
"""Bits of an item's number; the rest of 64 are of the hash of its user, and sorted before it."""

HELD = 1 << 23
"""Bytes of items that are held in memory; beyond these, items go to an unnamed file."""


class ItemFile:
    """Keys and items in the order in which they were made, or `by_user` by the users' hashes."""

    def __init__(self, folder: Path, kind: Any, *, by_user: bool = False) -> None:
        self._file = tempfile.SpooledTemporaryFile(HELD, buffering=BUFFER, dir=str(folder))  # noqa: SIM115
        self._folder = folder
        self._sizes = array("I")
        self._order = array("Q") if by_user else None
        self.decode = msgspec.json.Decoder(kind).decode

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, stage_key: str, item: Item) -> None:
        """Add an item; ValueError where JSON changes it, StorageError where the disk is full."""
        text, canonical = struct_texts(item)
        if (read := self.decode(text)) != item:
            raise ValueError(_difference(item, read))
        with self._room():
            self._file.write(bytes.fromhex(record_key(stage_key, canonical)))
            self._file.write(text)
        if self._order is not None:
            self._order.append(stable_int(item.user) >> NUMBER << NUMBER | len(self._sizes))
        self._sizes.append(len(text))

    def seal(self) -> None:
        """Write and order everything that was added; StorageError where the disk is full."""
        import numpy as np

        with self._room():
            self._file.flush()
        if self._order is not None:
            np.frombuffer(self._order, dtype=np.uint64).sort()

    def take(self) -> Iterator[tuple[bytes, bytes]]:
        """Each key with the JSON of its item, which `decode` reads: many are never needed."""
        for place, size in self._places():
            self._file.seek(place)
            key = self._file.read(KEY_BYTES)
            yield key, self._file.read(size)

    def close(self) -> None:
        """Free the memory and the file."""
        self._file.close()

    def _places(self) -> Iterator[tuple[int, int]]:
        """The place in the file and the size of each item, in order."""
        import numpy as np

        sizes = np.frombuffer(self._sizes, dtype=np.uint32)
        before = sizes.astype(np.int64)  # in place from here on: there may be very many
        np.cumsum(before, out=before)
        before -= sizes
        for start in range(0, len(sizes), AT_ONCE):
            chosen = np.arange(start, min(start + AT_ONCE, len(sizes)), dtype=np.int64)
            if self._order is not None:
                ordered = np.frombuffer(self._order, dtype=np.uint64)[chosen]
                chosen = (ordered & np.uint64((1 << NUMBER) - 1)).astype(np.int64)
            places = before[chosen] + KEY_BYTES * chosen
            yield from zip(places.tolist(), sizes[chosen].tolist(), strict=True)

    @contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise storage_error(self._folder, error) from error


async def make_items(
    run: StageRun, yield_to_loop: YieldToLoop, over: Callable[[], bool], *, by_user: bool = False
) -> ItemFile | None:
    """All items of a stage; None where the run was stopped before the last one was made.

    Raises PluginError where an item cannot be made or stored, or two items share an id.
    """
    import numpy as np

    folder = run.journal.parent
    folder.mkdir(parents=True, exist_ok=True)
    item_file = ItemFile(folder, run.context.stage.item, by_user=by_user)
    ids = array("q")
    for item in _items(run):
        _keep(item_file, run, item)
        ids.append(hash(item.id))
        await yield_to_loop()
        if over():
            item_file.close()
            return None
    item_file.seal()
    in_order = np.frombuffer(ids, dtype=np.int64)
    in_order.sort()
    if (in_order[1:] == in_order[:-1]).any():
        times = Counter(item_file.decode(text).id for _, text in item_file.take())
        repeated = [name for name, count in times.items() if count > 1]
        if repeated:
            raise PluginError(
                f"stage {run.context.stage.name!r} gives the same id to several items",
                where=f"benchmark {run.context.benchmark}",
                found=f"{repeated[0]!r} {times[repeated[0]]} times",
                expected="a different id for each item of the stage",
            )
    return item_file


def record_key(stage_key: str, item: bytes) -> str:
    """The key of an item's record, from the stage's key and the item's canonical JSON."""
    return digest_bytes(stage_key.encode("ascii") + item)


def _items(run: StageRun) -> Iterator[Item]:
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


def _keep(item_file: ItemFile, run: StageRun, item: Item) -> None:
    try:
        item_file.add(run.context.key, item)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PluginError(
            f"an item of stage {run.context.stage.name!r} cannot be stored",
            where=f"task {run.task}, item {getattr(item, 'id', None)!r}",
            found=str(error),
            expected=f"an item of exactly the class {run.context.stage.item.__name__} that JSON "
            "does not change: each field of its declared type, no NaN, no infinity",
        ) from error


def _difference(item: Any, read: Any) -> str:
    """The first part of an item that encoding and decoding changed."""
    if type(read) is not type(item):
        return f"{type(item).__name__} is decoded as {type(read).__name__}"
    for name in item.__struct_fields__:
        before, after = getattr(item, name), getattr(read, name)
        if before != after:
            return f"`$.{name}`: {reprlib.repr(before)} is decoded as {reprlib.repr(after)}"
    return f"two equal items of type {type(item).__name__} do not compare equal"


BROKEN = "broken"
"""The tag of items whose benchmark code raised: they run again, since the code may be fixed by now
and the answered calls are in the store."""


class Queue(Protocol):
    """Gives the items of a stage that are left, and has the writer of their records.

    `left` is at least the number of items that `next` will give.
    """

    run: StageRun
    writer: JournalWriter
    left: int

    @property
    def decode_value(self) -> Callable[[bytes], Any]:
        """Reads a value from JSON as the type that the stage declares."""
        ...

    async def next(self) -> Job | None:
        """The next item to work on; None when no item is left."""
        ...


@dataclass(frozen=True, kw_only=True)
class Job:
    """An item to work on. `again`: it failed before, and its questions are asked past the store.

    `replaces` is the checksum of the record that it has, if it has one.
    """

    queue: Queue
    item: Item
    key: str
    again: bool
    replaces: str = ""


class JobText(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What `Job` says of an item, and the item as JSON."""

    key: str
    item: bytes
    again: bool
    replaces: str


def job_of(queue: Queue, text: JobText, decode: Callable[[bytes], Item]) -> Job:
    """The job whose item `decode` reads from its JSON."""
    return Job(
        queue=queue,
        item=decode(text.item),
        key=text.key,
        again=text.again,
        replaces=text.replaces,
    )


@dataclass(eq=False, kw_only=True)
class ItemQueue:
    """The items of a running stage that have no record yet, and the writer of their records.

    `decode_value` reads a value back from JSON as the type that the stage declares.
    """

    run: StageRun
    item_file: ItemFile
    recorded: dict[bytes, FailedRecord | None]
    writer: JournalWriter
    watch: FailureWatch
    retry_failures: bool
    yield_to_loop: YieldToLoop
    decode_value: Callable[[bytes], Any]
    left: int = field(init=False)
    exhausted: bool = False
    _items: Iterator[tuple[bytes, bytes]] = field(init=False)
    _replaced: dict[bytes, str] = field(default_factory=dict)
    _rewound: bool = False

    def __post_init__(self) -> None:
        self.left = len(self.item_file)
        self._items = self.item_file.take()

    def rewind(self, recorded: dict[bytes, FailedRecord | None]) -> None:
        """Begin once more with what is recorded by now, as items were lost on their way.

        Failures that were recorded since the first pass are not asked again.
        """
        progress = self.run.progress
        progress.done = 0
        progress.failures.clear()
        self.watch.forget()
        self.recorded = recorded
        self.left = len(self.item_file)
        self._items = self.item_file.take()
        self.exhausted = False
        self._rewound = True

    async def next(self) -> Job | None:
        """The next item to work on; None when no item is left."""
        text = await self.next_text()
        return None if text is None else job_of(self, text, self.item_file.decode)

    async def next_text(self) -> JobText | None:
        """The next item to work on, still as JSON; None when no item is left."""
        for key, item in self._items:
            self.left -= 1
            if key not in self.recorded:
                return JobText(key=key.hex(), item=item, again=False, replaces="")
            failure = self.recorded.pop(key)
            if failure is not None and self._asks_again(key, failure):
                self._replaced[key] = failure.checksum
                return JobText(
                    key=key.hex(),
                    item=item,
                    again=self.retry_failures,
                    replaces=failure.checksum,
                )
            self._take_over(failure)
            await self.yield_to_loop()
        if not self.exhausted:
            self.exhausted = True
            # The records left belong to items that no longer exist: an earlier stage has changed.
            self.writer.drop(self.run.context.key, self.recorded)
        return None

    def close(self) -> None:
        """Free the items and close the journal."""
        self.item_file.close()
        self.writer.close()

    def _asks_again(self, key: bytes, failure: FailedRecord) -> bool:
        if self._rewound:
            return self._replaced.get(key) == failure.checksum
        return self.retry_failures or failure.type == BROKEN

    def _take_over(self, failure: FailedRecord | None) -> None:
        progress = self.run.progress
        progress.resumed += not self._rewound
        progress.done += 1
        if failure is not None:
            progress.failures[failure.cause] += 1
            self.watch.failed(failure.type, failure.cause)
