"""Yelp and both layouts of Amazon, in the keys of the official files."""

from datetime import UTC, datetime

import pytest
from harness_usersumbench.records import Activity

from .conftest import load_people

KINDS = ("Bars", "Food", "Gyms", "Books", "Parks", "Shops")


def moment(*when):
    return int(datetime(*when, tzinfo=UTC).timestamp())


@pytest.fixture
def yelp(json_lines):
    """A folder with the reviews of u, of one day each, and of v, and with 9 businesses."""

    def write(first_date="2018-07-07 22:09:11", **first_business):
        businesses = [
            {"business_id": f"b{number}", "name": f"Place {number}", "hours": None,
             "categories": f"{KINDS[number % 6]}, Nightlife"}
            for number in range(9)
        ]  # fmt: skip
        businesses[0].update(first_business)
        dates = [first_date, *(f"2019-01-0{number} 12:00:00" for number in (1, 2, 3))]
        dates += ["2019-05-05 01:02:03"] * 5
        reviews = [
            {"user_id": "uv"[number > 3], "business_id": f"b{number}", "date": date,
             "text": "Good.\nVery good."}
            for number, date in enumerate(dates)
        ]  # fmt: skip
        return json_lines(
            yelp_academic_dataset_review=reviews, yelp_academic_dataset_business=businesses
        )

    return write


def test_yelp_has_dates_and_lists_of_categories_in_a_text_each_counted_once(yelp):
    folder = yelp(categories="Bars,Food ,  Bars, ,Food")
    people = load_people("yelp", folder, min_activities=4)
    person = people.by_id["u"]
    assert person.past[0] == Activity(moment(2018, 7, 7, 22, 9, 11), "Place 0", ("Bars", "Food"))
    assert person.future == Activity(moment(2019, 1, 3, 12), "Place 3", ("Books", "Nightlife"))
    assert people.notes == {
        "users with at least 4 activities (6,798 in the paper)": 2,
        "users with several last activities at one time": 1,
    }


def test_businesses_of_one_name_are_one_object_in_questions(yelp):
    folder = yelp()
    file = folder / "yelp_academic_dataset_business.json"
    file.write_text(file.read_text().replace("Place 4", "PLACE 1"))
    # u has been at the places 0 to 3, and v at 1 and at 5 to 8, which leaves three others.
    people = load_people("yelp", folder, min_activities=4)
    assert set(people.by_id) == {"u"}
    assert people.notes["users with fewer than four wrong options, left out"] == 1
    assert set(people.by_id["u"].activity.options[1:]) == {f"Place {n}" for n in range(5, 9)}


@pytest.mark.parametrize("missing", [{"date": None}, {"categories": None}, {"categories": " , "}])
def test_reviews_without_a_date_or_category_are_left_out_and_counted(yelp, missing):
    folder = yelp(missing.get("date", "2018-07-07 22:09:11"), **missing)
    people = load_people("yelp", folder, min_activities=3)
    assert [one.name for one in people.by_id["u"].past] == ["Place 1", "Place 2"]
    fact = "without a time" if "date" in missing else "with an object without a name or category"
    assert people.notes[f"activities {fact}, left out"] == 1


AMAZON = {
    "2018": {
        "reviews": lambda user, item, time: {
            "overall": 5.0, "verified": True, "reviewerID": user, "asin": item,
            "unixReviewTime": time, "reviewText": "Fine", "style": {"Color:": " Red"},
        },
        "products": lambda item, title, categories: {
            "asin": item, "title": title, "category": categories, "main_cat": "Movies & TV",
        },
    },
    "2023": {
        "reviews": lambda user, item, time: {
            "rating": 5.0, "user_id": user, "parent_asin": item, "asin": f"variant of {item}",
            "timestamp": time * 1000 + 999, "text": "Fine", "verified_purchase": True,
        },
        "products": lambda item, title, categories: {
            "parent_asin": item, "title": title, "categories": categories,
            "main_category": "Movies & TV", "price": None,
        },
    },
}  # fmt: skip


@pytest.fixture
def amazon(json_lines):
    """Two users' five reviews each of ten products, in a layout's keys and file names.

    Of the products, one has an empty list of categories, and one has none.
    """

    def write(layout):
        keys = AMAZON[layout]
        reviews = [
            keys["reviews"](f"AU{number % 2}", f"B{number}", 1_500_000_000 + number)
            for number in range(10)
        ]
        products = [
            keys["products"](f"B{number}", f"Disc {number}", ["Movies & TV", KINDS[number % 6]])
            for number in range(10)
        ]
        key = "category" if layout == "2018" else "categories"
        products[0][key] = []
        del products[2][key]
        return json_lines(Movies_and_TV=reviews, meta_Movies_and_TV=products)

    return write


@pytest.mark.parametrize("layout", ["2018", "2023"])
def test_both_layouts_of_amazon_are_read_alike_and_named(amazon, layout):
    people = load_people("amazon", amazon(layout), min_activities=5)
    assert people.by_id["AU1"].past[0] == Activity(1_500_000_001, "Disc 1", ("Movies & TV", "Food"))
    assert people.by_id["AU1"].future.name == "Disc 9"
    # A product without categories has the main one.
    assert [one.categories for one in people.by_id["AU0"].past[:2]] == [("Movies & TV",)] * 2
    about = "the paper's 5,046 are of unnamed categories, and not expected"
    assert people.notes == {
        f"users with at least 5 activities ({about})": 2,
        f"activities in the layout of {layout}": 10,
    }


def test_several_categories_of_products_are_one_log(amazon):
    folder = amazon("2023")
    for name in ("", "meta_"):
        file = folder / f"{name}Movies_and_TV.json"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[:4]))
        (folder / f"{name}Books.json").write_text("".join(lines[4:]))
    people = load_people("amazon", folder, min_activities=5)
    assert [one.name for one in people.by_id["AU0"].past] == [f"Disc {n}" for n in (0, 2, 4, 6)]
    assert people.notes["activities in the layout of 2023"] == 10
