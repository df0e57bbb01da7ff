"""The shards of a stage: files of items, and what the attempts at them write.

Each attempt at a shard writes files of its own, to which nothing else appends, so a worker that is
cut off and lives on does no harm. They lie in a folder beside the stage's journal until the command
has collected them: `1-name.shards/7.items`, `7.1.jsonl` with records and `7.1.log` with answers of
the first attempt at the seventh shard, and so on.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from harness.calls.budget import Budget
from harness.calls.client import OwnAnswer, encoded
from harness.calls.store import Store
from harness.pipeline.executors.lanes import ROUND_SIZE
from harness.pipeline.item_queue import JobText, YieldToLoop
from harness.pipeline.memos import Memory
from harness.runs.atomic_files import storage_error
from harness.runs.journal import JournalWriter, LackingRecord, OutcomeHead, lines_of, open_journal
from harness.scoring.grouping import grouped

LARGEST = 10_000
"""The most items of a shard, so that its records are soon in the journal."""

PER_WORKER = 8
"""Shards of a stage for each worker, so that slow ones do not hold up fast ones."""

MOST_DEATHS = 3
"""Deaths of workers after which the items that were at work at each of them are worked alone."""

_PART = re.compile(r"(\d+)\.(\d+)\.jsonl")


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """Some items of a stage, in file `number`; attempts count from `first`.

    A shard in `rounds` has all its items in flight at once. The worker of one that is worked
    `alone` has no other in hand, since some item of it may end its worker. `share` is what it may
    use of the budget, or needs of it at least.
    """

    task: str
    stage: str
    number: int
    items: int
    first: int = 1
    rounds: bool = False
    alone: bool = False
    share: Budget = Budget()

    @property
    def exclusive(self) -> bool:
        """Whether its worker is to have no other shard in hand: one that ends gives back part of
        what this one needs."""
        return self.alone or self.share.cost is not None


class LogLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of an attempt's log: an answer, what an item wrote into a memo, or the key of an item
    that is begun, `alone` if no other one is at work.

    The log of attempt 0 has what attempts start from, beside their items: the stage's memos, and
    the answers that the items got in a shard whose share was spent.
    """

    answer: OwnAnswer | None = None
    memo: tuple[str, str, dict[str, str]] | None = None
    begun: str | None = None
    alone: bool = False


_read_item = msgspec.json.Decoder(JobText).decode
_read_log = msgspec.json.Decoder(LogLine).decode
_read_head = msgspec.json.Decoder(OutcomeHead).decode


