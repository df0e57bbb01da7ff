"""People from each layout, and data that cannot be used: what is said, and what is left."""

import gzip
import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from functools import partial
from random import Random

import pytest
from harness_usersumbench.records import Activity
from harness_usersumbench.sources import SOURCES

from harness.base.errors import DataError

from .conftest import load_people, opened

TEN = [(number, f"M{number}", genre) for number, genre in enumerate("ABCDEFGHIJ", 1)]
GENRES = ("Action", "Comedy", "Crime", "Drama", "Horror", "Musical", "War", "Western")


@pytest.fixture
def world(movielens):
    """A folder of 40 users with 5 to 60 ratings of 120 movies, times with ties, rows mixed.

    A hundred movies more, which have a genre of their own, nobody has rated.
    """
    rng = Random(3)
    movies = [
        (number, f"Movie {number} (1990)", "|".join(rng.sample(GENRES, rng.randint(1, 3))))
        for number in range(1, 121)
    ]
    movies += [(number, f"Unseen {number}", "Unseen") for number in range(121, 221)]
    ratings = [
        (f"u{user}", movie, rng.randrange(1_000_000, 1_000_050))
        for user in range(40)
        for movie in rng.sample(range(1, 121), rng.randint(5, 60))
    ]
    rng.shuffle(ratings)
    about = {number: (title, tuple(genres.split("|"))) for number, title, genres in movies}
    return ratings, about, movielens(ratings, movies)


def test_the_past_is_in_order_of_time_then_of_the_file_and_the_last_is_the_future(world):
    ratings, movies, folder = world
    people = load_people("movielens", folder, min_activities=20, max_activities=30)
    timelines = {}
    for place, (user, movie, time) in enumerate(ratings):
        timelines.setdefault(user, []).append((time, place, *movies[movie]))
    kept = {user: sorted(rows) for user, rows in timelines.items() if len(rows) >= 20}
    assert set(people.by_id) == set(kept)
    for user, rows in kept.items():
        shown = (*people.by_id[user].past, people.by_id[user].future)
        assert [(one.time, one.name, one.categories) for one in shown] == [
            (time, name, genres) for time, _, name, genres in rows[-30:]
        ]
    tied = [rows for rows in kept.values() if rows[-2][0] == rows[-1][0]]
    assert people.notes == {
        "users with at least 20 activities (4,297 in the paper)": len(kept),
        "users with fewer than 20 activities, left out": len(timelines) - len(kept),
        "users cut to their last 30 activities": sum(len(rows) > 30 for rows in kept.values()),
        "users with several last activities at one time": len(tied),
    }
    assert all(people.notes.values())


@pytest.mark.parametrize("distractors", ["uniform", "popularity"])
def test_wrong_options_are_never_the_users_and_depend_on_seed_and_user(world, distractors):
    ratings, movies, folder = world
    asked = {"min_activities": 5, "max_activities": 10, "distractors": distractors}
    people = load_people("movielens", folder, **asked)
    rated = defaultdict(set)
    for user, movie, _ in ratings:
        rated[user].add(movies[movie][0])
    of_name = Counter(movies[movie][0] for _, movie, _ in ratings)
    of_genre = Counter(genre for _, movie, _ in ratings for genre in movies[movie][1])
    assert len(people.all) == 40
    for person in people.all:
        own = set(person.future.categories)
        assert person.activity.options[0] == person.future.name
        assert person.category.options[0] in own
        for drawn, of_all, never in (
            (person.activity, of_name, rated[person.id]), (person.category, of_genre, own)
        ):  # fmt: skip
            assert len(set(drawn.options)) == 5
            assert set(drawn.options[1:]) <= of_all.keys() - never
            assert drawn.counts == tuple(of_all[one] for one in drawn.options)
    assert load_people("movielens", folder, limit=7, **asked).all == people.all[:7]
    assert people.all == load_people("movielens", folder, **asked).all
    other = load_people("movielens", folder, seed=1, **asked)
    assert {one.id for one in other.all} == set(people.by_id)
    assert any(one.activity != people.by_id[one.id].activity for one in other.all)
    assert any(one.category != people.by_id[one.id].category for one in other.all)
    assert all(one.past == people.by_id[one.id].past for one in other.all)


