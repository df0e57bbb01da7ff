"""CSV and TSV, from bytes on disk to rows or a message."""

import gzip

import msgspec
import pytest
import zstandard
from builders.tables import data_in

from harness.base.errors import DataError
from harness.contracts.task import Column, DataSpec, DelimitedSpec, TableSpec
from harness.data.delimited import read_delimited, read_header
from harness.data.source import format_of


def rows(folder, data, **options):
    path = folder / "t.csv"
    path.write_bytes(data)
    return list(read_delimited(path, **{"delimiter": ",", "wanted": None, **options}))


def test_rows_carry_the_line_they_begin_on(tmp_path):
    data = b'user,note\r\nu1,"two\nlines, one ""cell"""\r\n\r\nu2,b\r\n'
    assert rows(tmp_path, data) == [
        (2, {"user": "u1", "note": 'two\nlines, one "cell"'}),
        (5, {"user": "u2", "note": "b"}),
    ]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    assert rows(tmp_path, b"\xef\xbb\xbfuser,n\nu1,1\n") == [(2, {"user": "u1", "n": "1"})]


def test_names_are_stripped_and_unnamed_columns_left_out(tmp_path):
    assert rows(tmp_path, b", user ,\n0,u1,x\n") == [(2, {"user": "u1"})]


def test_only_wanted_columns_come(tmp_path):
    assert rows(tmp_path, b"a,b,c\n1,2,3\n", wanted=["c"]) == [(2, {"c": "3"})]


def test_tabs_delimit_tsv(tmp_path):
    assert rows(tmp_path, b"a\tb\n1,5\t2\n", delimiter="\t") == [(2, {"a": "1,5", "b": "2"})]


def test_a_cell_may_be_longer_than_the_csv_modules_own_limit(tmp_path):
    assert len(rows(tmp_path, b"a\n" + b"x" * 200_000 + b"\n")[0][1]["a"]) == 200_000


def test_a_carriage_return_in_a_quoted_cell_stays(tmp_path):
    assert rows(tmp_path, b'a,b\n"x\ry",1\n') == [(2, {"a": "x\ry", "b": "1"})]


@pytest.mark.parametrize(
    ("data", "where", "says"),
    [
        (b"", "t.csv", "the file is empty"),
        (b"\n\n", "t.csv", "the file is empty"),
        (b"a,b,a\n1,2,3\n", "t.csv, line 1", "two columns have the name 'a'"),
        (b"a,b\n1,2\n3\n", "t.csv, row 2 (line 3)", "fewer cells"),
        (b"a,b\n1,2,3\n", "t.csv, row 1 (line 2)", "3 cells; the first surplus cell: '3'"),
        (b"a,b\nx\ry,1\n", "t.csv, row 1 (line 2)", "contains a carriage return"),
        (b"a,b\r1,2\r3,4\r", "t.csv, line 1", "old Macintosh files"),
        (b'a,b\n1,2\n"3,4\n5,6\n', "t.csv, row 2 (line 3)", "a quoted cell is never closed"),
        (b'a,b\n"1"x,2\n', "t.csv, row 1 (line 2)", "continues after its closing quote"),
        (b"a,b\nJos\xe9,2\n", "t.csv, line 2", "byte 0xe9 at offset 7"),
        (b"\xef\xbb\xbfa\n\xff\n", "t.csv, line 2", "byte 0xff at offset 5"),
        ("a,b\n1,2\n".encode("utf-16"), "t.csv", "UTF-16 text"),
        (b"PK\x03\x04rest", "t.csv", "a ZIP archive or a spreadsheet"),
        (b"\x1f\x8brest", "t.csv", "name it with .gz"),
    ],
)
def test_bad_files_are_told_with_their_place(tmp_path, data, where, says):
    with pytest.raises(DataError) as caught:
        rows(tmp_path, data)
    assert caught.value.where == str(tmp_path / where)
    assert says in str(caught.value)


def test_the_header_alone_can_be_read(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_bytes(b"a\tb\n")
    assert read_header(path, delimiter="\t") == ("a", "b")


def test_files_without_a_header_line_take_their_names_from_the_task(tmp_path):
    written = DelimitedSpec(header=("user", "note"))
    assert rows(tmp_path, b"u1,a\n\nu2,b\n", written=written) == [
        (1, {"user": "u1", "note": "a"}),
        (3, {"user": "u2", "note": "b"}),
    ]
    assert read_header(tmp_path / "t.csv", delimiter=",", written=written) == ("user", "note")


def test_without_quotes_a_quotation_mark_is_a_character(tmp_path):
    written = DelimitedSpec(quotes=False)
    data = b'title\tn\r\n"So there\t1\r\nHe said "no" twice\t2\r\n""\t\r\n'
    assert rows(tmp_path, data, delimiter="\t", written=written) == [
        (2, {"title": '"So there', "n": "1"}),
        (3, {"title": 'He said "no" twice', "n": "2"}),
        (4, {"title": '""', "n": ""}),
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\none\rtwo,x\nlast,y\n",
        b'a,b\r\n"one\rtwo",x\r\nlast,y\r\n',
    ],
)
def test_a_bare_return_is_a_space_where_the_task_says_so(tmp_path, data):
    written = DelimitedSpec(bare_returns="space")
    assert rows(tmp_path, data, written=written) == [
        (2, {"a": "one two", "b": "x"}),
        (3, {"a": "last", "b": "y"}),
    ]


