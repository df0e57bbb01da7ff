"""Tables over real files: aliases, types, absent values, several files, and places in errors."""

import pytest
from builders.tables import refused, table_of

from harness.contracts.task import Column

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
