"""Rows inside one JSON object, from bytes on disk to rows or a message."""

import gzip
import json

import pytest

from harness.base.errors import DataError
from harness.contracts.task import Column, DataSpec, TableSpec
from harness.data import json_inside, open_dataset
from harness.data.json_inside import read_inside


def read(folder, data, *keys):
    path = folder / "t.json"
    path.write_bytes(data)
    return list(read_inside(path, keys=keys))


WHOLE = b"""\xef\xbb\xbf{"about": {"rows": [{"no": 1}], "n": [[1, {}]]},
 "data": {"rows": [
  {"user": "u1", "h": [1, 2.5, {"a": null}], "big": 12345678901234567890123},
  {"user":
    "u2", "t": true}, {}
 ], "more": [{"no": 2}]}, "rows": [3]}
"""


def test_the_rows_are_those_under_the_keys_with_the_line_they_begin_on(tmp_path):
    found = read(tmp_path, WHOLE, "data", "rows")
    assert found == [
        (3, {"user": "u1", "h": [1, 2.5, {"a": None}], "big": 12345678901234567890123}),
        (4, {"user": "u2", "t": True}),
        (5, {}),
    ]
    assert isinstance(found[0][1]["h"][1], float)


def test_an_object_under_the_keys_is_the_only_row(tmp_path):
    assert read(tmp_path, b'{"a": 1,\n"b": {"c": 2}}', "b") == [(2, {"c": 2})]


def test_without_keys_the_file_is_one_row(tmp_path):
    assert read(tmp_path, b'\n{"user": "u1",\n "h": [{"a": 1}]}\n') == [
        (2, {"user": "u1", "h": [{"a": 1}]})
    ]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_a_file_is_read_alike_however_it_is_cut(tmp_path, chunk, monkeypatch):
    rows = [{"é😀\\\\ud800": "😀" * 9, "\\": -1.5e-30}, {"x": "y\\u" * 20, "z": [[], {}, 0]}]
    monkeypatch.setattr(json_inside, "CHUNK", chunk)
    for plain in (True, False):
        data = json.dumps({"k": "é", "rows": rows}, ensure_ascii=plain).encode()
        assert [row for _, row in read(tmp_path, data, "rows")] == rows


@pytest.mark.parametrize(
    ("data", "where", "says"),
    [
        (b"", "t.json", "the file is empty"),
        (b'{"row": [], "n": 1}', "t.json", "an object with row, n"),
        (b'{"row": [], "n": 1}', "t.json", "'row' is the nearest name"),
        (b'[{"a": 1}]', "t.json", "the file has no rows"),
        (b'{"rows": [{},\n7]}', "t.json, row 2 (line 2)", "a JSON integer"),
        (b'{"rows": [{},\n[]]}', "t.json, row 2 (line 2)", "a JSON list"),
        (b'{"rows":\n"x"}', "t.json, row 1 (line 2)", "a JSON string"),
        (b'{"rows": [],\n"rows": []}', "t.json, line 2", "rows again"),
        (b'{"rows": [{},\n{"a": NaN}]}', "t.json, row 2 (line 2)", "lexical error"),
        (b'{"rows": [{},\n{"a": 1e999}]}', "t.json, row 2 (line 2)", "fits a float"),
        (b'{"rows": [{},\n{"a": "\\ud800"}]}', "t.json, row 2 (line 2)", "surrogate"),
        (b'{"rows": [{},\n{"a": "\xff"}]}', "t.json, row 2 (line 2)", "invalid bytes in UTF8"),
        (b'{"rows": [{},\n{"a": 1', "t.json, row 2 (line 2)", "premature EOF"),
        (b'{"rows": [{}]}\n{}', "t.json, line 2", "trailing garbage"),
        (b'{"rows": [{}, {"a": 1}, {"a": NaN}, {}]}', "t.json, row 3 (line 1)", "lexical error"),
        (b'{"rows": [{}, {"a": "\\udc00"}, {}]}', "t.json, row 2 (line 1)", "surrogate"),
        (b'{"rows": [{}\n{}]}', "t.json, line 2", "after array element"),
    ],
)
def test_bad_files_are_told_with_their_place(tmp_path, data, where, says):
    with pytest.raises(DataError) as caught:
        read(tmp_path, data, "rows")
    assert caught.value.where == str(tmp_path / where)
    assert says in str(caught.value)


def test_a_table_of_one_object_a_file_and_packed(tmp_path):
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"user": 1,\n"n": 2}'))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b'{"user": 2,\n"n": "x"}'))
    columns = {"user": Column(), "n": Column(type="integer")}
    spec = DataSpec(tables={"people": TableSpec(files=("*.json",), columns=columns, rows_at=())})
    data = open_dataset(spec, data=str(tmp_path), limit=None, seed=0, package=None, task="t")
    rows = data.table().rows()
    assert next(rows) == (1, {"user": "1", "n": 2})
    with pytest.raises(DataError, match="not an integer") as caught:
        next(rows)
    assert caught.value.where == f"{tmp_path / 'b.json.gz'}, row 1 (line 1), column 'n'"


@pytest.mark.parametrize(
    ("name", "entries", "says"),
    [
        ("a.csv", None, "one JSON object with the rows in it"),
        ("a.json", ("key", "value"), "cannot have both `entries` and `rows_at`"),
    ],
)
def test_what_cannot_be_read_so_is_told(tmp_path, name, entries, says):
    (tmp_path / name).write_text("{}")
    table = TableSpec(files=(name,), entries=entries, rows_at=("rows",))
    spec = DataSpec(tables={"people": table})
    data = open_dataset(spec, data=str(tmp_path), limit=None, seed=0, package=None, task="t")
    with pytest.raises(DataError, match=says):
        list(data.table().rows())
