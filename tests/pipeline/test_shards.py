from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from harness.base.errors import StorageError
from harness.calls.client import Answer, OwnAnswer
from harness.calls.store import Store
from harness.contracts.model import Reply
from harness.contracts.outcomes import Broken, CallFailed
from harness.contracts.records import CallRecord, Done, JournalLine
from harness.contracts.stage import Item
from harness.pipeline.executors.shards import (
    LARGEST,
    Collector,
    LogLine,
    ShardFiles,
    collect_left_behind,
    log_lines,
    shard_size,
    write_earlier,
)
from harness.pipeline.item_queue import JobText
from harness.pipeline.memos import Memory
from harness.runs.journal import JournalWriter, recorded

STAGE = "5" * 32


def key(number):
    return f"{number:032x}"


def line(number, outcome, *calls):
    return JournalLine(
        key=key(number), stage=STAGE, user="u", id=str(number),
        item=Item(id=str(number), user="u"), outcome=outcome, calls=calls, judged=msgspec.UNSET,
    )  # fmt: skip


def answer(call, text, *, asker, finish="stop"):
    reply = Reply(text=text, finish=finish)
    own = Answer(reply=reply, key=key(call), source="model", attempts=1)
    return LogLine(answer=OwnAnswer(session=1, asker=asker, answer=own))


async def now():
    await asyncio.sleep(0)


@pytest.fixture
def stores(tmp_path):
    own, store = Store.open(tmp_path / "own.sqlite"), Store.open(tmp_path / "store.sqlite")
    yield own, store
    own.close()
    store.close()


@pytest.fixture
def files(tmp_path):
    files = ShardFiles(tmp_path / "run" / "task" / "1-say.jsonl")
    files.folder.mkdir(parents=True)
    return files


def write(path, *lines):
    with JournalWriter(path, new=True) as writer:
        for one in lines:
            writer.append(one) if isinstance(one, JournalLine) else writer.note(one)


def collector(stores):
    own, store = stores
    return Collector(own=own, store=store)


@pytest.mark.parametrize(
    ("items", "workers", "width", "rounds", "size"),
    [
        (1, 4, 100, False, 1),
        (200, 1, 96, False, 48),  # two in hand fill the lanes
        (20, 2, 96, False, 5),  # and no worker has more than its half
        (1_000, 2, 96, False, 63),  # eight a worker
        (5_000_000, 2, 96, False, LARGEST),
        (101, 2, 96, True, 51),
        (5_000_000, 2, 96, True, 100_000),
    ],
)
def test_the_size_of_a_shard(items, workers, width, rounds, size):
    assert shard_size(items, workers, width=width, rounds=rounds) == size


def test_items_and_memos_are_read_as_they_were_written(files):
    texts = [
        JobText(key=key(1), item=msgspec.Raw(b'{"id":"1","user":"\xc3\xa4"}')),
        JobText(key=key(2), item=msgspec.Raw(b'{"id":"2","user":"u"}'), again=True, replaces="ab"),
    ]
    files.write(7, texts, ())
    found = list(files.items(7))
    told = [(one.key, bytes(one.item), one.again, one.replaces) for one in found]
    assert told == [(one.key, bytes(one.item), one.again, one.replaces) for one in texts]
    assert files.attempts(7) == 0
    write(files.part(7, 1), line(1, Done("a")))
    write(files.part(7, 2), line(2, Done("a")))
    assert files.attempts(7) == files.attempts(7, 2) == 2
    files.forget(7, 2)
    assert list(files.folder.iterdir()) == []


async def test_the_first_record_of_a_key_counts_and_only_whole_lines(files, stores):
    write(files.part(3, 1), line(1, Done("first")))
    with files.part(3, 1).open("ab") as torn:  # as a kill leaves it
        torn.write(b'{"key":"00')
    write(files.part(3, 2), line(1, Done("second")), line(2, Broken("KeyError", "x")))
    with JournalWriter(files.journal) as writer:
        found = await collector(stores).collect(files, 3, 2, writer, now)
    assert found == {key(1), key(2)}
    text = files.journal.read_text()
    assert text.count("\n") == 2 and '"first"' in text and '"second"' not in text
    held = recorded(files.journal, STAGE)
    assert held[bytes.fromhex(key(1))] is None
    assert held[bytes.fromhex(key(2))].cause == "KeyError"
    assert list(files.folder.iterdir()) == []


