"""The categories, bundled and from a file."""

import csv

import pytest
from harness_gistbench.categories import categories, taxonomy_digest
from harness_gistbench.records import Category

from harness.cli.main import main


def test_the_bundled_taxonomy_holds_325_names_in_the_order_of_their_code_points():
    taxonomy = categories(None)

    assert [one.id for one in taxonomy] == list(range(1, 326))
    names = [one.name for one in taxonomy]
    assert names == sorted(names)
    from harness_judges.answers import clean

    assert len({clean(one.name) for one in categories(None)}) == 325


def test_ids_and_names_are_those_of_the_papers_lists():
    names = {
        1: "A.I. Art",
        55: "Children’s Books",
        89: "Ecology / Climatology",
        93: "Entrepreneurship & Small Business",
        113: "Furniture, Home Appliances & Goods",
        166: "Local, Regional or National Cuisine",
        325: "eSports",
    }
    assert {one.id: one.name for one in categories(None) if one.id in names} == names


@pytest.mark.real_data
def test_the_authors_file_has_the_same_ids_and_four_other_spellings(real_data):
    file = real_data / "gistbench" / "categories.csv"
    with file.open(encoding="utf-8", newline="") as rows:
        authors = {int(row["category_id"]): row["category_name"] for row in csv.DictReader(rows)}
    ours = {one.id: one.name for one in categories(None)}

    assert authors.keys() == ours.keys()
    assert [id for id in ours if ours[id] != authors[id]] == [55, 89, 93, 113]
    assert {one.id: one.name for one in categories(str(file))} == authors


def test_a_file_or_a_list_takes_the_place_of_the_bundled_categories(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text('\ufeffcategory_id,category_name\n7,"Tea, Coffee"\n3,Bread\n', encoding="utf-8")

    assert categories(str(file)) == (Category(7, "Tea, Coffee"), Category(3, "Bread"))
    assert categories(("Tea, Coffee", " Bread ")) == (
        Category(1, "Tea, Coffee"),
        Category(2, "Bread"),
    )


def test_the_digest_stands_for_ids_names_and_order():
    tea, bread = Category(1, "Tea"), Category(2, "Bread")
    digests = {
        taxonomy_digest(one)
        for one in [(tea, bread), (bread, tea), (tea,), (Category(1, "Bread"), Category(2, "Tea"))]
    }

    assert len(digests) == 4
    assert taxonomy_digest((tea, bread)) == taxonomy_digest((Category(1, "Tea"), bread))


def test_validate_finds_a_taxonomy_that_cannot_be_used(tmp_path, monkeypatch, printed):
    monkeypatch.chdir(tmp_path)
    task = tmp_path / "mine.yaml"
    task.write_text("task: mine\nextends: gist_synthetic\noptions:\n  taxonomy: none.csv\n")

    said = printed("validate", "mine.yaml", code=2)
    assert said.out == "mine: 1 wrong (mine.yaml)\n"
    assert said.err.startswith("harness: mine.yaml:4:3: none.csv: the taxonomy cannot be read\n")

    (tmp_path / "none.csv").write_text("category_id,category_name\n1,Tea\n")
    assert main(["validate", "mine.yaml"]) == 0
