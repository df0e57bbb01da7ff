"""The items of a running stage: made once, kept in memory or a file until they are taken, and given
up when too many of them failed."""

from __future__ import annotations

import os
import reprlib
import tempfile
import traceback
from abc import ABC, abstractmethod
from array import array
from binascii import unhexlify
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

import msgspec

from harness.base.errors import HarnessError, PluginError, TooManyFailures
from harness.base.hashing import KEY_BYTES, digest_bytes, stable_int, struct_texts
from harness.contracts.outcomes import FAMILIES, NO_ANSWER, Failure, problem_in, tag_of
from harness.contracts.stage import Item
from harness.contracts.task import Task
from harness.pipeline.plan import StageRun, State
from harness.pipeline.settings import FailureLimits
from harness.runs.atomic_files import storage_error
from harness.runs.journal import JournalWriter, LackingRecord

FEWEST_FAILURES = 2
"""Failures that it takes to exceed a limit: one bad item never ends a run."""

FEWEST_TO_STOP_EARLY = 20
"""Failures that it takes to stop a stage before its last item."""


def limits_of(task: Task, given: Mapping[str, float]) -> FailureLimits:
    """The limits for a task: from the command, else from the task, else the defaults."""
    return FailureLimits(**{**task.max_failures, **given})


def how_to_ask_again(causes: Mapping[str, int], *, run: str, asks: bool = True) -> str:
    """What a user can do about failures of these causes, in a stage that asks somebody or nobody.

    >>> how_to_ask_again({"timeout": 8}, run="latest")
    '`harness show latest --failures` lists them; repeat the command to ask these again'
    """
    shown = f"`harness show {run} --failures` lists them"
    if not asks:
        return f"{shown}; repeat the command with another model in the role that answered"
    most = max(causes, key=causes.__getitem__, default="")
    if most == "truncated":
        return (
            "most answers would be cut again at the same limit: "
            f"{shown} and how to raise it for the next command"
        )
    if most[:1].isupper():  # the name of an exception
        return f"{shown}; correct what raises {most}, then repeat the command"
    if most in NO_ANSWER:
        rest = ", with --retry_failures the others too" if set(causes) - NO_ANSWER else ""
        return f"{shown}; repeat the command to ask these again{rest}"
    return f"{shown}; repeat the command with --retry_failures to ask again"


@dataclass(kw_only=True)
class FailureWatch:
    """Counts a stage's failures by family and cause, and compares them with the limits.

    Unreadable answers that are not `scored`, as of a profiler, count with those of judges. `run` is
    the name of the run, as commands take it.
    """

    run: str
    limits: FailureLimits
    total: int
    scored: bool = True
    asks: bool = True
    families: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def failed(self, tag: str, cause: str, detail: str = "") -> None:
        """Count one failure by its record's tag; the first detail of each family is kept."""
        family = FAMILIES[tag]
        if family == "parsing" and not self.scored:
            family = "judging"
        self.families[family] += 1
        self.causes[cause] += 1
        if detail:
            self.first.setdefault(family, problem_in(detail))

    def too_many(self) -> bool:
        """Whether a family's share of all items exceeds its limit."""
        return self._over(FEWEST_FAILURES) is not None

    def hopeless(self) -> bool:
        """Whether the share will exceed its limit even if all other items succeed."""
        return self._over(FEWEST_TO_STOP_EARLY) is not None

    def error(self, label: str) -> TooManyFailures:
        """The error with the limit that was exceeded and the ways to continue."""
        family = self._over(FEWEST_FAILURES) or "errors"
        causes = ", ".join(f"{cause} {count}" for cause, count in self.causes.most_common())
        limit = getattr(self.limits, family)
        again = how_to_ask_again(self.causes, run=self.run, asks=self.asks)
        return TooManyFailures(
            "too many items failed",
            where=label,
            found=f"{self.families[family]} of {self.total} by {family} ({causes})"
            + (f"; the first: {first}" if (first := self.first.get(family)) else ""),
            expected=f"at most {limit:.0%} (--max_failures {family}={limit:g})",
            hint=f"all records are kept; {again}; a larger --max_failures accepts the failures",
        )

    def _over(self, fewest: int) -> str | None:
        for family, count in self.families.items():
            if count >= fewest and count > getattr(self.limits, family) * self.total:
                return family
        return None


YieldToLoop = Callable[[], Awaitable[None]]
"""Yields to the event loop from time to time."""

HELD = 1 << 23
"""Bytes of items that are held in memory; beyond these, items go to an unnamed file."""

MANY = 256
"""Runs after which further ones become larger, as each takes some memory when they are merged."""

AT_ONCE = 1 << 14
"""Bytes of a run that are read at a time."""

RANGES = 256
"""Ranges of hashes of ids; each is compared by itself."""

ORDER, KEY = slice(6), slice(6, 6 + 2 * KEY_BYTES)
"""Places in a line: 24 bits of the hash of the user or zeros, and the key; then comes the item."""


