import gzip
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from builders.tables import data_in, refused, table_of, written

from harness.base.errors import DataError
from harness.contracts.task import Column, DataSpec, DelimitedSpec, TableSpec
from harness.data import Table, read, records
from harness.data.database import Database
from harness.data.read import FileSource, Unfit, format_of, quoted, value_of
from harness.data.records import stamp_of


def made(folder, name, data):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def table(path, columns=None, entries=None, rows_at=None, **delimited):
    """The table in a file; without columns, its rows hold all cells."""
    spec = DelimitedSpec(**delimited)
    source = FileSource(
        path=path, stamp=stamp_of(path), delimited=spec, entries=entries, rows_at=rows_at
    )
    return Table(name="people", columns=columns or {}, sources=[source])


def rows(of):
    return [row for _, row in of.rows()]


TITLES = ("user", "title", "rating")
NAMES = ("user", "history")

READ = {
    "rows in quotes": (
        b'user,note\r\nu1,"two\nlines, one ""cell"""\r\n\r\nu2,b\r\n',
        {},
        [("u1", 'two\nlines, one "cell"'), ("u2", "b")],
    ),
    "a byte order mark": (b"\xef\xbb\xbfuser,n\nu1,1\n", {}, [("u1", "1")]),
    "and in quotes": (b'\xef\xbb\xbf"user",n\nu1,1\n', {}, [("u1", "1")]),
    "names are stripped, columns without one left out": (b", user ,\n0,u1,x\n", {}, [("u1",)]),
    "a space beside a quotation mark": (
        b'a,b\n1, "x"\n5" x,"y"\n',
        {},
        [("1", ' "x"'), ('5" x', "y")],
    ),
    "returns between quotes": (
        b'a,b\n"\r","x\ry"\n"\r\n",1\n',
        {},
        [("\r", "x\ry"), ("\r\n", "1")],
    ),
    "one column, of which cells are empty": (b'a\n""\n\nx\n', {}, [("",), ("x",)]),
    "control characters": (
        b'a,b\n"\x1b\x1f\x1bn","\x00"\n"\n\x1be",\x1b\n',
        {},
        [("\x1b\x1f\x1bn", "\0"), ("\n\x1be", "\x1b")],
    ),
    "empty and blank cells, nulls and comments": (
        b"a,b\n,\n ,NULL\n#x,\\N\n",
        {},
        [("", ""), (" ", "NULL"), ("#x", "\\N")],
    ),
    "without quotes": (
        b'title\tn\r\n"So there\t1\r\nHe said "no" twice\t2\r\n""\t\r\n',
        {"delimiter": "\t", "quotes": False},
        [('"So there', "1"), ('He said "no" twice', "2"), ('""', "")],
    ),
    "a bare return is a space": (
        b"a,b\none\rtwo,x\nlast,y\n",
        {"bare_returns": "space"},
        [("one two", "x"), ("last", "y")],
    ),
    "and between quotes": (
        b'a,b\r\n"one\rtwo",x\r\nlast,y\r\n',
        {"bare_returns": "space"},
        [("one two", "x"), ("last", "y")],
    ),
    "a delimiter of two characters, of which one is text": (
        b'1::Alien: "3"::5\n\n2::::4\r\n3:::x:::1\n',
        {"delimiter": "::", "header": TITLES, "quotes": False},
        [("1", 'Alien: "3"', "5"), ("2", "", "4"), ("3", ":x", ":1")],
    ),
    "and between quotes both are": (
        b'1::"a::b, ""c""\n::d"::5\n\n2::":"::4\n',
        {"delimiter": "::", "header": TITLES},
        [("1", 'a::b, "c"\n::d', "5"), ("2", ":", "4")],
    ),
    "a delimiter longer than DuckDB takes": (
        b"a<=====>b\n1<=====>2\n",
        {"delimiter": "<=====>"},
        [("1", "2")],
    ),
    # 0xe9 is é and 0xa0 a space that does not break; 0x85 ends no line.
    "text in Latin-1": (
        b"title,n\nMis\xe9rables,1\na\x85b\xa0,2\n",
        {"encoding": "iso-8859-1"},
        [("Misérables", "1"), ("a\x85b\xa0", "2")],
    ),
    "text that is not UTF-8 and may be Latin-1": (
        b"title,n\nMis\xe9rables,1\n",
        {},
        [("Misérables", "1")],
    ),
    "UTF-16 with its mark": ("title,n\né,1\n".encode("utf-16"), {}, [("é", "1")]),
    "text in Windows-1252": (b"a,b\n\x80\xe9,1\n", {"encoding": "windows-1252"}, [("€é", "1")]),
    "surplus cells are text of the last": (
        b"a,b\n1,one,two,\n2,two\n",
        {"quotes": False, "surplus": "last"},
        [("1", "one,two,"), ("2", "two")],
    ),
    "surplus cells and bare returns": (
        b'user\ttrack\nu1\tone\rtwo\n\nu2\ttab\tin a\ttitle\t\r\nu3\t\n"u4\tx\r\r\n',
        {"delimiter": "\t", "quotes": False, "bare_returns": "space", "surplus": "last"},
        [("u1", "one two"), ("u2", "tab\tin a\ttitle\t"), ("u3", ""), ('"u4', "x ")],
    ),
    "no header line": (b"u1,a\n\nu2,b\n", {"header": ("user", "note")}, [("u1", "a"), ("u2", "b")]),
    "blank lines before the header": (b"\xef\xbb\xbf\n\r\na,b\n1,2\n", {}, [("1", "2")]),
    "a cell longer than a chunk": (
        b"a,b\n1,2\n" + b"x" * 3_000_000 + b",1\n",
        {},
        [("1", "2"), ("x" * 3_000_000, "1")],
    ),
}


