"""Packed files: whole ones read like plain ones, damaged ones refused."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
import zstandard

from harness.base.errors import DataError
from harness.data.opening import text_lines

NOISE = random.Random(0).randbytes(400_000).hex().encode()
TEXT = b"first\n" + NOISE + b"\nlast\n"


def lines(folder: Path, name: str, data: bytes) -> list[bytes]:
    path = folder / name
    path.write_bytes(data)
    return list(text_lines(path))


def test_gzip_and_zstd_read_like_plain_text(tmp_path: Path) -> None:
    plain = lines(tmp_path, "t.csv", TEXT)
    assert plain == [b"first\n", NOISE + b"\n", b"last\n"]
    assert lines(tmp_path, "t.csv.gz", gzip.compress(TEXT)) == plain
    assert lines(tmp_path, "t.csv.zst", zstandard.compress(TEXT)) == plain


def test_files_of_several_frames_are_read_to_the_end(tmp_path: Path) -> None:
    parts = [b"one\n", b"two\n"]
    packed = b"".join(gzip.compress(part) for part in parts)
    assert lines(tmp_path, "t.csv.gz", packed) == parts
    packed = b"".join(zstandard.compress(part) for part in parts)
    assert lines(tmp_path, "t.csv.zst", packed) == parts


@pytest.mark.parametrize("cut", [3, 10_000, -1])
def test_a_cut_off_file_is_refused_and_not_read_as_a_shorter_one(tmp_path: Path, cut: int) -> None:
    for name, packed in (("t.gz", gzip.compress(TEXT)), ("t.zst", zstandard.compress(TEXT))):
        with pytest.raises(DataError, match="cannot be unpacked"):
            lines(tmp_path, name, packed[:cut])


def test_a_file_that_is_not_packed_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be unpacked as gzip"):
        lines(tmp_path, "t.gz", b"user,n\n")
    with pytest.raises(DataError, match="cannot be unpacked as zstd"):
        lines(tmp_path, "t.zst", b"user,n\n")


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        list(text_lines(tmp_path / "absent.csv"))
    assert caught.value.where == str(tmp_path / "absent.csv")
    assert caught.value.found == "No such file or directory"