class ItemFile:
    """Keys and items in the order in which they were made, or `by_user` by the users' hashes.

    Whenever `HELD` bytes are held, they are written as a run, in order; `take` merges the runs. The
    places of a run are where its lines start, where each range of its ids' hashes starts, and its
    end.
    """

    def __init__(self, folder: Path, kind: Any, *, by_user: bool = False) -> None:
        self._folder = folder
        self._by_user = by_user
        self._count = self._bytes = 0
        self._lines: list[bytes] = []
        self._ids = array("q")
        self._file: IO[bytes] | None = None
        self._runs: list[array[int]] = []
        self.decode = msgspec.json.Decoder(kind).decode

    def __len__(self) -> int:
        return self._count

    def add(self, stage_key: str, item: Item) -> None:
        """Add an item; ValueError where JSON changes it, StorageError where the disk is full."""
        text, canonical = struct_texts(item)
        if (read := self.decode(text)) != item:
            raise ValueError(_difference(item, read))
        order = stable_int(item.user) >> 40 if self._by_user else 0
        self._lines.append(f"{order:06x}{record_key(stage_key, canonical)}".encode() + text)
        self._ids.append(hash(item.id))
        self._count += 1
        self._bytes += len(self._lines[-1])
        if self._bytes > HELD * (1 + len(self._runs) // MANY):
            self._write()

    def seal(self) -> None:
        """Order everything that was added; StorageError where the disk is full."""
        if self._runs:
            self._write()
        elif self._by_user:
            self._lines.sort(key=itemgetter(ORDER))

    def take(self) -> Iterator[tuple[bytes, bytes]]:
        """Each key with the JSON of its item, which `decode` reads: many are never needed."""
        runs = [self._read(*run[:2]) for run in self._runs] or [iter(self._lines)]
        for line in merge(*runs, key=itemgetter(ORDER)) if self._by_user else chain(*runs):
            yield unhexlify(line[KEY]), line[KEY.stop :]

    def repeated(self) -> set[int]:
        """The hashes that several ids have, which mostly are the same id."""
        import numpy as np

        found: set[int] = set()
        for some in self._hashes():
            hashes = np.sort(np.frombuffer(some, dtype=np.int64))
            found.update(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
        return found

    def close(self) -> None:
        """Free the memory and the file."""
        self._lines.clear()
        self._runs.clear()
        self._ids = array("q")
        if self._file is not None:
            with suppress(OSError):  # what could not be written
                self._file.close()

    def _write(self) -> None:
        """Write what is held as a run."""
        import numpy as np

        if self._by_user:
            self._lines.sort(key=itemgetter(ORDER))
        hashes = np.sort(np.frombuffer(self._ids, dtype=np.int64))
        starts = (np.arange(RANGES) - RANGES // 2) * (2**64 // RANGES)
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
            start = self._file.tell()
            self._file.writelines(line + b"\n" for line in self._lines)
            end = self._file.tell()
            self._file.write(hashes.tobytes())
            self._file.flush()
        except OSError as error:
            raise storage_error(self._folder, error) from error
        places = end + hashes.itemsize * np.searchsorted(hashes, starts)
        self._runs.append(array("q", [start, *places.tolist(), end + hashes.nbytes]))
        self._lines, self._ids, self._bytes = [], array("q"), 0

    def _read(self, place: int, end: int) -> Iterator[bytes]:
        assert self._file is not None
        rest = b""
        while place < end:
            size = min(max(AT_ONCE, len(rest)), end - place)
            more = os.pread(self._file.fileno(), size, place)
            place += len(more)
            *lines, rest = (rest + more).split(b"\n")
            yield from lines

    def _hashes(self) -> Iterator[bytes | array[int]]:
        """The hashes of the ids; equal ones are given at once."""
        if self._file is None:
            yield self._ids
            return
        for each in range(1, RANGES + 1):
            limits = [run[each : each + 2] for run in self._runs]
            yield b"".join(
                os.pread(self._file.fileno(), end - start, start) for start, end in limits
            )


async def make_items(
    run: StageRun, yield_to_loop: YieldToLoop, over: Callable[[], bool], *, by_user: bool = False
) -> ItemFile | None:
    """All items of a stage; None where the run was stopped before the last one was made.

    Raises PluginError where an item cannot be made or stored, or two items share an id.
    """
    folder = run.journal.parent
    folder.mkdir(parents=True, exist_ok=True)
    item_file = ItemFile(folder, run.context.stage.item, by_user=by_user)
    try:
        for item in _items(run):
            _keep(item_file, run, item)
            await yield_to_loop()
            if over():
                item_file.close()
                return None
        item_file.seal()
        _check_ids(item_file, run)
    except BaseException:
        item_file.close()
        raise
    return item_file


def _check_ids(item_file: ItemFile, run: StageRun) -> None:
    hashes = item_file.repeated()
    ids = (item_file.decode(text).id for _, text in item_file.take()) if hashes else ()
    times = Counter(name for name in ids if hash(name) in hashes)
    repeated = [name for name, count in times.items() if count > 1]
    if repeated:
        raise PluginError(
            f"stage {run.context.stage.name!r} gives the same id to several items",
            where=f"benchmark {run.context.benchmark}",
            found=f"{repeated[0]!r} {times[repeated[0]]} times",
            expected="a different id for each item of the stage",
        )


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


class JobText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item to work on, still as JSON. `again`: it failed before, and its questions are asked
    past the store. `replaces` is the checksum of the record that it has, if it has one."""

    key: str
    item: msgspec.Raw
    again: bool = False
    replaces: str = ""


@dataclass(frozen=True, kw_only=True)
class Job:
    """An item to work on; see `JobText`. Its answers are kept under the name `asker`, another one
    once it was recorded."""

    queue: Queue
    item: Item
    key: str
    again: bool
    asker: str


@dataclass(eq=False, kw_only=True)
class Queue(ABC):
    """Gives the items of a running stage, has the writer of their records, and hears of failures.

    `left` is at least the number of items that it will give. The items of one that is `alone` are
    worked one after the other, for the time being.
    """

    run: StageRun
    writer: JournalWriter
    left: int = field(init=False)
    alone: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        stage = self.run.context.stage
        self._decode = msgspec.json.Decoder(stage.item).decode
        self.decode_value = msgspec.json.Decoder(stage.value).decode
        """Reads a value from JSON as the type that the stage declares."""

    @abstractmethod
    async def next_text(self) -> JobText | None:
        """The next item to work on; None when no item is left."""

    async def next(self) -> Job | None:
        """The same, decoded."""
        text = await self.next_text()
        if text is None:
            return None
        item = self._decode(text.item)
        asker = f"{self.run.context.label} {text.key} {text.replaces}"
        return Job(queue=self, item=item, key=text.key, again=text.again, asker=asker)

    @abstractmethod
    def failed(self, failure: Failure) -> None:
        """Count an item that was recorded with a failure."""

    @abstractmethod
    def worked(self) -> None:
        """Hear that an item was worked, or that none is left."""


@dataclass(eq=False, kw_only=True)
class StageQueue(Queue):
    """The items of a running stage that are left.

    These have no record or broke; with `ask_unanswered` also those that lack a model's answer, and
    with `retry_failures` all that failed. `on_end` hears that the stage is done, or the reason why
    its task is given up: too many failures can no longer be avoided.
    """

    item_file: ItemFile
    recorded: dict[bytes, LackingRecord | None]
    watch: FailureWatch
    retry_failures: bool
    ask_unanswered: bool
    yield_to_loop: YieldToLoop
    on_end: Callable[[StageRun, HarnessError | None], None]
    exhausted: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.left = len(self.item_file)
        self._items = self.item_file.take()

    async def next_text(self) -> JobText | None:
        for key, item in self._items:
            self.left -= 1
            if key not in self.recorded:
                return JobText(key=key.hex(), item=msgspec.Raw(item))
            lacking = self.recorded.pop(key)
            if lacking is not None and self._asks_again(lacking):
                return JobText(
                    key=key.hex(),
                    item=msgspec.Raw(item),
                    again=self.retry_failures and lacking.failed,
                    replaces=lacking.checksum,
                )
            progress = self.run.progress
            progress.resumed += 1
            progress.done += 1
            if lacking is not None and lacking.failed:
                progress.failures[lacking.cause] += 1
                self.watch.failed(lacking.type, lacking.cause)
            await self.yield_to_loop()
        if not self.exhausted:
            self.exhausted = True
            # The records left belong to items that no longer exist: an earlier stage has changed.
            self.writer.drop(self.run.context.key, self.recorded)
        return None

    def failed(self, failure: Failure) -> None:
        self.count_failure(tag_of(failure), failure.cause, failure.detail)

    def count_failure(self, tag: str, cause: str, detail: str) -> None:
        """Count a failure by its tag and cause."""
        self.watch.failed(tag, cause, detail)
        if self.watch.hopeless():
            self.on_end(self.run, self.watch.error(self.run.context.label))

    def worked(self) -> None:
        """End the stage if all its items are done."""
        progress = self.run.progress
        whole = self.exhausted and progress.done == progress.total and not progress.in_flight
        if whole and self.run.state is State.RUNNING:
            self.close()
            label = self.run.context.label
            self.on_end(self.run, self.watch.error(label) if self.watch.too_many() else None)

    def close(self) -> None:
        """Free the items and close the journal."""
        self.item_file.close()
        self.writer.close()

    def _asks_again(self, lacking: LackingRecord) -> bool:
        unanswered = self.ask_unanswered and lacking.unanswered
        return unanswered or lacking.type == BROKEN or (self.retry_failures and lacking.failed)