def test_a_bare_return_at_the_end_of_the_last_cell_is_a_space_too(tmp_path):
    written = DelimitedSpec(bare_returns="space")
    assert rows(tmp_path, b"a,b\n1,one\r\r\n2,two\n", written=written) == [
        (2, {"a": "1", "b": "one "}),
        (3, {"a": "2", "b": "two"}),
    ]


RATINGS = DelimitedSpec(delimiter="::", header=("user", "title", "rating"))


def test_a_delimiter_may_have_several_characters_and_a_colon_is_text(tmp_path):
    written = msgspec.structs.replace(RATINGS, quotes=False)
    data = b'1::Alien: "3"::5\n\n2::::4\r\n3:::x:::1\n'
    assert rows(tmp_path, data, delimiter="::", written=written) == [
        (1, {"user": "1", "title": 'Alien: "3"', "rating": "5"}),
        (3, {"user": "2", "title": "", "rating": "4"}),
        (4, {"user": "3", "title": ":x", "rating": ":1"}),
    ]


def test_a_delimiter_of_several_characters_inside_quotes_is_text(tmp_path):
    data = b'1::"a::b, ""c""\n::d"::5\n\n2::":"::4\n'
    assert rows(tmp_path, data, delimiter="::", written=RATINGS) == [
        (1, {"user": "1", "title": 'a::b, "c"\n::d', "rating": "5"}),
        (4, {"user": "2", "title": ":", "rating": "4"}),
    ]


@pytest.mark.parametrize(
    ("data", "where", "says"),
    [
        (b"1::a::5\n2::b\n", "row 2 (line 2)", "2 cells; 'rating' is the first column without"),
        (b"1::a::5::9\n", "row 1 (line 1)", "4 cells; the first surplus cell: '9'"),
        (b'1::a::5\n2::"b::4\n', "row 2 (line 2)", "a quoted cell is never closed"),
        (b'1::"a"b::5\n', "row 1 (line 1)", "continues after its closing quote"),
        ("1::a::5\n2::\ufdd0::5\n".encode(), "line 2", "U+FDD0"),
    ],
)
def test_bad_rows_with_such_a_delimiter_are_told_with_their_place(tmp_path, data, where, says):
    with pytest.raises(DataError) as caught:
        rows(tmp_path, data, delimiter="::", written=RATINGS)
    assert caught.value.where == f"{tmp_path / 't.csv'}, {where}"
    assert says in str(caught.value)


LATIN = DelimitedSpec(encoding="iso-8859-1")


def test_text_is_decoded_as_the_task_says(tmp_path):
    # 0xe9 is é and 0xa0 a space that does not break; 0x85 ends no line.
    data = b"title,n\nMis\xe9rables,1\na\x85b\xa0,2\n"
    assert rows(tmp_path, data, written=LATIN) == [
        (2, {"title": "Misérables", "n": "1"}),
        (3, {"title": "a\x85b\xa0", "n": "2"}),
    ]


def test_text_with_the_mark_of_utf_8_is_not_read_as_latin_1(tmp_path):
    with pytest.raises(DataError, match="the file is UTF-8 text, unlike the task's `encoding`"):
        rows(tmp_path, b"\xef\xbb\xbftitle\nMis\xc3\xa9rables\n", written=LATIN)


RATING = {"user": Column(), "rating": Column(type="integer")}


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("ratings.dat", bytes),
        ("ratings.DAT.gz", gzip.compress),
        ("ratings.dat.zst", zstandard.compress),
        ("ratings", bytes),
        ("ratings.csv", bytes),
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


def test_surplus_cells_are_text_of_the_last_where_the_task_says_so(tmp_path):
    written = DelimitedSpec(quotes=False, surplus="last")
    assert rows(tmp_path, b"a,b\n1,one,two,\n2,two\n", written=written) == [
        (2, {"a": "1", "b": "one,two,"}),
        (3, {"a": "2", "b": "two"}),
    ]