@pytest.mark.parametrize("case", READ)
def test_delimited_text_is_read_as_the_task_says(tmp_path, monkeypatch, case):
    data, options, expected = READ[case]
    for chunk, name, pack in ((1 << 18, "t.csv", bytes), (7, "t.csv.gz", gzip.compress)):
        monkeypatch.setattr(records, "CHUNK", chunk)
        found = rows(table(made(tmp_path, name, pack(data)), **options))
        assert [tuple(row.values()) for row in found] == expected


ROWS = [
    {"a": 'é😀\\" ]}{[', "n": -1.5e3, "t": [True, None]}, {}, {"ü": {"x": 12345}},
    {"é😀\\\\ud800": "😀" * 9, "\\": -1.5e-30}, {"x": "y\\u" * 20, "z": [[], {}, 0]},
]  # fmt: skip
ENTRIES = {
    'é😀\\" ]}{[': [{"a": "}"}], "": -1234567890.5e-30, "t": True, "f": False, "o": None,
    "s": "text", "d": {},
}  # fmt: skip


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("most", [10, 1 << 30])
@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf", b"\n "])
def test_json_is_read_alike_whether_it_is_held_whole_or_walked_through(
    tmp_path, monkeypatch, begin, most, plain
):
    monkeypatch.setattr(records, "MOST_WHOLE", most)
    monkeypatch.setattr(records, "CHUNK", 10)

    def held(value, **where):
        text = begin + json.dumps(value, ensure_ascii=plain).encode()
        return rows(table(made(tmp_path, "t.json", text), **where))

    assert held(ROWS) == ROWS
    assert held({"k": {"rows": 1}, "a": {"rows": ROWS}}, rows_at=("a", "rows")) == ROWS
    assert held({"k": [], "a": ROWS[0]}, rows_at=("a",)) == [ROWS[0]]
    assert held(ROWS[0], rows_at=()) == [ROWS[0]]
    found = held(ENTRIES, entries=NAMES)
    assert [(row["user"], row["history"]) for row in found] == [*ENTRIES.items()]