async def test_files_are_removed_once_all_that_is_in_them_is_on_disk(files, stores, monkeypatch):
    write(files.part(1, 1), line(1, Broken("KeyError", "x")))
    write(files.log(1, 1), answer(101, "in flight", asker=f"t/say {key(2)} "))
    found = []

    def forget(self, number, attempts):
        other = Store.open(stores[0].path)
        found.append((files.journal.read_text().count("\n"), other.get(bytes.fromhex(key(101)))))
        other.close()

    monkeypatch.setattr(ShardFiles, "forget", forget)
    with JournalWriter(files.journal) as writer:
        await collector(stores).collect(files, 1, 1, writer, now)
    [(lines, kept)] = found
    assert lines == 1 and kept is not None


async def test_what_a_kill_leaves_of_a_shard_that_was_collected_is_of_the_first_attempts(
    files, stores, tmp_path, monkeypatch
):
    """One that was cut off and lived on recorded the same item."""
    files.write(3, [], ())
    for attempt, value in (1, "first"), (2, "second"):
        write(files.part(3, attempt), line(1, Done(value)))
        write(files.log(3, attempt), LogLine(begun=key(1)))
    unlink, removed = Path.unlink, []

    def killed(path, **given):
        if len(removed) == 3:
            raise KeyboardInterrupt
        removed.append(path)
        unlink(path, **given)

    monkeypatch.setattr(Path, "unlink", killed)
    with JournalWriter(files.journal) as writer, pytest.raises(KeyboardInterrupt):
        await collector(stores).collect(files, 3, 2, writer, now)
    monkeypatch.undo()
    await collect_left_behind(tmp_path / "run", lambda: nullcontext(stores), now)
    assert '"second"' not in files.journal.read_text() and not files.folder.exists()


def test_a_shard_that_cannot_be_written_says_where(files):
    files.folder.rmdir()
    files.folder.write_text("")
    with pytest.raises(StorageError) as caught:
        files.write(3, [], ())
    assert caught.value.where == str(files.folder)


async def test_answers_stay_with_the_run_as_long_as_their_item_lacks_something(files, stores):
    own, store = stores
    failed = CallRecord(
        role="candidate", prompt="say", messages=(), key=key(8), source="model", seconds=0.0,
        failure=CallFailed("timeout", "late"),
    )  # fmt: skip
    write(
        files.part(1, 1), line(1, Done("a")), line(2, Broken("KeyError", "x")),
        line(4, Done("half"), failed),
    )  # fmt: skip
    write(
        files.log(1, 1),
        answer(101, "whole", asker=f"t/say {key(1)} "),
        answer(102, "broken", asker=f"t/say {key(2)} "),
        answer(103, "in flight", asker=f"t/say {key(3)} cafe"),
        answer(104, "unanswered", asker=f"t/say {key(4)} "),
        answer(105, "cut", asker=f"t/say {key(1)} ", finish="length"),
        LogLine(memo=("taxonomy:names", f"t/say {key(1)} ", {"rye": "1"})),
        LogLine(begun=key(9)),
    )
    store.put(bytes.fromhex(key(102)), b"as it was")
    with JournalWriter(files.journal) as writer:
        await collector(stores).collect(files, 1, 1, writer, now)
    kept = {number for number in range(101, 106) if own.get(bytes.fromhex(key(number)))}
    assert kept == {102, 103, 104}
    shared = {number for number in range(101, 106) if store.get(bytes.fromhex(key(number)))}
    assert shared == {101, 102, 103, 104}  # what ended by itself
    assert store.get(bytes.fromhex(key(102))) == b"as it was"
    assert Memory(store)("taxonomy:names", "other").known(["rye"]) == {"rye": "1"}

    # A later session hears of those whose item has no whole record.
    lacking = recorded(files.journal, STAGE)
    write_earlier(files, "t/say", own, lacking)
    found = [one.answer.answer.reply.text for one in log_lines(files.earlier)]
    assert found == ["broken", "in flight", "unanswered"]


async def test_what_a_killed_command_left_is_taken_over_once(files, stores, tmp_path):
    write(files.journal, line(1, Broken("KeyError", "x")))
    write(files.part(2, 1), line(1, Done("later")))
    write(files.part(10, 1), line(2, Done("b")))
    write(files.part(10, 2), line(2, Done("c")), line(3, Done("d")))
    write(files.log(10, 2), answer(101, "in flight", asker=f"task/say {key(4)} "))
    (files.folder / "10.items").write_text("")
    await collect_left_behind(tmp_path / "run", lambda: nullcontext(stores), now)
    assert not files.folder.exists()
    values = {}
    for text in files.journal.read_text().splitlines():
        one = msgspec.json.decode(text)
        values[int(one["key"], 16)] = one["outcome"].get("value")
    assert values == {1: "later", 2: "b", 3: "d"}  # the current record is the last
    assert stores[0].get(bytes.fromhex(key(101)))
    await collect_left_behind(tmp_path / "run", None, now)  # opens nothing where nothing was left
