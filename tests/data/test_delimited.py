"""CSV and TSV, from bytes on disk to rows or a message."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import DataError
from harness.contracts.task import DelimitedSpec
from harness.data.delimited import read_delimited, read_header


def rows(folder: Path, data: bytes, **options: Any) -> list[tuple[int, dict[str, str]]]:
    path = folder / "t.csv"
    path.write_bytes(data)
    return list(read_delimited(path, **{"delimiter": ",", "wanted": None, **options}))


def test_rows_carry_the_line_they_begin_on(tmp_path: Path) -> None:
    data = b'user,note\r\nu1,"two\nlines, one ""cell"""\r\n\r\nu2,b\r\n'
    assert rows(tmp_path, data) == [
        (2, {"user": "u1", "note": 'two\nlines, one "cell"'}),
        (5, {"user": "u2", "note": "b"}),
    ]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    assert rows(tmp_path, b"\xef\xbb\xbfuser,n\nu1,1\n") == [(2, {"user": "u1", "n": "1"})]


def test_names_are_stripped_and_unnamed_columns_left_out(tmp_path: Path) -> None:
    assert rows(tmp_path, b", user ,\n0,u1,x\n") == [(2, {"user": "u1"})]


def test_only_wanted_columns_come(tmp_path: Path) -> None:
    assert rows(tmp_path, b"a,b,c\n1,2,3\n", wanted=["c"]) == [(2, {"c": "3"})]


def test_tabs_delimit_tsv(tmp_path: Path) -> None:
    assert rows(tmp_path, b"a\tb\n1,5\t2\n", delimiter="\t") == [(2, {"a": "1,5", "b": "2"})]


def test_a_cell_may_be_longer_than_the_csv_modules_own_limit(tmp_path: Path) -> None:
    assert len(rows(tmp_path, b"a\n" + b"x" * 200_000 + b"\n")[0][1]["a"]) == 200_000


def test_a_carriage_return_in_a_quoted_cell_stays(tmp_path: Path) -> None:
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
def test_bad_files_are_told_with_their_place(
    tmp_path: Path, data: bytes, where: str, says: str
) -> None:
    with pytest.raises(DataError) as caught:
        rows(tmp_path, data)
    assert caught.value.where == str(tmp_path / where)
    assert says in str(caught.value)


def test_the_header_alone_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_bytes(b"a\tb\n")
    assert read_header(path, delimiter="\t") == ("a", "b")


def test_files_without_a_header_line_take_their_names_from_the_task(tmp_path: Path) -> None:
    written = DelimitedSpec(header=("user", "note"))
    assert rows(tmp_path, b"u1,a\n\nu2,b\n", written=written) == [
        (1, {"user": "u1", "note": "a"}),
        (3, {"user": "u2", "note": "b"}),
    ]
    assert read_header(tmp_path / "t.csv", delimiter=",", written=written) == ("user", "note")


def test_without_quotes_a_quotation_mark_is_a_character(tmp_path: Path) -> None:
    written = DelimitedSpec(quotes=False)
    data = b'title\tn\r\n"So there\t1\r\nHe said "no" twice\t2\r\n""\t\r\n'
    assert rows(tmp_path, data, delimiter="\t", written=written) == [
        (2, {"title": '"So there', "n": "1"}),
        (3, {"title": 'He said "no" twice', "n": "2"}),
        (4, {"title": '""', "n": ""}),
    ]


def test_a_row_of_another_width_is_told_without_talk_of_quotes(tmp_path: Path) -> None:
    written = DelimitedSpec(header=("a", "b"), quotes=False)
    with pytest.raises(DataError) as caught:
        rows(tmp_path, b"1\t2\n1\t2\t3\n", delimiter="\t", written=written)
    assert caught.value.where == f"{tmp_path / 't.csv'}, row 2 (line 2)"
    assert caught.value.found == "3 cells; the first surplus cell: '3'"
    assert caught.value.hint is None


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\none\rtwo,x\nlast,y\n",
        b'a,b\r\n"one\rtwo",x\r\nlast,y\r\n',
    ],
)
def test_a_bare_return_is_a_space_where_the_task_says_so(tmp_path: Path, data: bytes) -> None:
    written = DelimitedSpec(bare_returns="space")
    assert rows(tmp_path, data, written=written) == [
        (2, {"a": "one two", "b": "x"}),
        (3, {"a": "last", "b": "y"}),
    ]


def test_a_bare_return_at_the_end_of_the_last_cell_is_a_space_too(tmp_path: Path) -> None:
    written = DelimitedSpec(bare_returns="space")
    assert rows(tmp_path, b"a,b\n1,one\r\r\n2,two\n", written=written) == [
        (2, {"a": "1", "b": "one "}),
        (3, {"a": "2", "b": "two"}),
    ]


def test_many_columns_take_no_time(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(200_000)]
    file = tmp_path / "wide.csv"
    file.write_text(",".join(names) + "\n")
    began = time.process_time()
    assert len(read_header(file, delimiter=",")) == 200_000
    assert time.process_time() - began < 5
