"""JSON and JSON lines, from bytes on disk to rows or a message."""

import json
from typing import Any

import pytest

from harness.base.errors import DataError
from harness.data import json_rows
from harness.data.json_rows import read_json, read_json_lines


def written(folder, data):
    path = folder / "t.json"
    path.write_bytes(data)
    return path


def test_one_object_a_line(tmp_path):
    path = written(tmp_path, '\ufeff{"a": 1}\r\n\n{"a": "é\u2028x"}'.encode())
    assert list(read_json_lines(path)) == [(1, {"a": 1}), (3, {"a": "é\u2028x"})]


@pytest.mark.parametrize("data", [b'[{"a": 1},\n{"a": [2, {"b": "]}"}]}\n]\n', b'{"a": 1}\n'])
def test_json_may_be_an_array_or_lines(tmp_path, data):
    expected: list[Any] = [(1, {"a": 1})]
    if data.startswith(b"["):
        expected.append((2, {"a": [2, {"b": "]}"}]}))
    assert list(read_json(written(tmp_path, data))) == expected


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_an_array_is_read_alike_however_it_is_cut(tmp_path, chunk, monkeypatch):
    rows = [{"a": 'é😀\\" ]}{[', "n": -1.5e3, "t": [True, None]}, {}, {"ü": {"x": 12345}}]
    path = written(tmp_path, b"\xef\xbb\xbf" + json.dumps(rows, ensure_ascii=False).encode())
    monkeypatch.setattr(json_rows, "CHUNK", max(chunk, 4) if chunk < 4 else chunk)
    assert [row for _, row in read_json(path)] == rows


def test_an_array_larger_than_a_chunk_is_not_held_whole(tmp_path, monkeypatch):
    path = written(tmp_path, json.dumps([{"a": "x" * 50}] * 200, indent=1).encode())
    monkeypatch.setattr(json_rows, "CHUNK", 256)
    walk = json_rows._Array(path)
    longest = 0
    lines = []
    for line, _ in walk.rows():
        lines.append(line)
        longest = max(longest, len(walk._text))
    assert lines[:3] == [2, 5, 8]
    assert len(lines) == 200
    assert longest < 1024


@pytest.mark.parametrize(
    ("data", "where", "says"),
    [
        (b"", "t.json", "the file is empty"),
        (b'"x"', "t.json", "the file has no rows"),
        (b'{\n"data": []}', "t.json", "neither an array of objects nor one object a line"),
        (b'{"a": 1}\n{"a": 2\n', "t.json, row 2 (line 2)", "Expecting ',' delimiter at the end"),
        (b'{"a": 1}\n[2]\n', "t.json, row 2 (line 2)", "a JSON list: [2]"),
        (b'{"a": NaN}\n', "t.json, row 1 (line 1), column 'a'", "NaN"),
        (b'{"a": 1, "b": [1e999]}\n', "t.json, row 1 (line 1), column 'b'", "too large"),
        (b'{"a": "\\ud800"}\n', "t.json, row 1 (line 1), column 'a'", "surrogate"),
        (b'{"a": 1}\n{"a": "\xff"}\n', "t.json, line 2", "byte 0xff at offset 16"),
        (b'[{"a": 1},\n{"a": 2', "t.json, row 2 (line 2)", "Expecting ',' delimiter"),
        (b'[{"a": 1},\n{"a": "2', "t.json, row 2 (line 2)", "Unterminated string"),
        (b'[{"a": 1},\n\n', "t.json, row 1 (line 3)", "the array is never closed"),
        (b'[{"a": 1}', "t.json, row 1 (line 1)", "the array is never closed"),
        (b'[{"a": 1}\n{"a": 2}]', "t.json, row 1 (line 2)", "'{' follows an element"),
        (b'[{"a": 1},]', "t.json, row 2 (line 1)", "a comma before the closing ]"),
        (b"[1, 2]", "t.json, row 1 (line 1)", "begins with '1'"),
        (b'[{"a": 1}] x', "t.json, row 1 (line 1)", "after the end of the array"),
        (b'[{"a": NaN}]', "t.json, row 1 (line 1), column 'a'", "NaN"),
        (b'[{"a": 1},\n{"a": "\xff"}]', "t.json, line 2", "byte 0xff at offset 18"),
        (b'[{"a":' + b"[" * 100_000, "t.json, row 1 (line 1)", "nested too deeply"),
        (b'{"a":' + b"[" * 100_000, "t.json", "not a whole object"),
    ],
)
def test_bad_files_are_told_with_their_place(tmp_path, data, where, says):
    path = written(tmp_path, data)
    with pytest.raises(DataError) as caught:
        list(read_json(path))
    assert caught.value.where == str(tmp_path / where)
    assert says in str(caught.value)


@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
def test_an_integer_of_thousands_of_digits_is_an_error_with_its_line(tmp_path, name):
    rows = '{"a": 1}\n{"a": ' + "1" * 5000 + "}"
    file = tmp_path / name
    file.write_text(rows if name == "t.jsonl" else f"[{rows.replace(chr(10), ',' + chr(10))}]")
    read = read_json_lines if name == "t.jsonl" else read_json
    with pytest.raises(DataError, match="malformed") as caught:
        list(read(file))
    assert ":2" in caught.value.where or "line 2" in caught.value.where
