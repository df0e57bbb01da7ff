"""What is told of folders, the store and the hub."""

import shutil
import sqlite3
from types import SimpleNamespace

import pytest
from harness.cli.doctor_checks import folders, hub
from harness.cli.doctor_checks.store import store

from harness.calls import network_fs as mounts
from harness.calls.store import Store
from harness.contracts.finding import bad, doubtful, good
from harness.testing.faults import status
from harness.testing.server import FaultyServer

OPTION = "--output_path DIR"
DAMAGED = (
    "the next run sets the damaged file aside, creates a new one and repeats the calls it needs"
)


def space(monkeypatch, gib):
    free = int(gib * 1024**3)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))


def mount(monkeypatch, tmp_path, kind):
    table = tmp_path / "mountinfo"
    table.write_text(f"36 35 0:39 / {tmp_path.resolve()} rw - {kind} server:/export rw\n")
    monkeypatch.setattr(mounts, "MOUNT_TABLE", table)


def test_a_folder_with_space(monkeypatch, tmp_path):
    space(monkeypatch, 12.34)
    mount(monkeypatch, tmp_path, "ext4")
    assert list(folders.folder("runs", tmp_path, option=OPTION)) == [
        good("runs", f"{tmp_path}; 12.3 GiB free")
    ]
    assert list(tmp_path.iterdir()) == [tmp_path / "mountinfo"], "a look leaves nothing behind"


def test_a_folder_that_will_be_made_on_a_network_file_system(monkeypatch, tmp_path):
    space(monkeypatch, 100)
    mount(monkeypatch, tmp_path, "nfs4")
    path = tmp_path / "a" / "b"
    assert list(folders.folder("runs", path, option=OPTION)) == [
        good("runs", f"{path}, which will be created; 100.0 GiB free; on nfs4, over the network")
    ]


@pytest.mark.parametrize(("gib", "told"), [(0.5, doubtful), (0.04, bad)])
def test_little_space(monkeypatch, tmp_path, gib, told):
    space(monkeypatch, gib)
    mount(monkeypatch, tmp_path, "ext4")
    shown = {0.5: "0.5", 0.04: "0.0"}[gib]
    assert list(folders.folder("runs", tmp_path, option=OPTION)) == [
        told(
            "runs",
            f"{tmp_path}; {shown} GiB free",
            "free some space, or --output_path DIR names another folder",
        )
    ]


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "runs").write_text("")
    path = tmp_path / "runs" / "mine"
    assert list(folders.folder("runs", path, option=OPTION)) == [
        bad(
            "runs",
            f"{path}: {tmp_path / 'runs'} is not a folder",
            "--output_path DIR names another folder",
        )
    ]


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path):
    def refused(dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    assert list(folders.folder("runs", tmp_path, option=OPTION)) == [
        bad(
            "runs",
            f"{tmp_path} cannot be written: Permission denied",
            "--output_path DIR names another folder",
        )
    ]


@pytest.fixture
def kept(tmp_path):
    """A store of three answers, closed."""
    path = tmp_path / "calls.sqlite"
    made = Store.open(path)
    for number in range(3):
        made.put(bytes([number]) * 16, b"x" * 20_000)
    made.close()
    return path


def test_a_whole_store(kept):
    before = kept.read_bytes()
    (found,) = store(kept)
    assert found.state == "good"
    assert found.says == f"{kept}; format 1, wal, 0.1 MiB, 3 answers; undamaged"
    assert kept.read_bytes() == before


def test_a_store_over_the_network(kept, monkeypatch, tmp_path):
    mount(monkeypatch, tmp_path, "cifs")
    slow, whole = store(kept)
    assert (slow.state, whole.state) == ("doubtful", "good")
    assert slow.says == (
        f"{kept} is on cifs, over the network: it is written without a log (WAL), so that "
        "several machines can share it, and more slowly"
    )
    assert slow.to_do == "use --store FILE on a local disk, or HARNESS_CACHE=DIR"


def test_a_store_that_is_not_there_is_not_made(tmp_path):
    path = tmp_path / "calls.sqlite"
    found = good("store", f"{path}; does not exist yet, the first run creates it")
    assert list(store(path)) == [found]
    assert not path.exists()


def test_a_damaged_store(kept):
    whole = kept.read_bytes()
    kept.write_bytes(whole[:8192] + b"\xff" * 4096 + whole[12288:])
    (found,) = store(kept)
    assert found == bad(
        "store", f"{kept} cannot be read: database disk image is malformed", DAMAGED
    )


def test_a_store_of_which_one_answer_is_damaged(kept):
    # The last page is the last of an answer that takes several, and has none after it.
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-4096] + b"\x00\x00\xff\xff" + whole[-4092:])
    (found,) = store(kept)
    assert (found.state, found.to_do) == ("bad", DAMAGED)
    assert found.says.startswith(f"{kept}; format 1, wal, 0.1 MiB, 3 answers; damaged: ")


def test_what_is_no_store(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("no database " * 100)
    assert list(store(text)) == [
        bad("store", f"{text} cannot be read: file is not a database", DAMAGED)
    ]
    elsewhere = "--store FILE names another store, --no_store runs without one"
    assert list(store(tmp_path)) == [
        bad("store", f"{tmp_path} is a folder; expected a file", elsewhere)
    ]
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE a (b)")
    connection.close()
    assert list(store(other)) == [
        bad(
            "store",
            f"{other} is not a store that this version can use; found an SQLite file with mark "
            "0x0 and format 0, expected mark 0x48524e53 and format 1",
            elsewhere,
        )
    ]


def test_a_store_too_large_to_be_read_whole(kept, monkeypatch):
    monkeypatch.setattr("harness.cli.doctor_checks.store.LOOK_SECONDS", 0.0)
    monkeypatch.setattr("harness.cli.doctor_checks.store.STEPS", 1)
    (found,) = store(kept)
    assert found.state == "good"
    assert found.says.endswith("no damage in the part read in 0 s")


def test_a_hub_that_answers_is_reached_whatever_it_says(monkeypatch):
    with FaultyServer() as server:
        assert hub.unreachable(f"http://127.0.0.1:{server.port}/") is None
    assert hub.unreachable(f"http://127.0.0.1:{server.port}/") == "[Errno 111] Connection refused"


@pytest.mark.parametrize("offline", [True, False])
def test_the_hub_is_not_asked_where_the_environment_says_so(monkeypatch, offline):
    from huggingface_hub import constants

    with FaultyServer(models=status(500)) as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        monkeypatch.setattr("huggingface_hub.get_token", lambda: "hf_secretsecretsecret")
        (found,) = hub.hub()
    assert found == good(
        "hub",
        "the hub was not asked, because HF_HUB_OFFLINE is set: only the cache is used; a token is "
        "set"
        if offline
        else f"{server.url} answers; a token is set",
    )