def test_json_lines_are_read_whatever_the_file_is_called(tmp_path):
    text = '\ufeff{"a": 1}\r\n\n{"a": "é\u2028x", "n": 12345678901234567890123}'
    for name in ("t.jsonl", "t.ndjson", "t.json"):
        found = rows(table(made(tmp_path, name, text)))
        assert found == [{"a": 1}, {"a": "é\u2028x", "n": 12345678901234567890123}]


BAD_TEXT = [
    (b"a,b\n1\n", {"quotes": False, "surplus": "last"}, "t.csv, row 1", "fewer cells"),
    (b"a,b\r1,2\r3,4\r", {}, "t.csv, line 1", "old Macintosh files"),
    (b"a,b\n\xc3\xa9\xe9,2\n", {}, "t.csv, line 2", "byte 0xe9 at offset 6"),
    (b"a,b\n\x80\xe9,1\n", {}, "t.csv, line 2", "byte 0x80 at offset 4"),
    (b"a,b\nx\xc3", {}, "t.csv, line 2", "byte 0xc3 at offset 5"),
    (b"\xef\xbb\xbfa\nb\n", {"encoding": "iso-8859-1"}, "t.csv", "UTF-8 text, unlike the task's"),
    (b"PAR1abc", {}, "t.csv", "name it with .parquet at the end"),
    (b"PK\x03\x04rest", {}, "t.csv", "a ZIP archive or a spreadsheet"),
    ("a::b\n\ufdd0::5\n".encode(), {"delimiter": "::"}, "t.csv, line 2", "U+FDD0"),
    ("a,b\n1,é\n".encode("utf-16")[:-1], {}, "t.csv", "it may be cut off"),
]
BAD_JSON = [
    (b'"x"', {}, "t.json", "the file has no rows"),
    (b'{"a": 1}\n{"a": 2\n', {}, "t.json, row 2", "malformed"),
    (b'{"a": 1, "b": [1e999]}\n', {}, "t.json, row 1, column 'b'", "a finite number"),
    (b'{"a": "\\ud800"}\n', {}, "t.json, row 1, column 'a'", "malformed"),
    (b'{"a": 1}\n{"a" : 1, "b": ":", "a":2}\n', {}, "t.json, row 2", "a key occurs twice"),
    (b'[{"n": 12345678901234567890123, "a": [{"b": 1, "b": 1}]}]', {}, "t.json, row 1", "'b'"),
    (b'{"a\\u003a": 1, "b": {"c": 1, "c": 2}}\n', {}, "t.json, row 1", "a key occurs twice"),
    (b'{"r": {"x": 1, "x": 2}, "s": 1}', {"rows_at": ("r",)}, "t.json, row 1", "'x'"),
    (b'[{"a": 1},\n{"a": 2', {}, "t.json", "cut off"),
    (b'[{"a": 1}\n{"a": 2}]', {}, "t.json, line 2", "cannot be read as JSON"),
    (b'[{"a": 1},{"a": "\xff"}]', {}, "t.json, row 2", "malformed"),
    (b'[{"a": 1},]', {}, "t.json, line 1", "cannot be read as JSON"),
    (b'[{"a":' + b"[" * 100_000, {}, "t.json", "cannot be read as JSON"),
    (b'[{"a": 1}]', {"entries": NAMES}, "t.json", "an array"),
    (b'{"u": 1, "v": 1e999}', {"entries": NAMES}, "t.json, row 2, column 'history'", "malformed"),
    (b'{"row": [], "n": 1}', {"rows_at": ("rows",)}, "t.json", "'row' is the nearest name"),
    (b'{"rows": [{},\n7]}', {"rows_at": ("rows",)}, "t.json, row 2", "a JSON integer"),
    (b'{"rows": [{}], "rows": [{}]}', {"rows_at": ("rows",)}, "t.json", "a key occurs twice"),
    (b"{}", {"entries": NAMES, "rows_at": ()}, "t.json", "cannot have both"),
]


