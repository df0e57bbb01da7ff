"""The files of built prompts: what they hold, and files that were changed or cut."""

from __future__ import annotations

import pytest
from harness_behaviour.building import prompt_files
from harness_behaviour.building.prompt_files import Built, CellCount, write
from harness_behaviour.records import Prompt, Recipe


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
        {"counts": (1, 3)},
        {"group": ("25-34", "Male")},
    ],
)
def test_the_fingerprint_is_of_everything_in_a_prompt(change):
    assert prompt_files.fingerprint((prompt(1),)) != prompt_files.fingerprint(
        (prompt(1, **change),)
    )


def test_the_fingerprint_is_the_same_everywhere():
    assert prompt_files.fingerprint((prompt(1),)) == "3c71036af0d1557f4a29a934af2f4528"
