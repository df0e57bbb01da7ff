from pathlib import Path

import pytest

from harness.base.errors import StorageError
from harness.runs.atomic_files import atomic_write, atomic_writer, make_folder


def test_the_new_content_takes_the_old_ones_place(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    atomic_write(file, b"old")
    atomic_write(file, b"new")
    assert file.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["summary.json"]


def test_an_error_on_the_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "scores.jsonl"
    atomic_write(file, b"old")
    with pytest.raises(ZeroDivisionError), atomic_writer(file) as out:
        out.write(b"half")
        raise ZeroDivisionError
    assert file.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["scores.jsonl"]


def test_nothing_is_seen_before_the_end(tmp_path: Path) -> None:
    file = tmp_path / "scores.jsonl"
    with atomic_writer(file) as out:
        out.write(b"half")
        out.flush()
        assert not file.exists()
    assert file.read_bytes() == b"half"


def test_others_may_read_the_file_as_they_may_any_other(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    atomic_write(tmp_path / "file", b"")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_that_is_not_there_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot write"):
        atomic_write(tmp_path / "none" / "file", b"x")


def test_a_folder_is_made_with_its_parents_unless_a_file_is_in_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_folder(folder)
    make_folder(folder)
    assert folder.is_dir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot write") as error:
        make_folder(tmp_path / "file" / "b", option="--out")
    assert "--out" in str(error.value.hint)