@pytest.mark.parametrize(
    ("name", "data", "options", "told"),
    [
        (name, data, options, told)
        for name, bad in (("t.csv", BAD_TEXT), ("t.json", BAD_JSON))
        for data, options, *told in bad
    ],
)
def test_bad_files_are_told_with_their_place(tmp_path, name, data, options, told):
    where, says = told
    error = refused(table(made(tmp_path, name, data), **options))
    assert error.where == str(tmp_path / where)
    assert says in str(error)


BAD_WALKS = [
    (b'[{"a": 1}, {"a": NaN}]', {}, "cannot be read as JSON"),
    (b'[{"a": 1}, 7]', {}, "a JSON integer"),
    (b'[{"a": 1}, {"a": "\\ud800"}]', {}, "half of a surrogate pair"),
    (b'{"a": 1, "b": 2, "a": 3}', {"entries": NAMES}, "a key occurs twice"),
    (b'{"rows": [{}],   "rows": [{}]}', {"rows_at": ("rows",)}, "a key occurs twice"),
    (b'{"row": [{}], "more": [1]}', {"rows_at": ("rows",)}, "the file has no rows"),
    (b'{"rows": [{}, {"a": 1e999}]}', {"rows_at": ("rows",)}, "cannot be read as JSON"),
    (b'{"rows": [{}, {"a": 1', {"rows_at": ("rows",)}, "cannot be read as JSON"),
]


@pytest.mark.parametrize(("data", "options", "says"), BAD_WALKS)
def test_what_is_wrong_in_a_large_document_is_told_too(tmp_path, monkeypatch, data, options, says):
    monkeypatch.setattr(records, "MOST_WHOLE", 10)
    assert says in str(refused(table(made(tmp_path, "t.json", data), **options)))


TEXT = [
    ("string", " a ", " a "), ("string", "007", "007"), ("string", "1.0", "1.0"),
    ("string", "12345678901234567890", "12345678901234567890"),
    ("integer", "42", 42), ("integer", " -7.0 ", -7), ("integer", "\u00a07", 7),
    ("integer", "9007199254740993", 9007199254740993), ("number", "3", 3.0),
    ("number", "-.5e1", -5.0), ("number", "+2.", 2.0), ("boolean", "True", True),
    ("boolean", "0", False), ("list", '["a", 1]', ["a", 1]), ("object", '{"a": 1}', {"a": 1}),
    ("any", "x", "x"),
]  # fmt: skip
NOT_TEXT = [
    *(("integer", text) for text in ("7.5", "1e3", "0x10", "1_000", "٣", "9" * 5000, "1,5", "-")),
    *(("number", text) for text in ("nan", "inf", "-Infinity", "1e999", "1_000", "0x1p3", "1,5")),
    *(("boolean", text) for text in ("yes", "t", "2")),
    *(("list", text) for text in ("['a']", "{}", "[1,]", "[NaN]", "[1e999]")),
    ("object", "[1]"),
]


def ways(of, name="cell"):
    """The cells of its only column, by rows, by columns and in a database."""
    database = Database({"people": of})
    stored = database.sql(f'SELECT "{name}" FROM people ORDER BY row')
    decode = json.loads if str(stored.types[0]) == "JSON" else lambda cell: cell
    return (
        [row[name] for row in rows(of)],
        [cell for batch in of.batches() for cell in batch.columns[name]],
        [decode(cell) for (cell,) in stored.fetchall()],
    )


@pytest.mark.parametrize(("kind", "cell", "value"), TEXT)
def test_text_becomes_the_declared_type_however_it_is_read(tmp_path, kind, cell, value):
    path = written(tmp_path / "a.csv", {"cell": [cell], "more": [1]})
    for found in ways(table(path, {"cell": Column(type=kind)})):
        assert found == [value]
        assert type(found[0]) is type(value)


