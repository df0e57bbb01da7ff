"""Which files of a folder hold a task's tables, and which folder is meant."""

import pytest

from harness.base.errors import DataError
from harness.contracts.task import TableSpec
from harness.data.files import files_of, find_tables, holder_of, patterns

SEEN = TableSpec(files=("seen.csv", "seen-*.csv"))
FILMS = TableSpec(files=("films.csv",))


def write(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def found(folder, table=SEEN):
    return [path.name for path in files_of(folder, "seen", table, task="t")]


def test_the_first_pattern_that_finds_a_file_decides_and_plain_ones_come_before_packed(tmp_path):
    write(tmp_path, "seen-2.csv", "seen-10.csv", "seen-1.csv")
    assert found(tmp_path) == ["seen-1.csv", "seen-10.csv", "seen-2.csv"]
    write(tmp_path, "seen.csv.gz")
    assert found(tmp_path) == ["seen.csv.gz"]
    write(tmp_path, "seen.csv")
    assert found(tmp_path) == ["seen.csv"]


def test_hidden_files_and_folders_and_places_outside_are_no_data(tmp_path):
    table = TableSpec(files=("**/*.csv",))
    write(tmp_path, ".cache/a.csv", ".b.csv", "c.csv/inside.txt", "d/e.csv")
    assert found(tmp_path, table) == ["e.csv"]
    for name in ("../seen.csv", "/etc/seen.csv"):
        with pytest.raises(DataError, match="looks for files outside its folder"):
            found(tmp_path, TableSpec(files=(name,)))


def test_a_table_without_names_is_looked_for_by_its_own_in_every_format():
    assert patterns("seen", FILMS) == ("films.csv",)
    assert {"seen.csv", "seen.jsonl", "seen.parquet"} <= {*patterns("seen", TableSpec())}
    assert patterns("seen", TableSpec(rows_at=("rows",))) == ("seen.json",)
    assert patterns("seen", TableSpec(entries=("user", "items"))) == ("seen.json",)


def test_a_required_table_without_a_file_is_an_error_with_the_nearest_name(tmp_path):
    write(tmp_path, "sen.csv")
    with pytest.raises(DataError, match="no file for table 'seen' of task 't'") as caught:
        find_tables(tmp_path, {"seen": SEEN}, task="t")
    assert (caught.value.where, caught.value.found) == (str(tmp_path), "a folder with sen.csv")
    assert caught.value.hint == "'sen.csv' is the nearest name"


def test_a_place_that_does_not_exist_is_an_error_with_the_nearest_name(tmp_path):
    write(tmp_path, "films/a.csv")
    with pytest.raises(DataError, match="does not exist") as caught:
        find_tables(tmp_path / "filmz", {"seen": SEEN}, task="t")
    assert caught.value.hint == f"'{tmp_path / 'films'}' is the nearest name"
    with pytest.raises(DataError, match="does not exist") as caught:
        find_tables(tmp_path / "x" / "y", {"seen": SEEN}, task="t")
    assert caught.value.found == f"'{tmp_path / 'x'}' does not exist either"


def test_the_only_folder_that_holds_every_table_is_the_one_that_is_meant(tmp_path):
    tables = {"seen": SEEN, "films": FILMS}
    write(tmp_path, "ml/seen.csv", "ml/films.csv", "part/seen.csv", ".hidden/seen.csv")
    assert holder_of(tmp_path, tables, task="t") == tmp_path / "ml"
    write(tmp_path, "other/seen.csv", "other/films.csv")
    assert holder_of(tmp_path, tables, task="t") is None
    write(tmp_path, "films.csv")
    assert holder_of(tmp_path, tables, task="t") == tmp_path


def test_a_glob_alone_does_not_make_a_folder_the_one_that_is_meant(tmp_path):
    write(tmp_path, "logs/seen-1.csv")
    assert holder_of(tmp_path, {"seen": SEEN}, task="t") is None
