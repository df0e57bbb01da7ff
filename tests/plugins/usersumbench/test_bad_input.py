"""Data that cannot be used, or only in part: what is said, and what is left."""

import pytest

from harness.base.errors import DataError

from .conftest import load_people

NINE = [(number, f"M{number}", "ABCDEFGHI"[number]) for number in range(9)]


def rated(user, *movies, first=1_000_000_000):
    return [(user, movie, first + place) for place, movie in enumerate(movies)]


BOTH = [*rated("u", 0, 1, 2, 3, 4), *rated("v", 5, 6, 7, 8)]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (" two \t spaces  ", "two spaces"),
        ("bell\a and\x1b escape", "bell and escape"),
        ("Amélie “quoted” [not] a list", None),
        ("x" * 10_000, "x" * 299 + "…"),
    ],
)  # fmt: skip
def test_a_name_is_one_line_and_not_too_long(movielens, name, shown):
    if shown is None:
        name = shown = "Amélie [not] a list"
    folder = movielens(BOTH, [(0, name, "A"), *NINE[1:]])
    people = load_people("movielens", folder, min_activities=4)
    assert people.by_id["u"].past[0].name == shown
    cut = {"objects with a name that was cut to 300 characters": 1} if len(name) > 300 else {}
    assert people.notes == {"users with at least 4 activities (4,297 in the paper)": 2, **cut}


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


def test_a_user_with_one_activity_has_no_past(movielens):
    people = load_people("movielens", movielens([*BOTH, ("w", 1, 1)], NINE), min_activities=2)
    assert set(people.by_id) == {"u", "v"}
    assert people.notes["users with fewer than 2 activities, left out"] == 1


def test_one_user_is_enough_without_others(movielens):
    folder = movielens([*rated("u", 0, 1, 2), *rated("v", 3, 4, 5, 6, 7, 8)], NINE)
    people = load_people("movielens", folder, limit=1, min_activities=3, max_activities=3)
    assert len(people.all) == 1
