import asyncio
import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from simulated.loop import Clock

from harness.base import clock
from harness.base.errors import StorageError
from harness.calls.store import (
    BATCH_SECONDS,
    PATIENCE_SECONDS,
    Store,
    default_path,
    file_system_type,
    is_network_type,
)


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def rows_on_disk(path: Path) -> int:
    with sqlite3.connect(path) as other:
        return other.execute("SELECT count(*) FROM replies").fetchone()[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "calls.sqlite"


def test_a_timer_lost_with_its_loop_does_not_stop_the_writing(path):
    store = Store.open(path)

    async def put_and_wait(number: int, seconds: float) -> None:
        store.put(key(number), b"x")
        await asyncio.sleep(seconds)

    asyncio.run(put_and_wait(1, 0))
    asyncio.run(put_and_wait(2, 0.3))
    assert rows_on_disk(path) == 2
    store.close()


def test_a_lock_of_another_process_is_waited_for_when_all_is_written(path, monkeypatch):
    store = Store.open(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(clock, "block", lambda seconds: other.execute("COMMIT"))
        store.put(key(1), b"x")
    assert rows_on_disk(path) == 1
    store.close()


async def test_a_lock_long_after_rows_were_written_is_waited_for_again(path, monkeypatch):
    moment = Clock()
    moment.now = 1.0
    monkeypatch.setattr(clock, "seconds", moment.seconds)
    store = Store.open(path)

    async def put_beside_a_lock(number: int) -> None:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            store.put(key(number), b"x")
            await asyncio.sleep(2 * BATCH_SECONDS)

    await put_beside_a_lock(1)
    store.flush()
    moment.now += 2 * PATIENCE_SECONDS
    await put_beside_a_lock(2)
    store.close()
    assert rows_on_disk(path) == 2


MANY = """
import sys
from contextlib import suppress
from pathlib import Path
from random import Random
from harness.calls.store import Store
store = Store.open(Path(sys.argv[1]))
first = int(sys.argv[2])
for number in range(first, first + 300):
    store.put(number.to_bytes(16, "big"), b"x")
print(store.memo_keep("taxonomy", {"jazz": sys.argv[2].encode()})["jazz"].decode())
store.close()
"""


def test_several_processes_share_one_file(path):
    shown = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", MANY, str(path)]
    writers = [subprocess.Popen([*command, first], **shown) for first in ("0", "300", "600")]
    answers = [writer.communicate(timeout=60) for writer in writers]
    assert [error for _, error in answers] == ["", "", ""]
    assert rows_on_disk(path) == 900
    assert len({answer for answer, _ in answers}) == 1


def filled(path: Path, rows: int = 500) -> None:
    store = Store.open(path)
    for number in range(rows):
        store.put(key(number), bytes(200))
    store.close()


def test_a_file_of_random_bytes_is_set_aside(path):
    path.parent.mkdir()
    path.write_bytes(bytes(range(256)) * 40)
    said = []
    store = Store.open(path, warn=said.append)
    store.put(key(1), b"x")
    store.close()
    assert rows_on_disk(path) == 1
    (kept,) = path.parent.glob("calls.sqlite.damaged-*")
    assert kept.read_bytes() == bytes(range(256)) * 40
    assert [str(path) in line and kept.name in line for line in said] == [True]


def damaged(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))


@pytest.mark.parametrize("by", ["a read", "a write"])
async def test_damage_met_while_running_costs_no_more_than_the_answers(path, by):
    filled(path)
    said = []
    store = Store.open(path, warn=said.append)
    if by == "a read":
        store.put(key(1000), b"x")
        damaged(path)
        assert store.get(key(499)) is None
    else:
        damaged(path)
        store.put(key(1000), b"x")
        assert store.get(key(1000)) == b"x"
    store.close()
    assert len(said) == 1
    assert rows_on_disk(path) == 1


def test_of_two_processes_one_sets_the_damaged_file_aside(path):
    filled(path)
    said = []
    first, second = Store.open(path, warn=said.append), Store.open(path, warn=said.append)
    damaged(path)
    assert first.get(key(499)) is None
    assert second.get(key(499)) is None
    first.put(key(1), b"one")
    assert second.get(key(1)) == b"one"
    first.close()
    second.close()
    assert len(list(path.parent.glob("calls.sqlite.damaged-*[0-9]"))) == 1
    assert len(said) == 1


def test_a_newer_format_is_an_error(path):
    Store.open(path).close()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 2")
    with pytest.raises(StorageError, match="format 2"):
        Store.open(path)


async def test_a_failed_write_is_raised_by_the_next_use(path):
    store = Store.open(path)
    store._connection.execute("PRAGMA max_page_count = 1")
    store.put(key(1), bytes(100_000))
    await asyncio.sleep(0.3)
    for use in (lambda: store.put(key(2), b""), lambda: store.get(key(2)), store.flush):
        with pytest.raises(StorageError, match="full"):
            use()
    with pytest.raises(StorageError):
        store.close()


def test_default_path_follows_the_environment(monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    assert default_path() == Path("/a/calls.sqlite")
    monkeypatch.delenv("HARNESS_CACHE")
    assert default_path() == Path("/b/harness/calls.sqlite")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/c")
    assert default_path() == Path("/c/.cache/harness/calls.sqlite")


def test_wal_is_used_on_a_local_disk_and_not_on_a_network(path, monkeypatch, tmp_path):
    def mode(file: Path) -> str:
        store = Store.open(file)
        store.put(key(1), b"x")
        found = store._connection.execute("PRAGMA journal_mode").fetchone()[0]
        store.close()
        return found

    table = tmp_path / "mountinfo"
    monkeypatch.setattr("harness.calls.store.MOUNT_TABLE", table)
    table.write_text("1 0 8:1 / / rw - ext4 /dev/sda rw\n")
    assert mode(path) == "wal"
    table.write_text("1 0 8:1 / / rw - nfs4 host:/x rw\n")
    assert mode(path) == "delete"
    assert mode(tmp_path / "other.sqlite") == "delete"


def test_a_folder_that_may_not_be_entered_is_a_storage_error(tmp_path, monkeypatch) -> None:
    def shut(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", shut)
    with pytest.raises(StorageError, match="cannot be entered") as caught:
        Store.open(tmp_path / "calls.sqlite")
    assert "Permission denied" in caught.value.found and "--store" in caught.value.hint


def test_a_flipped_bit_never_gives_another_value(path):
    store = Store.open(path)
    wanted = {}
    for number in range(40):
        wanted[key(number)] = b'{"text":"answer %d"}' % number
        store.put(key(number), wanted[key(number)])
    memos = {f"rye {number}": b"%d" % number for number in range(20)}
    store.memo_keep("names", memos)
    store.close()
    whole = path.read_bytes()
    draw = Random(7)
    said = []
    for _ in range(300):
        changed = bytearray(whole)
        changed[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
        with contextlib.suppress(StorageError):
            store = Store.open(path, warn=said.append)
            for name, value in wanted.items():
                assert store.get(name) in (value, None)
            assert store.memo_known("names", memos).items() <= memos.items()
            store.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    assert any("a row of the store" in text for text in said)


def test_a_damaged_memo_is_written_anew(path):
    store = Store.open(path)
    store.memo_keep("names", {"rye": b"1", "tea": b"2"})
    store.close()
    with sqlite3.connect(path) as other:
        other.execute("UPDATE memos SET value = ? WHERE key = 'rye'", (b"3",))
    said = []
    store = Store.open(path, warn=said.append)
    assert store.memo_known("names", ["rye", "tea"]) == {"tea": b"2"}
    assert said == [f"a row of the store {path} is damaged, and counts as no answer"]
    assert store.memo_keep("names", {"rye": b"1", "tea": b"9"}) == {"rye": b"1", "tea": b"2"}
    store.close()


def test_a_store_from_before_checksums_keeps_its_rows_and_gets_new_ones(path):
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as old:
        old.executescript(
            "CREATE TABLE replies (key BLOB PRIMARY KEY, value BLOB NOT NULL);"
            "CREATE TABLE memos (name TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,"
            " PRIMARY KEY (name, key));"
            "PRAGMA application_id = 0x48524E53; PRAGMA user_version = 1;"
        )
        old.execute("INSERT INTO replies VALUES (?, ?)", (key(1), b"one"))
        old.execute("INSERT INTO memos VALUES ('names', 'rye', ?)", (b"1",))
    store = Store.open(path)
    store.put(key(2), b"two")
    assert (store.get(key(1)), store.get(key(2))) == (b"one", b"two")
    assert store.memo_keep("names", {"rye": b"9", "tea": b"2"}) == {"rye": b"1", "tea": b"2"}
    store.close()
    with sqlite3.connect(path) as other:
        sums = other.execute("SELECT crc32 IS NULL FROM replies ORDER BY key").fetchall()
    assert sums == [(1,), (0,)]


TABLE = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:35 / /home rw,relatime shared:1 - nfs4 server:/home rw
41 40 254:1 / /home/local rw - xfs /dev/vdb rw
42 22 0:40 / /mnt/my\\040disk rw - fuse.sshfs me@host: rw
43 22 0:41 / /over rw - ext4 /dev/vdc rw
44 22 0:42 / /over rw - lustre x rw
45 22 0:43 / /homely rw - cifs //x/y rw
malformed line
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/etc/hosts", "ext4"),
        ("/home/me/.cache/calls.sqlite", "nfs4"),
        ("/home/local/x", "xfs"),
        ("/mnt/my disk/x", "fuse.sshfs"),
        ("/over/x", "lustre"),
        ("/home", "nfs4"),
    ],
)
def test_the_innermost_mount_decides(path, expected):
    assert file_system_type(Path(path), TABLE) == expected


def test_network_types():
    kinds = {"ext4": False, "overlay": False, "nfs": True, "fuse.sshfs": True, "fuseblk": False}
    assert {kind: is_network_type(kind) for kind in kinds} == kinds
    assert file_system_type(Path("/x"), "") is None
