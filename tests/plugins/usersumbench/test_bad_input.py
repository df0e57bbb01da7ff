"""Data that cannot be used, or only in part: what is said, and what is left."""

import msgspec
import pytest
from inline_snapshot import snapshot

from harness.base.errors import DataError

NINE = [(number, f"M{number}", "ABCDEFGHI"[number]) for number in range(9)]


def rated(user, *movies, first=1_000_000_000):
    return [(user, movie, first + place) for place, movie in enumerate(movies)]


BOTH = [*rated("u", 0, 1, 2, 3, 4), *rated("v", 5, 6, 7, 8)]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("{{ user }} {% raw %} {0} %s", "{{ user }} {% raw %} {0} %s"),
        (" two \t spaces  ", "two spaces"),
        ("bell\a and\x1b escape", "bell and escape"),
        ("no\xa0break\xadhere", "no break here"),
        ("Amélie “quoted” [not] a list", None),
        ("x" * 300, "x" * 300),
        ("x" * 10_000, "x" * 299 + "…"),
    ],
)  # fmt: skip
def test_a_name_is_one_line_and_not_too_long(load_people, movielens, name, shown):
    if shown is None:
        name = shown = "Amélie [not] a list"
    folder = movielens(BOTH, [(0, name, "A"), *NINE[1:]])
    people = load_people("movielens", folder, min_activities=4)
    assert people.by_id["u"].past[0].name == shown
    cut = {"objects with a name that was cut to 300 characters": 1} if len(name) > 300 else {}
    assert people.notes == {"users with at least 4 activities (4,297 in the paper)": 2, **cut}


def test_line_ends_in_a_name_are_spaces(load_people, json_lines):
    businesses = [
        {"business_id": f"b{n}", "name": f"Line {n}\r\nend\x0b\u2028{n}\0.", "categories": f"C{n}"}
        for n in range(9)
    ]
    reviews = [
        {"user_id": user, "business_id": f"b{movie}", "date": f"2019-01-01 00:00:0{movie}"}
        for user, movie, _ in BOTH
    ]
    folder = json_lines(
        yelp_academic_dataset_review=reviews, yelp_academic_dataset_business=businesses
    )
    people = load_people("yelp", folder, min_activities=4)
    assert people.by_id["v"].past[0].name == "Line 5 end 5 ."


def test_what_cannot_be_used_is_left_out_and_counted(load_people, movielens):
    movies = [*NINE, (9, "", "A"), (10, "No genre", ""), (11, "Blank genres", " | ")]
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
    }


def test_data_that_describes_less_than_half_of_what_users_had_is_an_error(
    load_people, movielens, raised
):
    # Eight of 16 activities are of described films; one more without makes it less than half.
    half = [*rated("u", 0, 1, 2, 3), *rated("x", 4, 5, 6, 7), *rated("v", *range(20, 28))]
    assert len(load_people("movielens", movielens(half, NINE, "half"), min_activities=4).all) == 2
    less = movielens([*half, *rated("w", 24)], NINE)
    assert raised(
        DataError,
        lambda: load_people("movielens", less, min_activities=4),
        where="table 'movies', DIR/data/movies.dat",
        found="9 of 17 activities with an object without description",
    ) == snapshot("""\
the data describes too few of the objects that users had
expected: the objects of at least half of the activities
to do: give the objects of these activities: most of each past is left out without\
""")


def test_a_film_that_is_described_twice_is_the_first_and_counted(load_people, movielens):
    folder = movielens(BOTH, [*NINE, (0, "Again", "A"), (0, "And again", "B")])
    people = load_people("movielens", folder, min_activities=4)
    assert people.by_id["u"].past[0].name == "M0"
    assert people.notes["descriptions of objects that an earlier row describes, left out"] == 2


def test_a_repeated_category_counts_once(load_people, movielens):
    folder = movielens(BOTH, [(0, "M0", "War|Drama|War"), *NINE[1:]])
    people = load_people("movielens", folder, min_activities=4)
    assert people.by_id["u"].past[0].categories == ("War", "Drama")


def test_nobody_has_enough_activities(load_people, movielens, raised):
    folder = movielens(BOTH, NINE)
    assert raised(
        DataError,
        lambda: load_people("movielens", folder),
        where="table 'ratings', DIR/data/ratings.dat",
        found="2 users; the most activities of one are 5",
    ) == snapshot("""\
no user has 50 activities
expected: a user with at least 50 activities that can be used
to do: --set min_activities=5\
""")
    assert len(load_people("movielens", folder, min_activities=5).all) == 1


def test_no_activity_can_be_used(load_people, movielens):
    folder = movielens(BOTH, NINE)
    (folder / "ratings.dat").write_text("u::1::5::\nv::2::5::\n")
    with pytest.raises(DataError) as error:
        load_people("movielens", folder)
    assert error.value.found.startswith("0 objects")
    assert "activities without a time, left out: 2" in error.value.found


def test_the_tasks_that_follow_an_error_say_the_same(load_people, movielens):
    folder, shared = movielens(BOTH, NINE), {}
    for _ in range(2):
        with pytest.raises(DataError, match="no user has 50 activities"):
            load_people("movielens", folder, shared=shared)


@pytest.mark.parametrize("least", [2, 3])
def test_a_user_with_one_activity_has_no_past(load_people, movielens, least):
    folder = movielens([*BOTH, ("w", 1, 1)], NINE)
    people = load_people("movielens", folder, min_activities=least)
    assert set(people.by_id) == {"u", "v"}
    assert people.notes[f"users with fewer than {least} activities, left out"] == 1