class ShardFiles:
    """The files of the shards of a stage, by its journal."""

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self.folder = journal.with_suffix(".shards")

    @property
    def earlier(self) -> Path:
        """The log of the answers that earlier sessions got for items that are left."""
        return self.folder / "earlier.log"

    def items_of(self, number: int) -> Path:
        """The file of a shard's items."""
        return self.folder / f"{number}.items"

    def part(self, number: int, attempt: int) -> Path:
        """The file of an attempt's records."""
        return self.folder / f"{number}.{attempt}.jsonl"

    def log(self, number: int, attempt: int) -> Path:
        """The log of an attempt."""
        return self.folder / f"{number}.{attempt}.log"

    def attempts(self, number: int, first: int = 1) -> int:
        """The number of attempts at a shard so far, of which `first - 1` are known."""
        while self.part(number, first).exists():
            first += 1
        return first - 1

    def write(self, number: int, texts: Iterable[JobText], start: Iterable[LogLine]) -> None:
        """Write the items of a shard, and what attempts at it start from."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise storage_error(self.folder, error) from error
        for path, lines in (self.log(number, 0), start), (self.items_of(number), texts):
            with JournalWriter(path, new=True, kept=True) as writer:
                for line in lines:
                    writer.note(line)

    def items(self, number: int) -> Iterator[JobText]:
        """The items of a shard."""
        return (text for _, text in lines_of(self.items_of(number), _read_item))

    def answers(self, number: int, attempts: int) -> Iterator[OwnAnswer]:
        """The answers that the items of a shard started from, and those that attempts got."""
        for attempt in range(attempts + 1):
            for line in log_lines(self.log(number, attempt)):
                if line.answer is not None:
                    yield line.answer

    def forget(self, number: int, attempts: int) -> None:
        """Remove the files of a shard; those left by a kill meanwhile are of the first attempts,
        whose records count."""
        files = [self.items_of(number)]
        for attempt in range(attempts, -1, -1):
            files += [self.part(number, attempt), self.log(number, attempt)]
        for file in files:
            file.unlink(missing_ok=True)

    def forget_all(self) -> None:
        """Remove the folder: an attempt that lives on elsewhere finds no items any more."""
        shutil.rmtree(self.folder, ignore_errors=True)


def memo_lines(memory: Memory, prefix: str) -> Iterator[LogLine]:
    """The lines with all entries of the memos whose names begin so, by who wrote them."""
    for name, entries in memory.copy(prefix).items():
        written = grouped((one.writer or "", (key, one.value)) for key, one in entries.items())
        for writer, values in written.items():
            yield LogLine(memo=(name, writer, dict(values)))


def log_lines(path: Path) -> Iterator[LogLine]:
    """The lines of a log."""
    return (line for _, line in lines_of(path, _read_log))


def shard_size(items: int, workers: int, *, width: int, rounds: bool) -> int:
    """The items of a shard, of so many in all and workers that work `width` at once.

    A worker has two shards in hand, so that one fills its lanes as the other one drains: together
    they have as many items as are worked at once, if there are so many. A stage in rounds opens
    engines by turns, so each worker gets its items at once, as many as it may have in flight.

    >>> [shard_size(items, 2, width=40, rounds=False) for items in (20, 100, 100_000)]
    [5, 20, 6250]
    """
    if rounds:
        return min(ROUND_SIZE, -(-items // workers))
    filling = min(-(-width // 2), -(-items // (2 * workers)))
    return min(LARGEST, max(1, filling, -(-items // (PER_WORKER * workers))))


class Collector:
    """Takes over what attempts wrote: records into the journal, answers and memos into stores.

    Answers of items without a whole record stay among the run's `own`, for a later session; those
    that ended by themselves go to the `store` of other runs.
    """

    def __init__(self, *, own: Store, store: Store | None) -> None:
        self.own = own
        self.memory = Memory(store or own, own)
        self._store = store

    async def collect(
        self,
        files: ShardFiles,
        number: int,
        attempts: int,
        writer: JournalWriter,
        yield_to_loop: YieldToLoop,
    ) -> set[str]:
        """Take over a shard, and remove its files; the keys of its items that have a record.

        The first record of a key counts.
        """
        whole: dict[str, bool] = {}
        for attempt in range(1, attempts + 1):
            for line, head in lines_of(files.part(number, attempt), _read_head):
                if head.key not in whole:
                    done = head.outcome is not None and head.outcome.type == "done"
                    whole[head.key] = done and not head.unanswered
                    writer.copy(line)
                await yield_to_loop()
        for attempt in range(1, attempts + 1):
            for one in log_lines(files.log(number, attempt)):
                self._take(one, whole)
                await yield_to_loop()
        writer.sync()
        self.own.flush()
        files.forget(number, attempts)
        return set(whole)

    def _take(self, line: LogLine, whole: Mapping[str, bool]) -> None:
        if line.memo is not None:
            name, asker, values = line.memo
            self.memory.keep(name, asker, values)
        if line.answer is None:
            return
        answer = line.answer.answer
        key, reply = bytes.fromhex(answer.key), answer.reply
        if not whole.get(item_of(line.answer.asker)):
            self.own.put(key, encoded(line.answer))
        lasts = reply is not None and reply.finish == "stop"
        if self._store is not None and lasts and self._store.get(key) is None:
            self._store.put(key, msgspec.json.encode(reply))


def item_of(asker: str) -> str:
    """The key of the item that asked; see `Job.asker`."""
    return asker.rsplit(" ", 2)[-2]


async def collect_left_behind(
    run_folder: Path,
    open_stores: Callable[[], AbstractContextManager[tuple[Store, Store | None]]],
    yield_to_loop: YieldToLoop,
) -> None:
    """Take over what workers of a session that was killed left in a run folder.

    Its own answers and the store of calls are opened only if anything was left.
    """
    folders = left_behind(run_folder)
    if not folders:
        return
    with open_stores() as (own, store):
        collector = Collector(own=own, store=store)
        for folder in folders:
            files = ShardFiles(folder.with_suffix(".jsonl"))
            found: dict[int, int] = {}
            for path in folder.iterdir():
                if part := _PART.fullmatch(path.name):
                    number, attempt = map(int, part.groups())
                    found[number] = max(attempt, found.get(number, 0))
            with open_journal(files.journal) as writer:
                for number, attempts in sorted(found.items()):
                    await collector.collect(files, number, attempts, writer, yield_to_loop)
            files.forget_all()


def left_behind(run_folder: Path) -> list[Path]:
    """The folders of shards that a session has not collected."""
    return sorted(run_folder.glob("*/*.shards"))


def write_earlier(
    files: ShardFiles, label: str, own: Store, recorded: Mapping[bytes, LackingRecord | None]
) -> None:
    """Write the log of what earlier sessions were answered for items that lack a whole record."""
    decode = msgspec.json.Decoder(OwnAnswer).decode
    files.folder.mkdir(exist_ok=True)
    with JournalWriter(files.earlier, new=True) as writer:
        for value in own.values():
            try:
                answer = decode(value)
            except msgspec.DecodeError:
                continue  # of another version
            stage, key, _ = answer.asker.rsplit(" ", 2)
            if stage == label and recorded.get(bytes.fromhex(key), True) is not None:
                writer.note(LogLine(answer=answer))