def test_one_of_several_categories_is_right_by_chance(world):
    *_, folder = world
    places = Counter()
    for seed in range(4):
        for person in load_people("movielens", folder, seed=seed, min_activities=5).all:
            if len(person.future.categories) == 2:
                places[person.future.categories.index(person.category.options[0])] += 1
    assert abs(places[0] - places[1]) < 4 * sum(places.values()) ** 0.5
    assert sum(places.values()) > 30


def test_the_order_of_rows_of_different_users_changes_nothing(world, movielens):
    ratings, movies, folder = world
    films = [(number, title, "|".join(genres)) for number, (title, genres) in movies.items()]
    again = movielens(sorted(ratings, key=lambda row: row[0]), films, name="by user")
    for last in ("source_order", "any_tied"):
        one, other = (
            load_people("movielens", data, min_activities=5, last=last) for data in (folder, again)
        )
        assert one.all == other.all


def test_the_methods_of_a_dataset_share_its_people(world):
    *_, folder = world
    shared = {}
    first, other = (
        load_people("movielens", folder, shared=shared, min_activities=5, method=method)
        for method in ("single_step", "other")
    )
    assert other.all is first.all
    assert not first.others
    assert sorted(other.others) == sorted(other.others.values()) == sorted(first.by_id)
    # Another option, and another limit, get people of their own.
    load_people("movielens", folder, shared=shared, min_activities=30, limit=3)
    again = load_people("movielens", folder, shared=shared, min_activities=5, limit=9)
    assert again.all == load_people("movielens", folder, min_activities=5, limit=9).all


def test_one_of_several_last_activities_is_the_future_by_seed_if_asked(movielens):
    ratings = [("u", 1, 100), ("u", 2, 200), ("u", 3, 300), ("u", 4, 300), ("u", 5, 300)]
    folder = movielens([*ratings, *(("v", n, n) for n in range(6, 10))], TEN)

    def future(**given):
        [person] = load_people("movielens", folder, min_activities=5, **given).all
        assert sorted(person.activity.options[1:]) == ["M6", "M7", "M8", "M9"], "nobody saw M10"
        rest = [one.name for one in person.past]
        assert rest == [f"M{n}" for n in range(1, 6) if f"M{n}" != person.future.name]
        return person.future.name

    assert future() == "M5"
    drawn = {future(last="any_tied", seed=seed) for seed in range(5)}
    assert len(drawn) > 1 and drawn <= {"M3", "M4", "M5"}
    assert future(last="any_tied", seed=3) == future(last="any_tied", seed=3)
    # Each user has a draw of their own.
    ratings = [(f"u{n}", film, 100) for n in range(60) for film in range(1, 6)]
    ratings += [("other", film, 100) for film in range(6, 11)]
    folder = movielens(ratings, TEN, name="many")
    people = load_people("movielens", folder, min_activities=5, last="any_tied")
    futures = {one.future.name for one in people.all if one.id != "other"}
    assert futures == {"M1", "M2", "M3", "M4", "M5"}


def test_users_without_four_wrong_options_are_left_out_and_counted(movielens):
    # Of ten movies u has seen seven and v six; w's next movie has all categories but three.
    movies = [*TEN[:9], (10, "M10", "A|B|C|D|E|F|G")]
    ratings = [("u", n, n) for n in range(1, 8)] + [("v", n, n) for n in range(1, 7)]
    ratings += [("w", 8, 1), ("w", 9, 2), ("w", 10, 3)]
    people = load_people("movielens", movielens(ratings, movies), min_activities=3)
    assert set(people.by_id) == {"v"}
    assert people.notes == {
        "users with at least 3 activities (4,297 in the paper)": 3,
        "users with fewer than four wrong options, left out": 2,
    }


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
    # The user, item and time of reviews; the item, title and categories of products.
    "2018": (
        ("reviewerID", "asin", "unixReviewTime", {"overall": 5.0, "reviewText": "Fine"}),
        ("asin", "title", "category", {"main_cat": "Movies & TV"}),
    ),
    "2023": (
        ("user_id", "parent_asin", "timestamp", {"asin": "of a variant", "rating": 5.0}),
        ("parent_asin", "title", "categories", {"main_category": "Movies & TV", "price": None}),
    ),
}