@pytest.mark.parametrize("option", ["min_activities", "max_activities"])
def test_a_past_and_a_future_are_two_activities(load_people, movielens, option):
    with pytest.raises(msgspec.ValidationError, match=">= 2"):
        load_people("movielens", movielens(BOTH, NINE), **{option: 1})


def test_one_user_is_enough_without_others(load_people, movielens):
    folder = movielens([*rated("u", 0, 1, 2), *rated("v", 3, 4, 5, 6, 7, 8)], NINE)
    people = load_people("movielens", folder, limit=1, min_activities=3, max_activities=3)
    assert len(people.all) == 1


def test_data_with_four_movies_or_four_genres_has_no_questions(load_people, movielens, raised):
    few_movies = movielens([*rated("u", 0, 1, 2, 3, 0), *rated("v", 10)], NINE[:4], "few movies")
    assert raised(
        DataError,
        lambda: load_people("movielens", few_movies, min_activities=4),
        where="table 'movies', DIR/few movies/movies.dat",
        found="4 objects\n"
        "      activities with an object that the data does not describe, left out: 1",
    ) == snapshot("""\
the activities are of too few objects: a question has five options
expected: at least five objects
to do: give the whole data: wrong options are drawn from all of it\
""")
    movies = [(number, f"M{number}", "A|B" if number < 5 else "C|D") for number in range(9)]
    few_genres = movielens(BOTH, movies, "few genres")
    assert raised(
        DataError,
        lambda: load_people("movielens", few_genres, min_activities=4),
        where="table 'movies', DIR/few genres/movies.dat",
        found="4 categories",
    ) == snapshot("""\
the activities are of too few categories: a question has five options
expected: at least five categories
to do: give the whole data: wrong options are drawn from all of it\
""")


def test_everybody_has_seen_everything(load_people, movielens):
    folder = movielens(rated("u", *range(9)), NINE)
    with pytest.raises(DataError) as caught:
        load_people("movielens", folder, min_activities=4)
    assert "leaves no users to choose from" in str(caught.value)
    assert "users with fewer than four wrong options, left out: 1" in str(caught.value)


def test_some_times_in_milliseconds_are_an_error(load_people, movielens, raised):
    folder = movielens([*BOTH, ("w", 1, 1_000_000_000_000)], NINE)
    assert raised(
        DataError,
        lambda: load_people("movielens", folder, min_activities=4),
        where="DIR/data/ratings.dat, row 10 (line 10), column 'timestamp'",
        found="1000000000000 (integer); rows like this: 1",
    ) == snapshot("""\
a value that cannot be used
expected: seconds since 1970, as a whole number of at most 11 digits
to do: write all times of 'timestamp' in this way, or leave those rows out\
""")


def amazon(keys, json_lines):
    """Reviews and products by keys that are changed or left out."""
    review = {"user_id": "u", "parent_asin": "B1", "timestamp": 1_500_000_000_000}
    products = [
        {"parent_asin": f"B{n}", "title": f"T{n}", "categories": [f"C{n}"]} for n in range(9)
    ]
    reviews = [{**review, "parent_asin": f"B{n}"} for n in range(9)]
    reviews.append({k: v for k, v in {**review, **keys}.items() if v is not None})
    return json_lines(Books=reviews, meta_Books=products)


def test_some_times_in_seconds_are_an_error(load_people, json_lines, raised):
    folder = amazon({"timestamp": 1_500_000_000}, json_lines)
    assert raised(
        DataError,
        lambda: load_people("amazon", folder),
        where="DIR/data/Books.json, row 10 (line 10), column 'timestamp'",
        found="1500000000 (integer); rows like this: 1",
    ) == snapshot("""\
a value that cannot be used
expected: milliseconds since 1970, as a whole number of 12 to 14 digits
to do: write all times of 'timestamp' in this way, or leave those rows out\
""")


@pytest.mark.parametrize("missing", ["user_id", "parent_asin"])
def test_a_review_in_neither_layout_is_an_error(load_people, json_lines, raised, missing):
    folder = amazon({missing: None}, json_lines)
    assert raised(
        DataError,
        lambda: load_people("amazon", folder),
        where=f"DIR/data/Books.json, row 10 (line 10), column '{missing}'",
        found="nothing",
    ) == snapshot("""\
a value that cannot be used
expected: user_id and parent_asin (2023) or reviewerID and asin (2018)
to do: give whole rows of one of these layouts, or leave that row out\
""")


def test_a_date_that_is_none_is_an_error(load_people, json_lines, raised):
    reviews = [{"user_id": "u", "business_id": "b", "date": "last Friday"}]
    businesses = [{"business_id": "b", "name": "B", "categories": "C"}]
    folder = json_lines(
        yelp_academic_dataset_review=reviews, yelp_academic_dataset_business=businesses
    )
    assert raised(
        DataError,
        lambda: load_people("yelp", folder),
        where="DIR/data/yelp_academic_dataset_review.json, row 1 (line 1), column 'date'",
        found="'last Friday'; rows like this: 1",
    ) == snapshot("""\
a value that cannot be used
expected: a date such as 2018-07-07 22:09:11
to do: write all times of 'date' in this way, or leave those rows out\
""")


def test_a_negative_time_is_an_error(load_people, movielens):
    with pytest.raises(DataError, match="seconds since 1970"):
        load_people("movielens", movielens([*BOTH, ("w", 1, -5)], NINE))


def test_a_file_of_the_other_source_says_which_columns_are_missing(load_people, json_lines):
    folder = json_lines(
        yelp_academic_dataset_review=[{"a": 1}], yelp_academic_dataset_business=[{}]
    )
    with pytest.raises(DataError, match="'user_id'"):
        load_people("yelp", folder)
