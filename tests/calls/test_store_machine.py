"""A store answers as two dicts say: what is on disk, and what each user has yet to write."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from builders.loops import VirtualLoop
from builders.machines import run_machine
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from simulated.disk import Crash, Disk
from simulated.loop import Clock

from harness.base import clock
from harness.calls import store as store_module
from harness.calls.store import Store

USERS = st.integers(0, 1)
NUMBERS = st.integers(0, 9)
VALUES = st.binary(min_size=1, max_size=3)
BATCH = 4


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


class Drawn:
    """The chance of a disk: how a commit that crashes is left, and where its log is torn."""

    def __init__(self, how: str, share: float) -> None:
        self.how, self.share = how, share

    def choice(self, among: Any) -> str:
        assert self.how in among
        return self.how

    def randint(self, least: int, most: int) -> int:
        return least + int(self.share * (most - least))


class Stores(RuleBasedStateMachine):
    """Two processes, each with a store of the same file and its own queue; time is virtual."""

    def __init__(self) -> None:
        super().__init__()
        self.place = TemporaryDirectory()
        self.folder = Path(self.place.name) / "world"
        self.folder.mkdir()
        self.path = self.folder / "calls.sqlite"
        self.disk = Disk(self.folder, Path(self.place.name) / "copy", None)
        self.patch = pytest.MonkeyPatch()
        time = Clock()
        self.loop = time.loop = VirtualLoop()
        for name in ("seconds", "block"):
            self.patch.setattr(clock, name, getattr(time, name))
        self.patch.setattr(store_module, "BATCH_ROWS", BATCH)
        self.patch.setattr(store_module, "BUSY_SECONDS", 0.0)
        self.mounted = self.disk.mounted()
        self.mounted.__enter__()
        self.kept: dict[bytes, bytes] = {}
        self.memos: dict[str, bytes] = {}
        self.lock: sqlite3.Connection | None = None
        self.said: list[str] = []
        self.stores = [self.opened(), self.opened()]
        self.forget()

    def teardown(self) -> None:
        self.release_lock()
        for at in range(2):
            self.reopen(at)
        self.agrees()
        for store in self.stores:
            store.close()
        self.mounted.__exit__(None, None, None)
        self.patch.undo()
        self.loop.close()
        self.place.cleanup()

    def opened(self) -> Store:
        return Store.open(self.path, warn=self.said.append)

    def forget(self) -> None:
        self.queues: list[dict[bytes, bytes]] = [{}, {}]
        self.due: list[int] = []
        self.waits = [False, False]

    def written(self, at: int) -> None:
        self.kept |= self.queues[at]
        self.queues[at] = {}

    def within(self, work: Any, *given: Any) -> Any:
        """The result of a call within the running loop, which writes later."""

        async def called() -> Any:
            return work(*given)

        self.loop.now += 1e-6  # so little that no step of a machine lasts until a timer
        return self.loop.run_until_complete(called())

    @rule(at=USERS, number=NUMBERS, value=VALUES)
    def put(self, at: int, number: int, value: bytes) -> None:
        self.within(self.stores[at].put, key(number), value)
        self.queues[at][key(number)] = value
        if len(self.queues[at]) >= BATCH and not self.waits[at]:
            if self.lock is None:
                self.written(at)
            else:
                self.waits[at] = True
        if self.queues[at] and at not in self.due:
            self.due.append(at)

    @precondition(lambda self: self.lock is None)
    @rule(at=USERS, number=NUMBERS, value=VALUES, in_loop=st.booleans())
    def put_at_once(self, at: int, number: int, value: bytes, in_loop: bool) -> None:
        """By `flush`, or without a loop."""
        store = self.stores[at]
        if in_loop:
            self.within(store.put, key(number), value)
            self.within(store.flush)
        else:
            store.put(key(number), value)
        self.queues[at][key(number)] = value
        self.written(at)

    @rule()
    def a_while_passes(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(0.35))
        if self.lock is None:
            for at in self.due:
                self.waits[at] = self.waits[at] and not self.queues[at]
                self.written(at)
            self.due = []
        else:
            self.due = [at for at in self.due if self.queues[at]]
            for at in self.due:
                self.waits[at] = True

    @precondition(lambda self: self.lock is None)
    @rule(at=USERS)
    def flush(self, at: int) -> None:
        self.within(self.stores[at].flush)
        self.written(at)

    @precondition(lambda self: self.lock is None)
    @rule(at=USERS)
    def reopen(self, at: int) -> None:
        self.stores[at].close()
        self.stores[at].close()
        self.written(at)
        self.stores[at] = self.opened()
        self.due = [one for one in self.due if one != at]
        self.waits[at] = False

    @precondition(lambda self: self.lock is None)
    @rule()
    def another_process_locks(self) -> None:
        self.lock = sqlite3.connect(self.path, isolation_level=None)
        sqlite3.Connection.execute(self.lock, "BEGIN IMMEDIATE")

    @rule()
    def release_lock(self) -> None:
        if self.lock is not None:
            self.lock.close()
            self.lock = None

    @precondition(lambda self: self.lock is None)
    @rule(at=USERS, offered=st.dictionaries(st.sampled_from("xyz"), VALUES))
    def memo(self, at: int, offered: dict[str, bytes]) -> None:
        """The first one stands."""
        self.memos = {**offered, **self.memos}
        kept = self.within(self.stores[at].memo_keep, "names", offered)
        assert kept == {name: self.memos[name] for name in offered}

    @precondition(lambda self: self.lock is None)
    @rule(
        at=USERS, number=NUMBERS, value=VALUES, statement=st.integers(1, 3),
        how=st.sampled_from(["before", "after", "torn"]), share=st.floats(0, 1),
    )  # fmt: skip
    def the_machine_crashes_while_one_writes(  # noqa: PLR0917
        self, at: int, number: int, value: bytes, statement: int, how: str, share: float
    ) -> None:
        """At the start, at the rows or at the commit: only what is wholly committed is there."""
        self.disk.draw = Drawn(how, share)
        self.disk.begin(crash_at=statement)
        with pytest.raises(Crash):
            self.stores[at].put(key(number), value)
        self.queues[at][key(number)] = value
        if statement == 3 and how == "after":
            self.written(at)
        for store in self.stores:
            store._closed = True
            store._connection.close()
        shutil.rmtree(self.folder)
        self.disk.copy.rename(self.folder)
        self.disk.begin()
        self.stores = [self.opened(), self.opened()]
        self.forget()

    @precondition(lambda self: self.lock is None and self.kept)
    @rule(data=st.data())
    def a_row_is_damaged(self, data: st.DataObject) -> None:
        """It counts as no answer, and that is said."""
        damaged = data.draw(st.sampled_from(sorted(self.kept)))
        value = bytes([self.kept.pop(damaged)[0] ^ 1])
        with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
            sqlite3.Connection.execute(
                other, "UPDATE replies SET value = ? WHERE key = ?", (value, damaged)
            )
        self.said.clear()
        at = data.draw(USERS)
        assert self.stores[at].get(damaged) == self.queues[at].get(damaged)
        assert bool(self.said) == (damaged not in self.queues[at])
        self.put_at_once(at, int.from_bytes(damaged, "big"), b"again", True)

    @invariant()
    def agrees(self) -> None:
        for store, queue in zip(self.stores, self.queues, strict=True):
            found = {key(n): self.within(store.get, key(n)) for n in range(10)}
            right = {**self.kept, **queue}
            assert found == {key(n): right.get(key(n)) for n in range(10)}
            assert store.memo_known("names", "xyz") == self.memos
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as other:
            rows = sqlite3.Connection.execute(other, "SELECT key, value FROM replies").fetchall()
        assert dict(rows) == self.kept


def test_a_store_answers_as_two_dicts() -> None:
    run_machine(Stores, examples=40, steps=25)
