"""Tables over real files: aliases, types, absent values, several files, and places in errors."""

import pytest
from builders.tables import refused, table_of, written

from harness.base.errors import DataError
from harness.contracts.task import Column
from harness.data import table as further
from harness.data.read import FileSource

COLUMNS = {
    "user": Column(aliases=("user_id", "uid")),
    "stars": Column(type="integer"),
    "note": Column(required=False),
}


def table(folder, files, columns=COLUMNS):
    for name, data in files.items():
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return table_of(*(folder / name for name in files), columns=columns, name="notes")


def test_rows_run_on_over_files_and_errors_count_in_their_own(tmp_path):
    notes = table(tmp_path, {"a.csv": "user,stars\nu1,1\n", "b.csv": "stars,user\n2,u2\n3,u3\n"})
    assert [(n, row["user"], row["stars"]) for n, row in notes.rows()] == [
        (1, "u1", 1),
        (2, "u2", 2),
        (3, "u3", 3),
    ]
    error = notes.bad(3, "stars", 3, "1 or 2")
    assert str(error) == (
        f"{tmp_path / 'b.csv'}, row 2 (line 3), column 'stars': a value that cannot be used\n"
        "  found:    3 (integer)\n"
        "  expected: 1 or 2"
    )


def test_the_own_name_goes_before_aliases_in_the_order_of_the_task(tmp_path):
    columns = {"user": COLUMNS["user"]}
    own = table(tmp_path, {"a.csv": "uid,user_id,user\n1,2,3\n"}, columns)
    aliased = table(tmp_path, {"b.csv": "uid,user_id\n1,2\n"}, columns)
    assert list(own.rows()) == [(1, {"user": "3"})]
    assert list(aliased.rows()) == [(1, {"user": "2"})]


def test_a_column_missing_in_one_object_names_the_row(tmp_path):
    error = refused(
        table(tmp_path, {"t.jsonl": '{"user": "u", "stars": 1}\n\n{"user": "v", "star": 1}\n'})
    )
    assert error.where == f"{tmp_path / 't.jsonl'}, row 2 (line 3)"
    assert error.hint == "'star' is the nearest name: rename it if it is 'stars'"


def test_a_file_that_changed_since_it_was_opened_is_refused(tmp_path):
    notes = table(tmp_path, {"t.csv": "user,stars\nu1,1\n"})
    list(notes.rows())
    (tmp_path / "t.csv").write_text("user,stars\nu1,1\nu2,2\n")
    assert refused(notes).problem == "the file changed while the run was using it"


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.parquet.gz", "t.gz"])
def test_an_unknown_format_lists_the_known_ones(tmp_path, name):
    error = refused(table(tmp_path, {name: "x"}))
    assert error.problem == "the format of the file is not supported"
    assert ".jsonl" in str(error.expected)


KINDS = {
    "user": Column(aliases=("uid",)),
    "kind": Column(one_of=("liked", "skipped")),
    "stars": Column(type="integer", required=False),
}


def refused_by_both(folder, name, text):
    """The error of reading these rows, the same whether by rows or by columns."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    of = table_of(path, columns=KINDS, name="notes")
    error = refused(of)
    with pytest.raises(DataError) as by_columns:
        list(of.batches())
    assert str(by_columns.value) == str(error)
    return error


def test_values_that_cannot_be_used_are_counted_the_most_frequent_first(tmp_path):
    error = refused_by_both(
        tmp_path,
        "a.csv",
        "uid,kind,stars\n1,liked,5\n2,LIKED,5\n3,view,4\n4,skipped,\n5,view,x\n,liked,3\n",
    )
    assert error.where == f"{tmp_path / 'a.csv'}, row 2 (line 3), column 'kind'"
    assert error.found == (
        "'LIKED'\n            3 of the next 4 rows cannot be used either: "
        "'view' in 'kind' (2), 'x' in 'stars' (1), '' in 'uid' (1)"
    )


def test_rows_of_json_need_not_have_the_same_columns(tmp_path):
    error = refused_by_both(
        tmp_path,
        "a.jsonl",
        '{"user": "1", "kind": "no"}\n{"uid": 2, "kind": "liked", "stars": "x"}\n'
        '{"user": null, "kind": "liked"}\n{"kind": "liked"}\n{"user": "4", "kind": "no"}\n',
    )
    # The fourth row lacks a column: nothing behind it is looked at.
    assert error.found == (
        "'no'\n            2 of the next 2 rows cannot be used either: "
        "'x' in 'stars' (1), nothing in 'user' (1)"
    )


def test_only_so_many_rows_and_values_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(further, "MOST_ROWS", 7)
    rows = "".join(f"{number},k{number}\n" for number in range(20))
    assert refused_by_both(tmp_path, "a.csv", f"user,kind\n{rows}").found == (
        "'k0'\n            7 of the next 7 rows cannot be used either: 'k1' in 'kind' (1), "
        "'k2' in 'kind' (1), 'k3' in 'kind' (1), 'k4' in 'kind' (1), 'k5' in 'kind' (1) "
        "and 2 other values"
    )


@pytest.mark.parametrize("by", ["rows", "batches", "batches of one column"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_behind_a_bad_one_are_read_on_to_and_none_is_read_again(
    tmp_path, monkeypatch, by, ending
):
    monkeypatch.setattr(further, "BATCH_ROWS", 2)
    kinds = ["liked", "liked", "no", "no", "no", "liked"]
    path = written(tmp_path / f"a.{ending}", {"user": [*"123456"], "kind": kinds})
    of = table_of(path, columns=KINDS, name="notes")
    begun = []

    def counted(read):
        def reading(*given, **more):
            found = read(*given, **more)
            begun.extend([found] if found is not None else [])
            return found

        return reading

    for name in ("rows", "batches"):
        monkeypatch.setattr(FileSource, name, counted(getattr(FileSource, name)))
    with pytest.raises(DataError) as caught:
        list(of.rows() if by == "rows" else of.batches(*["kind"] * by.endswith("column")))
    assert "2 of the next 3 rows cannot be used either: 'no' in 'kind' (2)" in caught.value.found
    assert len(begun) == 1
