"""JSON, from bytes on disk to rows or a message: lines, an array, entries, rows in an object."""

import gzip
import json

import pytest
from builders.tables import data_in
from harness.data.json_inside import read_inside
from harness.data.json_rows import read_entries, read_json, read_json_lines

from harness.base.errors import DataError
from harness.contracts.task import Column, DataSpec, TableSpec
from harness.data import json_inside, json_rows

NAMES = ("user", "history")
COLUMNS = {"user": Column(), "history": Column(type="list")}


def written(folder, data):
    path = folder / "t.json"
    path.write_bytes(data)
    return path


def entries_of(path):
    return list(read_entries(path, names=NAMES))


def inside_of(folder, data, *keys):
    return list(read_inside(written(folder, data), keys=keys))


def test_one_object_a_line(tmp_path):
    path = written(tmp_path, '\ufeff{"a": 1}\r\n\n{"a": "é\u2028x"}'.encode())
    assert list(read_json_lines(path)) == [(1, {"a": 1}), (3, {"a": "é\u2028x"})]
    assert list(read_json(path)) == list(read_json_lines(path))


ROWS = [
    {"a": 'é😀\\" ]}{[', "n": -1.5e3, "t": [True, None]}, {}, {"ü": {"x": 12345}},
    {"é😀\\\\ud800": "😀" * 9, "\\": -1.5e-30}, {"x": "y\\u" * 20, "z": [[], {}, 0]},
]  # fmt: skip
ENTRIES = {
    'é😀\\" ]}{[': [{"a": "}"}], "": -1234567890.5e-30, "n": 12345678901234567890123456789,
    "t": True, "f": False, "o": None, "s": "text that is longer than a chunk", "d": {},
}  # fmt: skip


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 7, 64])
def test_json_is_read_alike_however_it_is_cut(tmp_path, monkeypatch, chunk, plain):
    def text(value):
        return json.dumps(value, ensure_ascii=plain).encode()

    monkeypatch.setattr(json_inside, "CHUNK", chunk)
    monkeypatch.setattr(json_rows, "CHUNK", max(chunk, 4))
    inside = inside_of(tmp_path, text({"k": "é", "rows": ROWS}), "rows")
    assert [row for _, row in inside] == ROWS
    array = read_json(written(tmp_path, b"\xef\xbb\xbf" + text(ROWS)))
    assert [row for _, row in array] == ROWS
    entries = entries_of(written(tmp_path, text(ENTRIES)))
    assert [(row["user"], row["history"]) for _, row in entries] == list(ENTRIES.items())


def test_nothing_between_the_brackets_is_no_row(tmp_path):
    assert list(read_json(written(tmp_path, b" [ ] "))) == []
    assert entries_of(written(tmp_path, b" { } ")) == []


@pytest.mark.parametrize(
    ("walker", "held", "lines"),
    [
        (json_rows.Walk, [{"a": "x" * 50}] * 200, [2, 5, 8]),
        (
            lambda path: json_rows.Walk(path, NAMES),
            {f"u{number}": "x" * 50 for number in range(200)},
            [2, 3, 4],
        ),
    ],
)
def test_what_is_larger_than_a_chunk_is_not_held_whole(tmp_path, monkeypatch, walker, held, lines):
    path = written(tmp_path, json.dumps(held, indent=1).encode())
    monkeypatch.setattr(json_rows, "CHUNK", 256)
    walk = walker(path)
    found = [(line, len(walk._text)) for line, _ in walk.rows()]
    assert [line for line, _ in found[:3]] == lines
    assert (len(found), max(length for _, length in found) < 1024) == (200, True)


def test_an_entry_is_a_row_of_key_and_value(tmp_path):
    path = written(tmp_path, b'\xef\xbb\xbf {"u1": [1, {"a": "]}"}],\n\n"u2" : "x", "3": null}\n')
    assert entries_of(path) == [
        (1, {"user": "u1", "history": [1, {"a": "]}"}]}),
        (3, {"user": "u2", "history": "x"}),
        (3, {"user": "3", "history": None}),
    ]


WHOLE = b"""\xef\xbb\xbf{"about": {"rows": [{"no": 1}], "n": [[1, {}]]},
 "data": {"rows": [
  {"user": "u1", "h": [1, 2.5, {"a": null}], "big": 12345678901234567890123},
  {"user":
    "u2", "t": true}, {}
 ], "more": [{"no": 2}]}, "rows": [3]}
"""


def test_the_rows_are_those_under_the_keys_with_the_line_they_begin_on(tmp_path):
    found = inside_of(tmp_path, WHOLE, "data", "rows")
    assert found == [
        (3, {"user": "u1", "h": [1, 2.5, {"a": None}], "big": 12345678901234567890123}),
        (4, {"user": "u2", "t": True}),
        (5, {}),
    ]
    assert isinstance(found[0][1]["h"][1], float)
    # An object there is the only row, and so is the file without keys.
    assert inside_of(tmp_path, b'{"a": 1,\n"b": {"c": 2}}', "b") == [(2, {"c": 2})]
    assert inside_of(tmp_path, b'\n{"user": "u1",\n "h": [{"a": 1}]}\n') == [
        (2, {"user": "u1", "h": [{"a": 1}]})
    ]


