"""The files of built prompts: what they hold, and files that were changed or cut."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness_behaviour.building import prompt_files
from harness_behaviour.building.prompt_files import Built, CellCount, write
from harness_behaviour.records import Prompt, Recipe

from harness.base.errors import DataError


def prompt(number, **given):
    of = {
        "id": f"movies/all/3/{number:03}",
        "user": f"movies/all/3/{number:03}",
        "setting": "a",
        "proxy": "all",
        "length": 3,
        "group": ("25-34", "Male", "clerical/admin"),
        "history": ("Schindler's List (1993)", "À nous la liberté (1931)", "M"),
        "candidates": ("Heat (1995)", "Big (1988)"),
        "users": 3,
        "counts": (1, 2),
        "popular": (5, 2),
        "popular_in_group": (1, 2),
    }
    return Prompt(**{**of, **given})


@pytest.fixture
def built():
    cell = CellCount(
        proxy="all",
        length=3,
        groups=1,
        found=2,
        tried=9,
        published=300,
        short_of_outside=0,
        users=(3.0, 3.0, 4.0),
    )
    prompts = prompt(1), prompt(2, users=4, history=())
    return Built(recipe=Recipe(seed=5), prompts=prompts, cells=(cell,), notes={"left out": 1})


@pytest.fixture
def folder(built, tmp_path):
    write(tmp_path / "made", built, {"users.dat": "ab"}, option="--out")
    return tmp_path / "made"


def test_prompts_are_read_as_they_were_written(built, folder, open_data):
    dataset = open_data("movies", folder)
    tables = dataset.table("prompts"), dataset.table("built")
    record, prompts = prompt_files.read(*tables, dataset.path("prompts"))
    assert prompts == built.prompts
    assert record.cells == built.cells
    assert record.notes == built.notes
    assert (record.domain, record.options["seed"]) == ("movies", 5)
    assert record.files == {"users.dat": "ab"}


def test_the_same_prompts_give_the_same_bytes(built, folder, tmp_path):
    write(tmp_path / "again", built, {"users.dat": "ab"}, option="--out")
    for name in ("prompts.parquet", "prompts.json"):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"users": 4},
        {"candidates": ("Big (1988)", "Heat (1995)")},
        {"counts": (1, 3)},
        {"popular_in_group": (1, 3)},
        {"group": ("25-34", "Male")},
    ],
)
def test_the_fingerprint_is_of_everything_in_a_prompt(change):
    assert prompt_files.fingerprint((prompt(1),)) != prompt_files.fingerprint(
        (prompt(1, **change),)
    )


def test_the_fingerprint_is_the_same_everywhere():
    assert prompt_files.fingerprint((prompt(1),)) == "3c71036af0d1557f4a29a934af2f4528"


def edited(folder, column, value):
    table = pq.read_table(folder / "prompts.parquet")
    values = [value, *table[column].to_pylist()[1:]]
    place = table.schema.get_field_index(column)
    array = pa.array(values, table.schema.field(column).type)
    pq.write_table(table.set_column(place, column, array), folder / "prompts.parquet")


def test_edited_prompts_are_an_error(folder, load_prompts):
    edited(folder, "users", 44)
    with pytest.raises(DataError, match="changed after they were built") as raised:
        load_prompts("movies", folder, seed=5)
    assert raised.value.where == str(folder / "prompts.parquet")
    assert raised.value.found.startswith("2 prompts with the fingerprint ")
    assert raised.value.expected.endswith(", as prompts.json beside them says")


def test_prompts_that_were_left_out_are_an_error(folder, load_prompts):
    table = pq.read_table(folder / "prompts.parquet")
    pq.write_table(table.slice(0, 1), folder / "prompts.parquet")
    with pytest.raises(DataError, match="changed after they were built"):
        load_prompts("movies", folder, seed=5)


def test_a_file_that_was_cut_is_an_error(folder, load_prompts):
    whole = (folder / "prompts.parquet").read_bytes()
    (folder / "prompts.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cannot be read as Parquet") as raised:
        load_prompts("movies", folder, seed=5)
    assert raised.value.where == str(folder / "prompts.parquet")


def test_a_prompt_of_an_unknown_proxy_is_an_error(folder, load_prompts):
    edited(folder, "proxy", "height")
    with pytest.raises(DataError, match="a prompt cannot be used") as raised:
        load_prompts("movies", folder, seed=5)
    assert raised.value.found == "Invalid enum value 'height' - at `$.proxy`, in the rows from 1 on"


def test_prompts_without_the_counts_of_those_behind_them_are_an_error(folder, load_prompts):
    table = pq.read_table(folder / "prompts.parquet")
    pq.write_table(table.drop_columns(["counts"]), folder / "prompts.parquet")
    with pytest.raises(DataError, match="a prompt cannot be used") as raised:
        load_prompts("movies", folder, seed=5)
    assert raised.value.found.startswith("Expected `array`, got `null` - at `$.counts`")
    assert raised.value.hint == (
        "build them again of the same log; older prompts lack the column 'counts'"
    )


def test_a_record_that_cannot_be_used_is_an_error(folder, load_prompts):
    record = json.loads((folder / "prompts.json").read_text("utf-8"))
    record["cells"] = [{"proxy": "all"}]
    (folder / "prompts.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(DataError, match=r"prompts\.json cannot be used") as raised:
        load_prompts("movies", folder, seed=5)
    assert raised.value.where == str(folder / "prompts.json")
    assert "cells" in raised.value.found
