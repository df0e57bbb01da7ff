"""A journal gives back what a list of its lines says, however it is used and disturbed."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from builders.machines import run_machine
from builders.runs import Question, make_line
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.base.errors import DataError, StorageError
from harness.base.hashing import stable_int
from harness.contracts.outcomes import Unreadable
from harness.contracts.records import Done, JournalLine
from harness.runs import journal
from harness.runs.journal import (
    Head,
    JournalIndex,
    JournalRecords,
    JournalWriter,
    check_number,
    has_value,
    journal_parts,
    next_part,
    open_journal,
    part_path,
    recorded,
    scan,
)

STAGES = ("5" * 32, "6" * 32)
DROPPED, FAILED = "dropped", "schema"
NUMBERS = st.integers(0, 7)
VALUES = st.sampled_from(["a", "b", "c", FAILED])
TAILS = st.sampled_from([
    b'{"key":"00"', b"x" * 70_000, b"\x00" * 70_000 + b"\n", b'{"key":"00", "torn\n',
    b'\xff\xfe"\n',
])  # fmt: skip


class Written(msgspec.Struct, frozen=True):
    """A line of the model."""

    number: int
    value: str
    stage: str = STAGES[0]


def user(number: int) -> str:
    return f"u{number % 2}"


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


class Journal(RuleBasedStateMachine):
    """Up to two processes at a time append; `files` has the lines of each file that are on disk."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "task" / "2-verify.jsonl"
        self.files: dict[int, list[Written]] = {}
        self.torn: dict[int, bytes] = {}
        self.writers: dict[int, JournalWriter] = {}
        self.waiting: dict[int, list[Written]] = {}
        self.earlier: list[tuple[JournalRecords[Any, Any], list[Any]]] = []

    @initialize(large=st.sampled_from([1, 4096]), cluster=st.booleans())
    def setting(self, large: int, cluster: bool) -> None:
        """Where there are workers, and how many records are sorted before they are decoded."""
        journal._LARGE, self.cluster = large, cluster

    def teardown(self) -> None:
        for number in list(self.writers):
            self.close(number)
        self.reads()
        journal._LARGE = 4096
        self.folder.cleanup()

    def file(self, number: int) -> Path:
        return part_path(self.path, number)

    def _opened(self, number: int, writer: JournalWriter) -> None:
        self.files.setdefault(number, [])
        self.writers[number], self.waiting[number] = writer, []

    def _any(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.writers)))

    def tear(self, at: int, tail: bytes) -> None:
        if at in self.files and not self.torn.get(at):
            with self.file(at).open("ab") as file:
                file.write(tail)
            self.torn[at] = tail

    @precondition(lambda self: not self.writers)
    @rule(tail=TAILS)
    def a_process_that_writes_alone_begins(self, tail: bytes) -> None:
        """After another was killed, whose last line is torn: cut where it is appended to."""
        number = max(self.files, default=0)
        self.tear(number, tail)
        number = number + 1 if number else 0
        kept = {one: self.file(one).read_bytes() for one in self.files if one != number}
        writer = open_journal(self.path)
        assert writer.path == self.file(number)
        if number == 0:
            self.torn.pop(0, None)
        self._opened(number, writer)
        assert {one: self.file(one).read_bytes() for one in kept} == kept

    @precondition(lambda self: self.cluster and len(self.writers) < 2)
    @rule(further=st.integers(0, 2))
    def a_worker_begins_a_part(self, further: int) -> None:
        number = max(self.files, default=0) + 1
        assert next_part(self.path) == number
        self._opened(number + further, JournalWriter(self.file(number + further), new=True))

    @precondition(lambda self: self.files)
    @rule(data=st.data())
    def a_part_that_exists_is_refused(self, data: st.DataObject) -> None:
        file = self.file(data.draw(st.sampled_from(sorted(self.files))))
        before = file.read_bytes()
        with pytest.raises(StorageError, match="another process wrote this part"):
            JournalWriter(file, new=True)
        assert file.read_bytes() == before

    @precondition(lambda self: self.writers)
    @rule(data=st.data(), number=NUMBERS, value=VALUES, stage=st.sampled_from(STAGES))
    def append(self, data: st.DataObject, number: int, value: str, stage: str) -> None:
        at = self._any(data)
        outcome = Unreadable(value) if value == FAILED else Done(value)
        item = Question(id=str(number), user=user(number))
        self.writers[at].append(make_line(number, item, outcome, stage=stage))
        self.wrote(at, [Written(number, value, stage)])

    @precondition(lambda self: self.writers)
    @rule(data=st.data(), value=st.sampled_from([float("nan"), object(), "\ud800"]))
    def what_json_lacks_is_refused(self, data: st.DataObject, value: Any) -> None:
        with pytest.raises(ValueError, match="record '9' cannot be written"):
            self.writers[self._any(data)].append(
                make_line(9, Question(id="9", user="u"), Done(value), stage=STAGES[0])
            )

    @precondition(lambda self: self.writers)
    @rule(data=st.data(), numbers=st.sets(NUMBERS, min_size=1), stage=st.sampled_from(STAGES))
    def drop(self, data: st.DataObject, numbers: set[int], stage: str) -> None:
        at = self._any(data)
        self.writers[at].drop(stage, [key(number) for number in sorted(numbers)])
        self.wrote(at, [Written(number, DROPPED, stage) for number in sorted(numbers)])

    def wrote(self, at: int, lines: list[Written]) -> None:
        self.waiting[at] += lines
        many = len(self.waiting[at]) // journal._ROWS * journal._ROWS
        self.files[at] += self.waiting[at][:many]
        del self.waiting[at][:many]

    @precondition(lambda self: self.writers)
    @rule(data=st.data())
    def flush(self, data: st.DataObject) -> None:
        at = self._any(data)
        self.writers[at].flush()
        self.files[at] += self.waiting[at]
        self.waiting[at] = []

    @precondition(lambda self: self.writers)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.close(self._any(data))

    def close(self, at: int) -> None:
        writer = self.writers.pop(at)
        writer.close()
        writer.close()
        self.files[at] += self.waiting.pop(at)
        if at and not self.files[at]:
            del self.files[at]  # a part without a line is removed
        with pytest.raises(StorageError, match="the journal is closed"):
            writer.drop(STAGES[0], [key(1)])

    @precondition(lambda self: self.writers)
    @rule(data=st.data(), share=st.floats(0, 1))
    def kill(self, data: st.DataObject, share: float) -> None:
        """What was not flushed is lost, but for a part of the write that was under way."""
        at = self._any(data)
        file, waiting = self.file(at), self.waiting.pop(at)
        before = file.read_bytes()
        self.writers.pop(at).close()
        rest = file.read_bytes()[len(before) :] if file.exists() else b""
        rest = rest[: int(share * len(rest))]
        file.write_bytes(before + rest)
        self.files[at] += waiting[: rest.count(b"\n")]
        self.torn[at] = rest[rest.rfind(b"\n") + 1 :]

    @precondition(lambda self: self.files.keys() - self.writers.keys())
    @rule(data=st.data(), tail=TAILS)
    def a_crash_tears_the_end(self, data: st.DataObject, tail: bytes) -> None:
        at = data.draw(st.sampled_from(sorted(self.files.keys() - self.writers.keys())))
        self.tear(at, tail)

    @precondition(lambda self: any(self.files.values()))
    @rule(data=st.data(), share=st.floats(0, 0.999), bit=st.integers(0, 7))
    def a_byte_is_flipped(self, data: st.DataObject, share: float, bit: int) -> None:
        """Before whole lines it is an error that names its place; at an end the line is torn."""
        at = data.draw(st.sampled_from(sorted(n for n, lines in self.files.items() if lines)))
        line = data.draw(st.integers(0, len(self.files[at]) - 1))
        whole = self.file(at).read_bytes()
        lines = whole.splitlines(keepends=True)
        flipped = bytearray(lines[line])
        flipped[int(share * (len(flipped) - 1))] ^= 1 << bit
        changed = [*lines[:line], bytes(flipped), *lines[line + 1 :]]
        self.file(at).write_bytes(b"".join(changed))
        if line + 1 < len(self.files[at]) or self.torn.get(at, b"").endswith(b"\n"):
            for read in (recorded, JournalIndex):
                with pytest.raises(DataError, match="damaged record") as caught:
                    read(self.path, STAGES[0])
                assert caught.value.where == f"{self.file(at)}:{line + 1}"
        else:
            lost, (earlier, self.earlier) = self.files[at].pop(), (self.earlier, [])
            self.reads()
            self.earlier = earlier
            if at == 0:  # a finished stage has no such end, as whoever writes on cuts it off
                with pytest.raises(DataError, match="damaged record"):
                    JournalIndex(self.path, STAGES[0], finished=True)
            self.files[at].append(lost)
        self.file(at).write_bytes(whole)

    @rule()
    def an_index_is_made(self) -> None:
        found = JournalRecords(self.path, STAGES[0], JournalLine[Question, Any])
        self.earlier = [(found, list(found))]

    def current(self, stage: str) -> dict[int, str]:
        """What the list says: the last line of each key, unless it drops."""
        last = {
            one.number: one.value
            for _, lines in sorted(self.files.items())
            for one in lines
            if one.stage == stage
        }
        return {number: value for number, value in last.items() if value != DROPPED}

    @invariant()
    def reads(self) -> None:
        assert journal_parts(self.path) == [self.file(number) for number in sorted(self.files)]
        for stage in STAGES:
            current = self.current(stage)
            values = {number: value for number, value in current.items() if value != FAILED}
            found = recorded(self.path, stage)
            assert {k: one and (one.failed, one.cause) for k, one in found.items()} == {
                key(number): None if number in values else (True, FAILED) for number in current
            }
            assert has_value(self.path, stage) == bool(values)
            order = sorted(current, key=lambda number: (stable_int(user(number)), str(number)))
            index = JournalIndex(self.path, stage, items=len(current))
            records = JournalRecords(self.path, stage, JournalLine[Question, Any], index=index)
            assert len(records) == len(order)
            assert [
                (one.user, one.id, getattr(one.outcome, "value", FAILED)) for one in records
            ] == [(user(number), str(number), current[number]) for number in order]
            places = list(reversed(range(len(records))))
            assert sorted(one.id for one in records.at(places)) == sorted(map(str, current))
            groups = [(name, [one.id for one in each]) for name, each in records.by_user()]
            users = dict.fromkeys(map(user, order))
            assert groups == [(u, [str(n) for n in order if user(n) == u]) for u in users]
            assert [(item.id, value) for item, value in records.with_items(Question).values()] == [
                (str(number), values[number]) for number in order if number in values
            ]
            wanted = JournalIndex(self.path, stage, wanted=lambda head: head.user == "u1")
            assert len(wanted) == sum(user(number) == "u1" for number in current)
        with pytest.raises(DataError, match="the journal lacks records"):
            check_number(self.path, 1, 2)
        lines = [one.number for _, lines in sorted(self.files.items()) for one in lines]
        assert [int(head.key, 16) for _, _, head in scan(self.path, Head)] == lines
        for records, then in self.earlier:
            assert list(records) == then


def test_a_journal_is_read_back_as_the_list_of_its_lines() -> None:
    run_machine(Journal, examples=40, steps=25)
