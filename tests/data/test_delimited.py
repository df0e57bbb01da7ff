"""CSV and TSV, from bytes on disk to rows or a message."""

import gzip

import msgspec
import pytest
import zstandard
from builders.tables import data_in
from harness.data.delimited import read_delimited, read_header

from harness.base.errors import DataError
from harness.contracts.task import Column, DataSpec, DelimitedSpec, TableSpec
from harness.data.read import format_of


def rows(folder, data, **options):
    path = folder / "t.csv"
    path.write_bytes(data)
    return list(read_delimited(path, **{"delimiter": ",", "wanted": None, **options}))


RATINGS = DelimitedSpec(delimiter="::", header=("user", "title", "rating"))
LATIN = DelimitedSpec(encoding="iso-8859-1")
RETURNS = DelimitedSpec(bare_returns="space")

READ = {
    "rows begin on their lines": (
        b'user,note\r\nu1,"two\nlines, one ""cell"""\r\n\r\nu2,b\r\n', {},
        [(2, "u1", 'two\nlines, one "cell"'), (5, "u2", "b")],
    ),
    "a byte order mark": (b"\xef\xbb\xbfuser,n\nu1,1\n", {"wanted": ["user"]}, [(2, "u1")]),
    "names are stripped, columns without one left out": (b", user ,\n0,u1,x\n", {}, [(2, "u1")]),
    "only wanted columns": (b"a,b,c\n1,2,3\n", {"wanted": ["c"]}, [(2, "3")]),
    "tabs": (b"a\tb\n1,5\t2\n", {"delimiter": "\t"}, [(2, "1,5", "2")]),
    "a return between quotes": (b'a,b\n"x\ry",1\n', {}, [(2, "x\ry", "1")]),
    "without quotes": (
        b'title\tn\r\n"So there\t1\r\nHe said "no" twice\t2\r\n""\t\r\n',
        {"delimiter": "\t", "written": DelimitedSpec(quotes=False)},
        [(2, '"So there', "1"), (3, 'He said "no" twice', "2"), (4, '""', "")],
    ),
    "a bare return is a space": (
        b"a,b\none\rtwo,x\nlast,y\n", {"written": RETURNS}, [(2, "one two", "x"), (3, "last", "y")],
    ),
    "and between quotes": (
        b'a,b\r\n"one\rtwo",x\r\nlast,y\r\n', {"written": RETURNS},
        [(2, "one two", "x"), (3, "last", "y")],
    ),
    "and at the end of a line": (
        b"a,b\n1,one\r\r\n2,two\n", {"written": RETURNS}, [(2, "1", "one "), (3, "2", "two")],
    ),
    "a delimiter of two characters, of which one is text": (
        b'1::Alien: "3"::5\n\n2::::4\r\n3:::x:::1\n',
        {"delimiter": "::", "written": msgspec.structs.replace(RATINGS, quotes=False)},
        [(1, "1", 'Alien: "3"', "5"), (3, "2", "", "4"), (4, "3", ":x", ":1")],
    ),
    "and between quotes both are": (
        b'1::"a::b, ""c""\n::d"::5\n\n2::":"::4\n', {"delimiter": "::", "written": RATINGS},
        [(1, "1", 'a::b, "c"\n::d', "5"), (4, "2", ":", "4")],
    ),
    # 0xe9 is é and 0xa0 a space that does not break; 0x85 ends no line.
    "text in Latin-1": (
        b"title,n\nMis\xe9rables,1\na\x85b\xa0,2\n", {"written": LATIN},
        [(2, "Misérables", "1"), (3, "a\x85b\xa0", "2")],
    ),
    "surplus cells are text of the last": (
        b"a,b\n1,one,two,\n2,two\n", {"written": DelimitedSpec(quotes=False, surplus="last")},
        [(2, "1", "one,two,"), (3, "2", "two")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_rows_are_read_as_the_task_says(tmp_path, case):
    data, options, expected = READ[case]
    found = rows(tmp_path, data, **options)
    assert [(line, *row.values()) for line, row in found] == expected


def test_cells_stand_under_the_names_of_their_columns(tmp_path):
    assert rows(tmp_path, b"a, b ,c\n1,2,3\n", wanted=["c", "b"]) == [(2, {"b": "2", "c": "3"})]
    assert rows(tmp_path, b"\xef\xbb\xbfuser,n\nu1,1\n") == [(2, {"user": "u1", "n": "1"})]


def test_a_cell_may_be_longer_than_the_csv_modules_own_limit(tmp_path):
    assert len(rows(tmp_path, b"a\n" + b"x" * 200_000 + b"\n")[0][1]["a"]) == 200_000


COLONS = {"delimiter": "::", "written": RATINGS}
SURPLUS = {"written": DelimitedSpec(quotes=False, surplus="last")}


@pytest.mark.parametrize(
    ("data", "options", "where", "says"),
    [
        (b"\n\n", {}, "t.csv", "the file is empty"),
        (b"a,b\n1,2\n3\n", {}, "t.csv, row 2 (line 3)", "fewer cells"),
        (b"a,b\n1\n", SURPLUS, "t.csv, row 1 (line 2)", "fewer cells than the header"),
        (b"a,b\r1,2\r3,4\r", {}, "t.csv, line 1", "old Macintosh files"),
        (b'a,b\n1,2\n"3,4\n5,6\n', {}, "t.csv, row 2 (line 3)", "a quoted cell is never closed"),
        (b"a,b\nJos\xe9,2\n", {}, "t.csv, line 2", "byte 0xe9 at offset 7"),
        (b"\xef\xbb\xbfa\n\xff\n", {}, "t.csv, line 2", "byte 0xff at offset 5"),
        ("a,b\n1,2\n".encode("utf-16"), {}, "t.csv", "UTF-16 text"),
        (b"\xef\xbb\xbfa\nb\n", {"written": LATIN}, "t.csv", "UTF-8 text, unlike the task's"),
        (b"PAR1abc", {}, "t.csv", "name it with .parquet at the end"),
        (b"PK\x03\x04rest", {}, "t.csv", "a ZIP archive or a spreadsheet"),
        (b"1::a::5\n2::b\n", COLONS, "t.csv, row 2 (line 2)", "2 cells; 'rating' is the first"),
        (b"1::a::5::9\n", COLONS, "t.csv, row 1 (line 1)", "4 cells; the first surplus cell: '9'"),
        (b'1::a::5\n2::"b::4\n', COLONS, "t.csv, row 2 (line 2)", "is never closed"),
        (b'1::"a"b::5\n', COLONS, "t.csv, row 1 (line 1)", "continues after its closing quote"),
        ("1::a::5\n2::\ufdd0::5\n".encode(), COLONS, "t.csv, line 2", "U+FDD0"),
    ],
)
def test_bad_files_are_told_with_their_place(tmp_path, data, options, where, says):
    with pytest.raises(DataError) as caught:
        rows(tmp_path, data, **options)
    assert caught.value.where == str(tmp_path / where)
    assert says in str(caught.value)


def test_files_without_a_header_line_take_their_names_from_the_task(tmp_path):
    written = DelimitedSpec(header=("user", "note"))
    assert rows(tmp_path, b"u1,a\n\nu2,b\n", written=written) == [
        (1, {"user": "u1", "note": "a"}),
        (3, {"user": "u2", "note": "b"}),
    ]
    assert read_header(tmp_path / "t.csv", delimiter=",", written=written) == ("user", "note")


def test_a_row_of_another_width_is_told_without_talk_of_quotes(tmp_path):
    written = DelimitedSpec(header=("a", "b"), quotes=False)
    with pytest.raises(DataError) as caught:
        rows(tmp_path, b"1\t2\n1\t2\t3\n", delimiter="\t", written=written)
    assert caught.value.where == f"{tmp_path / 't.csv'}, row 2 (line 2)"
    assert caught.value.found == "3 cells; the first surplus cell: '3'"
    assert caught.value.hint is None


RATING = {"user": Column(), "rating": Column(type="integer")}


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("ratings.DAT.gz", gzip.compress),
        ("ratings.dat.zst", zstandard.compress),
        ("ratings", bytes),
        ("ratings.tsv.gz", gzip.compress),
    ],
)
def test_files_of_any_ending_are_read_with_the_tasks_delimiter(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(b"u1::caf\xe9::4\nu2::b::x\n"))
    written = msgspec.structs.replace(RATINGS, encoding="iso-8859-1")
    spec = DataSpec(
        tables={"ratings": TableSpec(files=("ratings*",), delimited=written, columns=RATING)}
    )
    read = data_in(tmp_path, spec).table().rows()
    assert next(read) == (1, {"user": "u1", "rating": 4})
    with pytest.raises(DataError, match="not an integer") as caught:
        next(read)
    assert caught.value.where == f"{tmp_path / name}, row 2 (line 2), column 'rating'"


def test_json_stays_json_where_the_task_names_a_delimiter(tmp_path):
    (tmp_path / "ratings.jsonl").write_text('{"user": "u1", "rating": 4}\n')
    spec = DataSpec(tables={"ratings": TableSpec(delimited=RATINGS, columns=RATING)})
    assert list(data_in(tmp_path, spec).table().rows()) == [(1, {"user": "u1", "rating": 4})]


def test_text_without_a_known_ending_wants_a_delimiter_in_the_task(tmp_path):
    with pytest.raises(DataError, match=r"the extension '\.dat'") as caught:
        format_of(tmp_path / "ratings.dat")
    assert caught.value.hint is not None
    assert "`delimited: {delimiter: …}`" in caught.value.hint


def test_a_header_of_many_columns_is_read_in_one_pass(tmp_path):
    """Comparing each name with all others would outlast the time that a test has."""
    names = [f"c{number}" for number in range(200_000)]
    file = tmp_path / "wide.csv"
    file.write_text(",".join(names) + "\n")
    assert len(read_header(file, delimiter=",")) == 200_000
