"""One JSON object, from bytes on disk to a row an entry or a message."""

import json

import pytest

from harness.base.errors import DataError
from harness.data import json_rows
from harness.data.json_rows import _Entries, read_entries

NAMES = ("user", "history")


def written(folder, data):
    path = folder / "t.json"
    path.write_bytes(data)
    return path


def read(path):
    return list(read_entries(path, names=NAMES))


def test_an_entry_is_a_row_of_key_and_value(tmp_path):
    path = written(tmp_path, b'\xef\xbb\xbf {"u1": [1, {"a": "]}"}],\n\n"u2" : "x", "3": null}\n')
    assert read(path) == [
        (1, {"user": "u1", "history": [1, {"a": "]}"}]}),
        (3, {"user": "u2", "history": "x"}),
        (3, {"user": "3", "history": None}),
    ]


@pytest.mark.parametrize("chunk", [4, 5, 7, 64])
def test_an_object_is_read_alike_however_it_is_cut(tmp_path, chunk, monkeypatch):
    entries = {
        'é😀\\" ]}{[': [{"a": "}"}], "": -1234567890.5e-30, "n": 12345678901234567890123456789,
        "t": True, "f": False, "o": None, "s": "text that is longer than a chunk", "d": {},
    }  # fmt: skip
    path = written(tmp_path, json.dumps(entries, ensure_ascii=False).encode())
    monkeypatch.setattr(json_rows, "CHUNK", chunk)
    assert [(row["user"], row["history"]) for _, row in read(path)] == list(entries.items())


def test_an_object_larger_than_a_chunk_is_not_held_whole(tmp_path, monkeypatch):
    path = written(tmp_path, json.dumps({f"u{n}": "x" * 50 for n in range(200)}).encode())
    monkeypatch.setattr(json_rows, "CHUNK", 256)
    walk = _Entries(path, NAMES)
    longest = 0
    for _ in walk.rows():
        longest = max(longest, len(walk._text))
    assert len(walk._met) == 200
    assert longest < 1024


@pytest.mark.parametrize(
    ("data", "where", "says"),
    [
        (b"", "t.json", "the file is empty"),
        (b'[{"a": 1}]', "t.json", "found:    an array"),
        (b'"x"', "t.json", "a file that begins with '\"'"),
        (b'{"user": "u1"}\n{"user": "u2"}\n', "t.json", "found:    one object a line"),
        (b'{"u": 1} {"v": 2}', "t.json, row 1 (line 1)", "after the end of the object"),
        (b'{"u": 1,\n"v": 2,\n"u": 3}', "t.json, row 3 (line 3), column 'user'", "found:    'u'"),
        (b'{"u": 1,}', "t.json, row 2 (line 1)", "a comma before the closing }"),
        (b'{"u": 1 "v": 2}', "t.json, row 1 (line 1)", "a comma or }"),
        (b'{"u", 1}', "t.json, row 1 (line 1)", "',' follows a key"),
        (b"{u: 1}", "t.json, row 1 (line 1)", "an entry that begins with 'u'"),
        (b'{"u": 1,\n', "t.json, row 1 (line 2)", "the object is never closed"),
        (b'{"u":', "t.json, row 1 (line 1)", "the object is never closed"),
        (b'{"u": 1, "v"', "t.json, row 2 (line 1)", "the end of the file after 1 whole rows"),
        (b'{"u": 1, "v":', "t.json, row 2 (line 1)", "the end of the file after 1 whole rows"),
        (b'{"u": [1, 2', "t.json, row 1 (line 1), column 'history'", "Expecting ',' delimiter"),
        (b'{"u": [1, 2}', "t.json, row 1 (line 1), column 'history'", "expected: a JSON value"),
        (b'{"u": tru}', "t.json, row 1 (line 1), column 'history'", "Expecting value"),
        (b'{"u": NaN}', "t.json, row 1 (line 1), column 'history'", "a finite number, null"),
        (b'{"\\ud800": 1}', "t.json, row 1 (line 1), column 'user'", "surrogate"),
        (b'{"u": "\xff"}', "t.json, line 1", "byte 0xff at offset 7"),
        (b'{"u":' + b"[" * 100_000, "t.json, row 1 (line 1)", "nested too deeply"),
    ],
)
def test_bad_files_are_told_with_their_place(tmp_path, data, where, says):
    with pytest.raises(DataError) as caught:
        read(written(tmp_path, data))
    assert caught.value.where == str(tmp_path / where)
    assert says in str(caught.value)