@pytest.mark.parametrize(("kind", "cell"), NOT_TEXT)
def test_text_that_would_lose_something_is_refused_however_it_is_read(tmp_path, kind, cell):
    path = written(tmp_path / "a.csv", {"more": [1, 2], "cell": ["", cell]})
    of = table(path, {"cell": Column(type=kind, required=False)})
    error = refused(of)
    assert error.where == f"{path}, row 2, column 'cell'"
    for way in (lambda: list(of.batches()), lambda: Database({"people": of}).relation("people")):
        with pytest.raises(DataError) as caught:
            way()
        assert str(caught.value) == str(error)


VALUES = [("string", 7, "7"), ("integer", 7.0, 7), ("number", 7, 7.0), ("any", [1], [1])]
NOT_VALUES = [
    ("string", 7.0), ("string", True), ("integer", "7"), ("integer", True), ("integer", 7.5),
    ("integer", 1e300), ("number", 10**400), ("number", True), ("boolean", 1), ("list", "[1]"),
    ("object", [1]),
]  # fmt: skip


def test_values_with_types_keep_them(tmp_path):
    for kind, cell, value in VALUES:
        path = made(tmp_path, "a.jsonl", json.dumps({"cell": cell}) + "\n")
        assert ways(table(path, {"cell": Column(type=kind)})) == ([value],) * 3
    for kind, cell in NOT_VALUES:
        with pytest.raises(Unfit):
            value_of(kind, cell)


def test_a_bad_value_is_told_before_a_bad_row_behind_it(tmp_path):
    path = made(tmp_path, "a.csv", "user,n\nu1,1\nu2,x\nu3,3,4\n")
    read_rows = table(path, {"user": Column(), "n": Column(type="integer")}).rows()
    assert next(read_rows) == (1, {"user": "u1", "n": 1})
    with pytest.raises(DataError, match="not an integer") as caught:
        next(read_rows)
    assert caught.value.where == f"{path}, row 2, column 'n'"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_integers_of_more_than_64_bits_are_read_in_their_order(tmp_path, end):
    numbers = [*range(5000), 2**64, *range(3000)]
    path = made(tmp_path, "a.csv", end.join(["n,more", *(f"{n},x" for n in numbers), ""]))
    of = table(path, {"n": Column(type="integer")})
    assert [row["n"] for row in rows(of)] == numbers
    with pytest.raises(DataError, match=r"row 5001(?s:.*)64 bits"):
        Database({"people": of}).relation("people")


PEOPLE = {"user": Column(aliases=("user_id", "uid")), "stars": Column(type="integer")}


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_another_delimiter_is_taken_if_the_header_then_has_all_required_columns(tmp_path, mark):
    path = made(tmp_path, "a.csv", f'"uid"{mark}"stars"\n"u{mark}1"{mark}5\n')
    assert rows(table(path, PEOPLE)) == [{"user": f"u{mark}1", "stars": 5}]


def test_and_else_the_error_names_the_columns_but_of_one_column_none_is_guessed(tmp_path):
    error = refused(table(made(tmp_path, "a.csv", '"user";"star"\n"a";1\n'), PEOPLE))
    assert (error.found, "'star' is the nearest" in str(error.hint)) == ("columns user, star", True)
    error = refused(table(made(tmp_path, "a.csv", "user;x\na;1\n"), {"user": Column()}))
    assert "separated by ';'" in str(error.hint)