@pytest.fixture
def amazon(json_lines):
    """Two users' five reviews each of ten products, in a layout's keys and file names.

    Of the products, one has an empty list of categories, and one has none.
    """

    def write(layout):
        (*of_review, review), (*of_product, product) = AMAZON[layout]
        reviews, products = [], []
        for n in range(10):
            time = 1_500_000_000 + n
            time = time if layout == "2018" else time * 1000 + 999
            categories = ["Movies & TV", KINDS[n % 6]] if n else []
            for rows, keys, values, more in (
                (reviews, of_review, (f"AU{n % 2}", f"B{n}", time), review),
                (products, of_product, (f"B{n}", f"Disc {n}", categories), product),
            ):
                rows.append(dict(zip(keys, values, strict=True)) | more)
        del products[2][of_product[2]]
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
    found = {f"users with at least 5 activities ({about})": 2}
    assert people.notes == found | {f"activities in the layout of {layout}": 10}


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


NINE = [(number, f"M{number}", "ABCDEFGHI"[number]) for number in range(9)]


def rated(user, *movies, first=1_000_000_000):
    return [(user, movie, first + place) for place, movie in enumerate(movies)]


BOTH = [*rated("u", 0, 1, 2, 3, 4), *rated("v", 5, 6, 7, 8)]


def test_a_name_is_one_line_and_not_too_long(movielens):
    names = {
        " two \t spaces  ": "two spaces", "bell\a and\x1b escape": "bell and escape",
        "Amélie [not] a list": "Amélie [not] a list", "x" * 10_000: "x" * 299 + "…",
    }  # fmt: skip
    movies = [(number, name, "ABCD"[number]) for number, name in enumerate(names)]
    people = load_people("movielens", movielens(BOTH, [*movies, *NINE[4:]]), min_activities=4)
    assert [one.name for one in people.by_id["u"].past] == list(names.values())
    assert people.notes == {
        "users with at least 4 activities (4,297 in the paper)": 2,
        "objects with a name that was cut to 300 characters": 1,
    }


def test_what_cannot_be_used_is_left_out_and_counted(movielens):
    movies = [*NINE, (9, "", "A"), (10, "No genre", ""), (11, "Blank genres", " | ")]
    movies += [(0, "Again", "A"), (0, "And again", "B")]
    folder = movielens([*BOTH, *rated("u", 9, 10, 11, 12, 13)], movies)
    with (folder / "ratings.dat").open("a") as file:
        file.write("u::1::5::\nu::12::5::\n")
    people = load_people("movielens", folder, min_activities=4)
    assert [one.name for one in people.by_id["u"].past] == ["M0", "M1", "M2", "M3"]
    assert people.notes == {
        "users with at least 4 activities (4,297 in the paper)": 2,
        "activities without a time, left out": 2,
        "activities with an object that the data does not describe, left out": 2,
        "activities with an object without a name or category, left out": 3,
        "descriptions of objects that an earlier row describes, left out": 2,
    }


def test_the_tasks_that_follow_an_error_say_the_same(movielens):
    folder, shared = movielens(BOTH, NINE), {}
    for _ in range(2):
        with pytest.raises(DataError, match="no user has 50 activities"):
            load_people("movielens", folder, shared=shared)


def test_a_user_with_one_activity_has_no_past_and_one_user_is_enough(movielens):
    people = load_people("movielens", movielens([*BOTH, ("w", 1, 1)], NINE), min_activities=2)
    assert set(people.by_id) == {"u", "v"}
    assert people.notes["users with fewer than 2 activities, left out"] == 1
    folder = movielens([*rated("u", 0, 1, 2), *rated("v", 3, 4, 5, 6, 7, 8)], NINE, "two")
    people = load_people("movielens", folder, limit=1, min_activities=3, max_activities=3)
    assert len(people.all) == 1


