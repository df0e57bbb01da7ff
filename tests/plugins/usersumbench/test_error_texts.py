"""What is said of data that cannot be used: where, found, expected, to do."""

import pytest

from harness.base.errors import DataError

from .conftest import load_people
from .test_bad_input import BOTH, NINE, rated

TEN = [(number, f"M{number}", genre) for number, genre in enumerate("ABCDEFGHIJ", 1)]
FEW_GENRES = [(number, f"M{number}", "A|B" if number < 5 else "C|D") for number in range(9)]
LESS_THAN_HALF = [
    *rated("u", 0, 1, 2, 3),
    *rated("x", 4, 5, 6, 7),
    *rated("v", *range(20, 28)),
    *rated("w", 24),
]
TIMES = "write all times of {!r} in this way, or leave those rows out".format
WHOLE = "give the whole data: wrong options are drawn from all of it"

FILMS = {
    "less than half described": (
        LESS_THAN_HALF, NINE, {"min_activities": 4}, "table 'movies', DIR/movies.dat",
        "9 of 17 activities with an object without description",
        "the data describes too few of the objects that users had",
        "the objects of at least half of the activities",
        "give the objects of these activities: most of each past is left out without",
    ),
    "nobody has enough": (
        BOTH, NINE, {}, "table 'ratings', DIR/ratings.dat",
        "2 users; the most activities of one are 5", "no user has 50 activities",
        "a user with at least 50 activities that can be used", "--set min_activities=5",
    ),
    "four movies": (
        [*rated("u", 0, 1, 2, 3, 0), *rated("v", 10)], NINE[:4], {"min_activities": 4},
        "table 'movies', DIR/movies.dat",
        "4 objects\n      activities with an object that the data does not describe, left out: 1",
        "the activities are of too few objects: a question has five options",
        "at least five objects", WHOLE,
    ),
    "four genres": (
        BOTH, FEW_GENRES, {"min_activities": 4}, "table 'movies', DIR/movies.dat", "4 categories",
        "the activities are of too few categories: a question has five options",
        "at least five categories", WHOLE,
    ),
    "times in milliseconds": (
        [*BOTH, ("w", 1, 1_000_000_000_000)], NINE, {},
        "DIR/ratings.dat, row 10, column 'timestamp'",
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


def assert_said(caught, folder, said):
    where, found, what, expected, to_do = said
    assert str(caught.value).replace(str(folder), "DIR") == (
        (f"{where}: " if where else "") + f"{what}\n  found:    {found}\n"
        f"  expected: {expected}\n  to do:    {to_do}"
    )


@pytest.mark.parametrize("films", FILMS)
def test_films_that_cannot_be_used(movielens, films):
    ratings, movies, options, *said = FILMS[films]
    folder = movielens(ratings, movies)
    with pytest.raises(DataError) as caught:
        load_people("movielens", folder, **options)
    assert_said(caught, folder, said)


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
def test_a_last_review_that_cannot_be_used(json_lines, review):
    source, file, rows, column, found, expected, to_do = LAST[review]
    business = {"business_id": "b", "name": "B", "categories": "C"}
    folder = json_lines(
        **{file: rows}, meta_Books=PRODUCTS, yelp_academic_dataset_business=[business]
    )
    with pytest.raises(DataError) as caught:
        load_people(source, folder)
    where = f"DIR/{file}.json, row {len(rows)}, column '{column}'"
    assert_said(caught, folder, (where, found, "a value that cannot be used", expected, to_do))


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
