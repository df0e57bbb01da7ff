import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from builders.runs import make_manifest

from harness.base.errors import DataError, HarnessError, UsageError
from harness.runs.manifest import Status
from harness.runs.run_folder import LOCK, RunFolder, plain_name

KEY = "0123456789abcdef0123456789abcdef"


def kept(output_path: Path, name: str, status: Status = "running", *, run_key: str = KEY) -> Path:
    path = output_path / name
    path.mkdir(parents=True)
    made = make_manifest(status=status, run_key=run_key, delivered=status == "done")
    RunFolder(path).write_manifest(made)
    return path


def test_a_new_folder_is_named_after_time_model_and_key_and_another_of_its_second_numbered(
    tmp_path: Path,
) -> None:
    names = [RunFolder.create(tmp_path / "runs", "org/Llama 3", KEY).path.name for _ in range(3)]
    assert {path.name for path in (tmp_path / "runs").iterdir() if path.is_dir()} == set(names)
    assert re.fullmatch(r"\d{8}T\d{6}-org-Llama-3-01234567", names[0])
    stamps = {name.split("-")[0] for name in names}
    if len(stamps) == 1:
        assert names == [names[0], f"{names[0]}-2", f"{names[0]}-3"]


def test_an_output_path_that_is_a_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(UsageError, match="runs cannot be stored here"):
        RunFolder.create(tmp_path / "runs", "m", KEY)


def test_the_newest_unfinished_folder_of_the_key_is_found(tmp_path: Path) -> None:
    kept(tmp_path, "20260101T000000-m-01234567", "interrupted")
    newest = kept(tmp_path, "20260102T000000-m-01234567-10", "too_many_failures")
    kept(tmp_path, "20260102T000000-m-01234567-9", "failed")
    latest = kept(tmp_path, "20260103T000000-m-01234567", "done")
    kept(tmp_path, "20260104T000000-m-76543210", run_key="76543210" * 4)
    kept(tmp_path, "20260105T000000-m-01234567", run_key="01234567" + "f" * 24)
    (tmp_path / "20260106T000000-m-01234567").mkdir()
    (tmp_path / "notes.txt").write_text("")
    unfinished = RunFolder.find(tmp_path, KEY)
    assert unfinished is not None
    assert unfinished.path == newest
    found = RunFolder.find(tmp_path, KEY, done=True)
    assert found is not None
    assert found.path == latest


@pytest.mark.parametrize("name", ["gist_synthetic", "perrec-hard.v2", "1"])
def test_plain_names_stay(name: str) -> None:
    assert plain_name(name) == name


def test_names_that_cannot_stay_are_readable_and_never_meet() -> None:
    taken = {".", "..", "lock", "engines", "manifest.json"}
    names = ["a/b", "a b", "a-b", "A-b", "", "né", "n", "x" * 200, *taken]
    paths = [plain_name(name) for name in names]
    assert len({path.casefold() for path in paths}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+(~[0-9a-f]{8})?", path) for path in paths)
    assert plain_name("a/b").startswith("a-b~")
    assert not taken & set(paths)


LOCK_AND_WAIT = """
import sys
from pathlib import Path
from harness.runs.run_folder import RunFolder
RunFolder(Path(sys.argv[1])).lock()
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_told_who_is_at_work_and_let_in_when_that_one_is_dead(
    tmp_path: Path,
) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", LOCK_AND_WAIT, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(HarnessError, match="in use") as caught:
            RunFolder(tmp_path).lock()
        assert f"process {other.pid} on " in str(caught.value)
        assert "--reuse none" in str(caught.value)
    finally:
        other.kill()
        other.communicate()
    RunFolder(tmp_path).lock()


@pytest.mark.parametrize("pid", [0, -1, 10**30, "x", None])
def test_a_lock_that_names_no_process_is_nobody_at_work(tmp_path: Path, pid: object) -> None:
    (tmp_path / LOCK).write_text(json.dumps({"pid": pid, "host": socket.gethostname()}))
    assert RunFolder(tmp_path).at_work() is False
    (tmp_path / LOCK).write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
    assert RunFolder(tmp_path).at_work() is True


def test_the_process_that_locks_a_folder_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path = kept(tmp_path, "20260101T000000-m-01234567")
    (path / "task").mkdir()
    (path / "task" / ".scores.jsonl.0123456789ab.tmp").write_bytes(b"half")
    folder = RunFolder(path)
    folder.lock()
    folder.unlock()
    assert not list((path / "task").iterdir())


def test_a_manifest_that_is_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(DataError, match="the manifest cannot be read") as caught:
        RunFolder(tmp_path).manifest()
    assert caught.value.found == "Is a directory"