def test_rows_run_on_over_files_and_batches_and_errors_count_in_their_own(tmp_path, monkeypatch):
    first = made(tmp_path, "a.csv", "user,stars\nu1,1\n")
    second = made(tmp_path, "b.csv", "stars,user\n2,u2\n3,u3\n")
    notes = table_of(first, second, columns=PEOPLE)
    expected = [(1, "u1", 1), (2, "u2", 2), (3, "u3", 3)]
    assert [(number, *row.values()) for number, row in notes.rows()] == expected
    error = notes.bad(3, "stars", 3, "1 or 2")
    assert str(error) == (
        f"{second}, row 2, column 'stars': a value that cannot be used\n"
        "  found:    3 (integer)\n"
        "  expected: 1 or 2"
    )
    monkeypatch.setattr(read, "BATCH_ROWS", 2)
    first = tmp_path / "a.parquet"
    pq.write_table(pa.table({"user": list("abcd"), "stars": [1, 2, 3, 4]}), first, row_group_size=3)
    second = made(tmp_path, "b.jsonl", '{"stars": 5, "user": "e"}\n{"uid": "f", "stars": 6}\n')
    parts = list(table_of(first, second, columns=PEOPLE).batches("stars"))
    assert [cell for part in parts for cell in part.columns["stars"]] == [1, 2, 3, 4, 5, 6]
    firsts = [part.first for part in parts]
    assert firsts == [1 + sum(map(len, parts[:at])) for at in range(len(parts))]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_only_what_is_asked_for_is_checked_in_every_format(tmp_path, ending):
    columns = {
        "user": Column(), "kind": Column(one_of=("liked", "skipped")),
        "when": Column(type="any", required=False),
        "tags": Column(type="list", required=False, one_of=("[]",)),
    }  # fmt: skip
    path = written(tmp_path / f"a.{ending}", {"user": ["u", "v"], "kind": ["liked", None]})
    of = table(path, columns)
    assert [batch.columns for batch in of.batches("user")] == [{"user": ["u", "v"]}]
    assert [batch.columns for batch in of.batches("when")] == [{"when": [None, None]}]
    assert [batch.columns for batch in of.batches("tags")] == [{"tags": [None, None]}]
    with pytest.raises(DataError, match="row 2, column 'kind': the value is missing"):
        list(of.batches("user", "kind"))
    with pytest.raises(DataError, match="column 'more' is missing"):
        list(table(path, {**columns, "more": Column()}).batches("user"))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_without_declared_columns_batches_have_what_the_rows_have(tmp_path, ending):
    path = written(tmp_path / f"a.{ending}", {"x": ["1", "2"], "y": [None, "3"]})
    [batch] = table(path).batches()
    assert (batch.first, len(batch)) == (1, 2)
    assert batch.columns == {"x": ["1", "2"], "y": ["" if ending == "csv" else None, "3"]}
    assert [one.columns for one in table(path).batches("x")] == [{"x": ["1", "2"]}]
    assert [one.columns for one in table(path).batches("z")] == [{"z": [None, None]}]


def test_without_declared_columns_a_batch_has_all_columns_of_its_objects(tmp_path):
    path = made(tmp_path, "a.jsonl", '{"x": 1}\n{}\n{"y": 2, "x": 3}\n')
    [batch] = table(path).batches()
    assert batch.columns == {"x": [1, None, 3], "y": [None, None, 2]}
    assert [one.columns for one in table(path).batches("y")] == [{"y": [None, None, 2]}]


def test_a_column_missing_in_one_object_names_the_row(tmp_path):
    text = '{"user": "u", "stars": 1}\n\n{"user": "v", "star": 1}\n'
    error = refused(table(made(tmp_path, "t.jsonl", text), PEOPLE))
    assert error.where == f"{tmp_path / 't.jsonl'}, row 2"
    assert error.hint == "'star' is the nearest name: rename it if it is 'stars'"


def test_a_file_that_changed_since_it_was_opened_is_refused(tmp_path):
    notes = table(made(tmp_path, "t.csv", "user,stars\nu1,1\n"), PEOPLE)
    rows(notes)
    made(tmp_path, "t.csv", "user,stars\nu1,1\nu2,2\n")
    assert refused(notes).problem == "the file changed while the run was using it"


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.parquet.gz", "t.gz", "ratings.dat"])
def test_an_unknown_format_lists_the_known_ones(tmp_path, name):
    with pytest.raises(DataError, match="the format of the file is not supported") as caught:
        format_of(tmp_path / name)
    assert ".jsonl" in str(caught.value.expected)
    assert ("`delimited: {delimiter: …}`" in str(caught.value.hint)) == name.endswith(".dat")