FEW_GENRES = [(number, f"M{number}", "A|B" if number < 5 else "C|D") for number in range(9)]
LESS_THAN_HALF = [*rated("u", 0, 1, 2, 3), *rated("x", 4, 5, 6, 7), *rated("v", *range(20, 28)),
                  *rated("w", 24)]  # fmt: skip
TIMES = "write all times of {!r} in this way, or leave those rows out".format
WHOLE = "give the whole data: wrong options are drawn from all of it"

FILMS = {
    "less than half described": (
        LESS_THAN_HALF, NINE, {"min_activities": 4}, "table 'movies', DIR/data/movies.dat",
        "9 of 17 activities with an object without description",
        "the data describes too few of the objects that users had",
        "the objects of at least half of the activities",
        "give the objects of these activities: most of each past is left out without",
    ),
    "nobody has enough": (
        BOTH, NINE, {}, "table 'ratings', DIR/data/ratings.dat",
        "2 users; the most activities of one are 5", "no user has 50 activities",
        "a user with at least 50 activities that can be used", "--set min_activities=5",
    ),
    "four movies": (
        [*rated("u", 0, 1, 2, 3, 0), *rated("v", 10)], NINE[:4], {"min_activities": 4},
        "table 'movies', DIR/data/movies.dat",
        "4 objects\n      activities with an object that the data does not describe, left out: 1",
        "the activities are of too few objects: a question has five options",
        "at least five objects", WHOLE,
    ),
    "four genres": (
        BOTH, FEW_GENRES, {"min_activities": 4}, "table 'movies', DIR/data/movies.dat",
        "4 categories", "the activities are of too few categories: a question has five options",
        "at least five categories", WHOLE,
    ),
    "times in milliseconds": (
        [*BOTH, ("w", 1, 1_000_000_000_000)], NINE, {},
        "DIR/data/ratings.dat, row 10, column 'timestamp'",
        "1000000000000 (integer); rows like this: 1", "a value that cannot be used",
        "seconds since 1970, as a whole number of at most 11 digits", TIMES("timestamp"),
    ),
    "one user and no other": (
        [("u", n, n) for n in range(1, 6)] + [("v", n, n) for n in range(6, 10)], TEN,
        {"min_activities": 5, "method": "other"}, None, "1 user",
        "no other user's summary can be shown", "at least two users",
        "leave out the tasks that end in _other, or take more with --limit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("films", FILMS)
def test_films_that_cannot_be_used(movielens, raised, films):
    ratings, movies, options, where, found, *said = FILMS[films]
    load = partial(load_people, "movielens", movielens(ratings, movies), **options)
    words = raised(DataError, load, where=where, found=found)
    assert words == "{}\nexpected: {}\nto do: {}".format(*said)


PRODUCTS = [{"parent_asin": f"B{n}", "title": f"T{n}", "categories": [f"C{n}"]} for n in range(9)]
REVIEWS = [{"user_id": "u", "parent_asin": f"B{n}", "timestamp": 10**12} for n in range(9)]
DATED = {"user_id": "u", "business_id": "b", "date": "last Friday"}
LAST = {
    "a time in seconds": (
        "amazon", "Books", [*REVIEWS, REVIEWS[0] | {"timestamp": 10**9}], "timestamp",
        "1000000000 (integer); rows like this: 1",
        "milliseconds since 1970, as a whole number of 12 to 14 digits", TIMES("timestamp"),
    ),
    "no user": (
        "amazon", "Books", [*REVIEWS, {"parent_asin": "B1", "timestamp": 10**12}], "user_id",
        "nothing", "user_id and parent_asin (2023) or reviewerID and asin (2018)",
        "give whole rows of one of these layouts, or leave that row out",
    ),
    "no date": (
        "yelp", "yelp_academic_dataset_review", [DATED], "date",
        "'last Friday'; rows like this: 1", "a date such as 2018-07-07 22:09:11", TIMES("date"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("review", LAST)
def test_a_last_review_that_cannot_be_used(json_lines, raised, review):
    source, file, rows, column, found, expected, to_do = LAST[review]
    shop = {"business_id": "b", "name": "B", "categories": "C"}
    folder = json_lines(**{file: rows}, meta_Books=PRODUCTS, yelp_academic_dataset_business=[shop])
    where = f"DIR/{file}.json, row {len(rows)}, column '{column}'"
    words = raised(DataError, load_people, source, folder, where=where, found=found)
    assert words == f"a value that cannot be used\nexpected: {expected}\nto do: {to_do}"


def test_what_was_left_out_is_said_where_nothing_is_left(movielens):
    seen_by_one = movielens(rated("u", *range(9)), NINE, "seen")
    with pytest.raises(DataError, match="leaves no users to choose from") as caught:
        load_people("movielens", seen_by_one, min_activities=4)
    assert "users with fewer than four wrong options, left out: 1" in str(caught.value)
    without_times = movielens(BOTH, NINE, "times")
    (without_times / "ratings.dat").write_text("u::1::5::\nv::2::5::\n")
    with pytest.raises(DataError) as caught:
        load_people("movielens", without_times)
    assert caught.value.found.startswith("0 objects")
    assert "activities without a time, left out: 2" in caught.value.found


@pytest.mark.real_data
def test_users_with_50_ratings_are_kept_with_their_last_200(real_data):
    folder = real_data / "movielens-1m-part"
    people = load_people("movielens", folder)
    with gzip.open(folder / "ratings.dat.gz", "rt") as file:
        rated = Counter(line.partition("::")[0] for line in file)
    long = {user: many for user, many in rated.items() if many >= 50}
    kept = {one.id: len(one.past) + 1 for one in people.all}
    assert kept == {user: min(many, 200) for user, many in long.items()}
    assert people.notes == {
        "users with at least 50 activities (4,297 in the paper)": 2095,
        "users with fewer than 50 activities, left out": 2998 - 2095,
        "users cut to their last 200 activities": 752,
        "users with several last activities at one time": 818,
    }


def lines(file):
    with gzip.open(file, "rt", encoding="utf-8") as rows:
        return [json.loads(line) for line in rows]


def activities(source, folder):
    """The user, object and time of each of a source's rows."""
    dataset, _ = opened(source, folder)
    rows = dataset.database.sql(f"{SOURCES[source].events} ORDER BY row").fetchall()
    return [row[:3] for row in rows]


@pytest.mark.real_data
def test_every_review_of_yelp_is_read(real_data):
    folder = real_data / "yelp"
    reviews = lines(folder / "yelp_academic_dataset_review.json.gz")
    assert len(reviews) == 999
    times = (datetime.fromisoformat(one["date"]).replace(tzinfo=UTC) for one in reviews)
    assert activities("yelp", folder) == [
        (one["user_id"], one["business_id"], time.timestamp())
        for one, time in zip(reviews, times, strict=True)
    ]
    with pytest.raises(DataError, match="the data describes too few of the objects") as caught:
        load_people("yelp", folder)
    # Of 999 reviews, 77 are of these businesses.
    assert caught.value.found == "922 of 999 activities with an object without description"


@pytest.mark.real_data
def test_every_review_of_amazon_is_read(real_data):
    folder = real_data / "amazon-2023/All_Beauty/raw"
    found = activities("amazon", folder)
    assert found == [
        (one["user_id"], one["parent_asin"], one["timestamp"] // 1000)
        for one in lines(folder / "All_Beauty.jsonl.gz")
    ]
    with pytest.raises(DataError, match="too few categories") as caught:
        load_people("amazon", folder)
    assert "1 categories\n" in caught.value.found
    assert f"activities in the layout of 2023: {len(found):,}" in caught.value.found
