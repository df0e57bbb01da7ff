"""Packed files: whole ones read like plain ones, damaged ones refused."""

import gzip
import random

import pytest
import zstandard

from harness.base.errors import DataError
from harness.data.records import text_lines

NOISE = random.Random(0).randbytes(400_000).hex().encode()
TEXT = b"first\n" + NOISE + b"\nlast\n"


def lines(folder, name, data):
    path = folder / name
    path.write_bytes(data)
    return list(text_lines(path))


@pytest.mark.parametrize(
    ("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".zst", zstandard.compress)]
)
def test_packed_files_of_one_frame_or_several_read_like_plain_text(tmp_path, ending, pack):
    parts = [b"first\n", NOISE + b"\n", b"last\n"]
    assert lines(tmp_path, f"t.csv{ending}", pack(TEXT)) == parts
    assert lines(tmp_path, f"t.csv{ending}", b"".join(map(pack, parts))) == parts


@pytest.mark.parametrize("cut", [3, 10_000, -1])
def test_a_cut_off_file_is_refused_and_not_read_as_a_shorter_one(tmp_path, cut):
    for name, packed in (("t.gz", gzip.compress(TEXT)), ("t.zst", zstandard.compress(TEXT))):
        with pytest.raises(DataError, match="cannot be unpacked"):
            lines(tmp_path, name, packed[:cut])


def test_an_unreadable_file_is_named(tmp_path):
    with pytest.raises(DataError) as caught:
        list(text_lines(tmp_path / "absent.csv"))
    assert caught.value.where == str(tmp_path / "absent.csv")
    assert caught.value.found == "No such file or directory"