@pytest.mark.parametrize("name", ["ratings.DAT.gz", "ratings.dat.zst", "ratings", "ratings.tsv.gz"])
def test_files_of_any_ending_are_read_with_the_tasks_delimiter(tmp_path, name):
    packs = {".gz": gzip.compress, ".zst": zstandard.compress}
    made(tmp_path, name, packs.get(Path(name).suffix, bytes)(b"u1::caf\xe9::4\nu2::b::x\n"))
    delimited = DelimitedSpec(
        delimiter="::", header=("user", "title", "stars"), encoding="iso-8859-1"
    )
    spec = TableSpec(files=("ratings*",), delimited=delimited, columns=PEOPLE)
    found = data_in(tmp_path, DataSpec(tables={"ratings": spec})).table().rows()
    assert next(found) == (1, {"user": "u1", "stars": 4})
    with pytest.raises(DataError, match="row 2, column 'stars': not an integer"):
        next(found)


NOISE = random.Random(0).randbytes(400_000).hex()


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("zst", zstandard.compress)])
def test_packed_files_are_read_whole_or_not_at_all(tmp_path, ending, pack):
    parts = [b"a,b\n", f"{NOISE},1\n".encode(), b"last,2\n"]
    expected = [{"a": NOISE, "b": "1"}, {"a": "last", "b": "2"}]
    for packed in (pack(b"".join(parts)), b"".join(map(pack, parts))):
        assert rows(table(made(tmp_path, f"t.csv.{ending}", packed))) == expected
    for cut in (3, 10_000, -1):
        of = table(made(tmp_path, f"t.csv.{ending}", pack(b"".join(parts))[:cut]))
        assert "cannot be read as" in refused(of).problem


def test_parquet_gives_nested_values_and_the_first_bad_one(tmp_path):
    columns = {"user": [7, 8], "items": [["a"], None], "score": [1.5, float("nan")]}
    path = written(tmp_path / "t.parquet", columns)
    nested = {"user": Column(), "items": Column(type="list", required=False)}
    assert rows(table(path, nested)) == [
        {"user": "7", "items": ["a"]},
        {"user": "8", "items": None},
    ]
    error = refused(table(path, {"score": Column(type="number")}))
    assert error.where == f"{path}, row 2, column 'score'"
    assert (error.found, error.hint) == ("nan (number)", "write a missing number as null")


@pytest.mark.parametrize("names", [["a", "a"], ["User", "user"]])
def test_names_that_duckdb_takes_for_one_are_refused(tmp_path, names):
    pq.write_table(
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names), tmp_path / "t.parquet"
    )
    assert "two columns have the name" in refused(table(tmp_path / "t.parquet")).problem


def test_a_split_may_have_names_that_differ_in_case_alone():
    held = pa.record_batch({"User": [1], "user": [2]})
    split = SimpleNamespace(
        label="hub",
        columns=lambda: tuple(held.schema.names),
        batches=lambda names: [held.select(names)],
    )
    of = Table(name="people", columns={"user": Column(type="integer")}, sources=[split])
    assert ways(of, "user") == ([2], [2], [2])


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda data: b"", "the file is empty"),
        (lambda data: data[:8], "the file cannot be read as Parquet"),
        (lambda data: data[:-1], "the file cannot be read as Parquet"),
        (
            lambda data: data[:100] + b"\xff" * 3900 + data[4000:],
            "the file cannot be read as Parquet",
        ),
    ],
)
def test_damaged_parquet_is_told(tmp_path, damage, problem):
    path = written(tmp_path / "t.parquet", {"a": [f"{n:09d}" for n in range(5000)]})
    path.write_bytes(damage(path.read_bytes()))
    error = refused(table(path, {"a": Column()}))
    assert (error.problem, error.where) == (problem, str(path))


def test_a_header_of_many_columns_is_read_in_one_pass(tmp_path):
    """Comparing each name with all others would outlast the time that a test has."""
    text = ",".join(f"c{number}" for number in range(200_000)) + "\n"
    assert len(table(made(tmp_path, "wide.csv", text)).sources[0].columns()) == 200_000


