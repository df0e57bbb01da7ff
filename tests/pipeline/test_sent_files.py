"""Parts of journals that are sent to the process that writes them."""

import asyncio

import pytest
from builders.disks import room_for
from builders.runs import make_line

from harness.base.errors import StorageError
from harness.contracts.records import Done
from harness.pipeline.executors.sent_files import ReceivedFiles, SentFile
from harness.runs.journal import JournalWriter, recorded
from harness.runs.journal_parts import journal_parts, part_path

KEY = "5" * 32


class Wire:
    """The way from a worker to the receiver: `messages` counts what went over it."""

    def __init__(self, path, received=None):
        self.path = path
        self.received = received or ReceivedFiles()
        self.messages = 0
        self.passes = asyncio.Event()
        self.passes.set()

    async def send(self, place, lines):
        self.messages += 1
        await self.passes.wait()
        return self.received.write(self.path, place, lines)

    async def close(self):
        return self.received.close(self.path)

    def writer(self):
        sent = SentFile(send=self.send, close=self.close)
        return sent, JournalWriter(self.path, sink=sent)


def line(number):
    return make_line(number, {"id": str(number), "user": "u"}, Done(number), stage=KEY)


def numbers(path):
    return sorted(int.from_bytes(key, "big") for key in recorded(path, KEY))


async def test_lines_are_on_disk_once_they_are_acknowledged_and_soon_without_being_asked_for(
    tmp_path,
):
    path = tmp_path / "task" / "1-a.jsonl"
    sent, writer = Wire(part_path(path, 3)).writer()
    writer.append(line(1))
    writer.flush()
    assert not path.parent.exists()
    await sent.acknowledged()
    assert numbers(path) == [1]
    writer.append(line(2))
    await asyncio.sleep(0.3)
    assert numbers(path) == [1, 2]
    writer.append(line(3))
    writer.close()
    await sent.acknowledged()
    assert numbers(path) == [1, 2, 3]
    assert journal_parts(path) == [part_path(path, 3)]
    with pytest.raises(StorageError, match="closed"):
        writer.append(line(4))


async def test_a_part_without_a_line_is_no_file(tmp_path):
    sent, writer = Wire(part_path(tmp_path / "1-a.jsonl", 1)).writer()
    writer.close()
    writer.close()
    await sent.acknowledged()
    assert list(tmp_path.iterdir()) == []


async def test_what_is_written_while_a_message_is_on_its_way_goes_with_the_next(tmp_path):
    path = tmp_path / "1-a.jsonl"
    wire = Wire(part_path(path, 1))
    wire.passes.clear()
    sent, writer = wire.writer()
    for number in range(1000):
        writer.append(line(number))
        await asyncio.sleep(0)
    writer.flush()
    waiting = asyncio.create_task(sent.acknowledged())
    await asyncio.sleep(0.01)
    assert not waiting.done() and numbers(path) == []
    wire.passes.set()
    await waiting
    assert numbers(path) == list(range(1000))
    assert wire.messages == 2


async def test_a_disk_that_is_full_is_an_error_of_every_later_call(tmp_path):
    path = tmp_path / "1-a.jsonl"
    sent, writer = Wire(part_path(path, 1)).writer()
    writer.append(line(1))
    writer.flush()
    await sent.acknowledged()
    sound = part_path(path, 1).read_bytes()
    with room_for(len(sound) + 20):
        writer.append(line(2))
        writer.flush()
        with pytest.raises(StorageError, match="File too large"):
            await sent.acknowledged()
    assert part_path(path, 1).read_bytes() == sound
    for call in (lambda: writer.append(line(3)), writer.flush, writer.close):
        with pytest.raises(StorageError, match="File too large"):
            call()
    assert numbers(path) == [1]


def test_a_message_that_comes_twice_is_written_once_and_a_gap_is_an_error(tmp_path):
    received, path = ReceivedFiles(), tmp_path / "1-a.0001.jsonl"
    assert received.write(path, 0, b"one\n") is None
    assert received.write(path, 0, b"one\n") is None
    assert received.write(path, 4, b"two\n") is None
    assert "records were lost" in str(received.write(path, 12, b"four\n"))
    assert path.read_bytes() == b"one\ntwo\n"
    assert received.close(path) is None
    assert received.close(path) is None


def test_a_worker_that_was_given_up_writes_to_its_own_part_only(tmp_path):
    """Whether this session's receiver still takes it, or that of a session that is over."""
    path = tmp_path / "1-a.jsonl"
    old, new = ReceivedFiles(), ReceivedFiles()
    assert old.write(part_path(path, 1), 0, b"one\n") is None
    assert new.write(part_path(path, 2), 0, b"mine\n") is None
    assert "another process wrote this part" in str(old.write(part_path(path, 2), 0, b"late\n"))
    assert "another process wrote this part" in str(new.write(part_path(path, 1), 4, b"late\n"))
    assert old.write(part_path(path, 1), 4, b"late\n") is None
    assert [part.read_bytes() for part in journal_parts(path)] == [b"one\nlate\n", b"mine\n"]
