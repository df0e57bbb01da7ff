import errno
import os
from pathlib import Path

import pytest

from harness.base.errors import StorageError
from harness.runs.atomic_files import (
    atomic_write,
    atomic_writer,
    make_folder,
    remove_unfinished,
    storage_error,
)


def test_an_error_on_the_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "scores.jsonl"
    with atomic_writer(file) as out:
        out.write(b"old")
        out.flush()
        assert not file.exists()
    with pytest.raises(ZeroDivisionError), atomic_writer(file) as out:
        out.write(b"half")
        raise ZeroDivisionError
    assert file.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["scores.jsonl"]
    with pytest.raises(StorageError, match="cannot write"):
        atomic_write(tmp_path / "none" / "file", b"x")


def test_others_may_read_the_file_as_they_may_any_other(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    atomic_write(tmp_path / "file", b"")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_is_made_with_its_parents_unless_a_file_is_in_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_folder(folder)
    make_folder(folder)
    assert folder.is_dir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot write") as error:
        make_folder(tmp_path / "file" / "b", option="--out")
    assert "--out" in str(error.value.hint)


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    for name in (".manifest.json.0a.tmp", "task/.scores.jsonl.0b.tmp", "task/.summary.json.c.tmp"):
        (tmp_path / name).write_bytes(b"half")
    for name in ("manifest.json", "task/scores.jsonl", "task/a.tmp", ".hidden"):
        (tmp_path / name).write_bytes(b"whole")
    (tmp_path / "task" / ".shares.tmp" / "inner").mkdir(parents=True)
    (tmp_path / "task" / ".shares.tmp" / "1").write_bytes(b"half")
    remove_unfinished(tmp_path)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert left == {"task", "manifest.json", "task/scores.jsonl", "task/a.tmp", ".hidden"}


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (errno.EMFILE, "allow more open files (ulimit -n)"),
        (errno.ENFILE, "allow more open files (ulimit -n)"),
        (errno.ENOENT, "its folder was removed"),
        (errno.ENOSPC, "free some space"),
        (errno.EACCES, "make the folder writable"),
    ],
)
def test_what_to_do_depends_on_what_went_wrong(code: int, hint: str) -> None:
    error = storage_error(Path("runs/x"), OSError(code, os.strerror(code)))
    assert error.found == os.strerror(code)
    assert hint in str(error.hint)