def test_no_extension_of_duckdb_is_installed_or_needed(tmp_path):
    """In a home that nothing can be written to, every format is read."""
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    written(tmp_path / "a.parquet", {"user": ["u"], "stars": [1]})
    written(tmp_path / "a.jsonl", {"user": ["u"], "stars": [1]})
    made(tmp_path, "a.csv", b"user,stars\n\xe9,1\n")
    made(tmp_path, "b.csv", "user,stars\nü,1\n".encode("utf-16"))
    code = (
        "import sys; from pathlib import Path; from harness.data.database import Database\n"
        "from harness.analysis.user_tables import table\n"
        "from harness.contracts.task import Column\n"
        "columns = {'user': Column(), 'stars': Column(type='any')}\n"
        "for path in sorted(Path(sys.argv[1]).glob('?.*')):\n"
        "    read = table(str(path), 't', columns)\n"
        "    database = Database({'t': read})\n"
        "    print(len([*read.rows()]), database.relation('t').count('*').fetchall())\n"
    )
    environment = {**os.environ, "HOME": str(home)}
    command = [sys.executable, "-c", code, str(tmp_path)]
    told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert told.stdout.splitlines() == ["1 [(1,)]"] * 4
    assert list(home.iterdir()) == []


def test_a_process_makes_one_connection_for_all_files_that_duckdb_reads(tmp_path, monkeypatch):
    made_ones = []
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *a, **o: made_ones.append(1) or connect(*a, **o))
    read._connection.cache_clear()
    for number in range(5):
        rows(table(written(tmp_path / f"{number}.parquet", {"user": ["u"], "stars": [1]}), PEOPLE))
    assert len(made_ones) == 1


FOLDERS = ("user=bob", "item=3/c0=bob", "user=bob'", "a*b", "[ab]", "??", "file:", 'a"b', "é%20")


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_no_name_of_a_folder_or_column_changes_a_value(tmp_path, folder, ending):
    """Names like those of partitions, patterns, addresses and words of SQL; rows and SQL agree."""
    columns = {"user": ["u1", "u2"], 'a "b".c': ["tea", "NULL"], "select": ["1.0", " "]}
    matched = re.sub(r"[*?]|\[.*\]", "a", folder)
    for name, cells in ((matched, {key: ["no"] for key in columns}), (folder, columns)):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        file = written(tmp_path / name / f"ratings{ending}", cells)
    of = table(file, {name: Column(required=False) for name in columns})
    chosen = ", ".join(map(quoted, columns))
    database = Database({"people": of})
    found = database.sql(f"SELECT row, {chosen} FROM people ORDER BY row")
    expected = [(1, "u1", "tea", "1.0"), (2, "u2", "NULL", " ")]
    assert found.fetchall() == expected
    assert [(number, *row.values()) for number, row in of.rows()] == expected


def by_rows(of):
    return [[*row.values()] for row in rows(of)]


def by_sql(of):
    database = Database({"people": of})
    found = database.sql("SELECT * EXCLUDE row FROM people ORDER BY row")
    return [[*row] for row in found.fetchall()]


OVER_64_BITS = "a.csv, row 1, column 'stars': a value that cannot be used"


@pytest.mark.parametrize(
    ("read", "others"),
    [(by_rows, {}), (by_sql, {"user,stars\nu,99999999999999999999\n": OVER_64_BITS})],
)
def test_wrong_files_are_read_as_they_are_recorded(tmp_path, read, others):
    """`wrong_files.json` has the rows of each CSV, or the place and problem of its error."""
    recorded = json.loads(Path(__file__).with_name("wrong_files.json").read_text("utf-8"))
    found = {}
    for text in recorded:
        columns = {**PEOPLE, "stars": Column(type="integer", required=False)}
        try:
            found[text] = read(table(made(tmp_path, "a.csv", text), columns))
        except DataError as error:
            found[text] = f"{error.where}: {error.problem}".replace(f"{tmp_path}/", "")
    assert found == {**recorded, **others}