def test_a_table_of_one_object_a_file_and_packed(tmp_path):
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"user": 1,\n"n": 2}'))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b'{"user": 2,\n"n": "x"}'))
    columns = {"user": Column(), "n": Column(type="integer")}
    spec = DataSpec(tables={"people": TableSpec(files=("*.json",), columns=columns, rows_at=())})
    rows = data_in(tmp_path, spec).table().rows()
    assert next(rows) == (1, {"user": "1", "n": 2})
    with pytest.raises(DataError, match="not an integer") as caught:
        next(rows)
    assert caught.value.where == f"{tmp_path / 'b.json.gz'}, row 1 (line 1), column 'n'"


@pytest.mark.parametrize(
    ("name", "more", "says"),
    [
        ("a.csv", {"rows_at": ("rows",)}, "one JSON object with the rows in it"),
        ("a.csv", {"entries": NAMES}, "a file of the format csv"),
        ("a.csv", {"entries": NAMES, "columns": COLUMNS}, "a file of the format csv"),
        (
            "a.json",
            {"entries": NAMES, "rows_at": ("rows",)},
            "cannot have both `entries` and `rows_at`",
        ),
    ],
)
def test_what_cannot_be_read_so_is_told(tmp_path, name, more, says):
    (tmp_path / name).write_text("{}")
    table = TableSpec(files=(name,), **more)
    spec = DataSpec(tables={"people": table})
    with pytest.raises(DataError, match=says):
        list(data_in(tmp_path, spec).table().rows())


BAD_ROWS = [
    (b"", "t.json", "the file is empty"),
    (b'"x"', "t.json", "the file has no rows"),
    (b'{"a": 1}\n{"a": 2\n', "t.json, row 2 (line 2)", "Expecting ',' delimiter at the end"),
    (b'{"a": 1}\n{"a": ' + b"1" * 5000 + b"}", "t.json, row 2 (line 2)", "malformed"),
    (b'[{"a": 1},\n{"a": ' + b"1" * 5000 + b"}]", "t.json, row 2 (line 2)", "malformed"),
    (b'{"a": 1, "b": [1e999]}\n', "t.json, row 1 (line 1), column 'b'", "too large"),
    (b'{"a": "\\ud800"}\n', "t.json, row 1 (line 1), column 'a'", "surrogate"),
    (b'[{"a": 1},\n{"a": 2', "t.json, row 2 (line 2)", "Expecting ',' delimiter"),
    (b'[{"a": 1},\n\n', "t.json, row 1 (line 3)", "the array is never closed"),
    (b'[{"a": 1}\n{"a": 2}]', "t.json, row 1 (line 2)", "'{' follows an element"),
    (b'[{"a": 1},]', "t.json, row 2 (line 1)", "a comma before the closing ]"),
    (b'[{"a": 1}] x', "t.json, row 1 (line 1)", "after the end of the array"),
    (b'[{"a": NaN}]', "t.json, row 1 (line 1), column 'a'", "NaN"),
    (b'[{"a": 1},\n{"a": "\xff"}]', "t.json, line 2", "byte 0xff at offset 18"),
    (b'[{"a":' + b"[" * 100_000, "t.json, row 1 (line 1)", "nested too deeply"),
    (b'{"a":' + b"[" * 100_000, "t.json", "not a whole object"),
]
BAD_ENTRIES = [
    (b"", "t.json", "the file is empty"),
    (b'[{"a": 1}]', "t.json", "found:    an array"),
    (b'"x"', "t.json", "a file that begins with '\"'"),
    (b'{"u": 1} {"v": 2}', "t.json, row 1 (line 1)", "after the end of the object"),
    (b'{"u": 1,\n"v": 2,\n"u": 3}', "t.json, row 3 (line 3), column 'user'", "found:    'u'"),
    (b'{"u": 1,}', "t.json, row 2 (line 1)", "a comma before the closing }"),
    (b'{"u": 1 "v": 2}', "t.json, row 1 (line 1)", "a comma or }"),
    (b'{"u", 1}', "t.json, row 1 (line 1)", "',' follows a key"),
    (b"{u: 1}", "t.json, row 1 (line 1)", "an entry that begins with 'u'"),
    (b'{"u": 1,\n', "t.json, row 1 (line 2)", "the object is never closed"),
    (b'{"u":', "t.json, row 1 (line 1)", "the object is never closed"),
    (b'{"u": 1, "v":', "t.json, row 2 (line 1)", "the end of the file after 1 whole rows"),
    (b'{"u": [1, 2}', "t.json, row 1 (line 1), column 'history'", "expected: a JSON value"),
    (b'{"u": tru}', "t.json, row 1 (line 1), column 'history'", "Expecting value"),
    (b'{"u": NaN}', "t.json, row 1 (line 1), column 'history'", "a finite number, null"),
    (b'{"\\ud800": 1}', "t.json, row 1 (line 1), column 'user'", "surrogate"),
    (b'{"u": "\xff"}', "t.json, line 1", "byte 0xff at offset 7"),
    (b'{"u":' + b"[" * 100_000, "t.json, row 1 (line 1)", "nested too deeply"),
]
BAD_INSIDE = [
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
]
READERS = (
    (read_json, BAD_ROWS),
    (entries_of, BAD_ENTRIES),
    (lambda path: list(read_inside(path, keys=("rows",))), BAD_INSIDE),
)


@pytest.mark.parametrize(
    ("read", "data", "where", "says"),
    [(read, *row) for read, rows in READERS for row in rows],
)
def test_bad_json_is_told_with_its_place(tmp_path, read, data, where, says):
    with pytest.raises(DataError) as caught:
        list(read(written(tmp_path, data)))
    assert caught.value.where == str(tmp_path / where)
    assert says in str(caught.value)
