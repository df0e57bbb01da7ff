"""MovieLens 1M: who is kept, and files that cannot be used."""

from __future__ import annotations

import pytest
from harness_behaviour.building.draws import members_of
from harness_behaviour.movies import titles_of

from harness.base.errors import DataError

USERS = [
    *(f"{n}::F::18::4::0" for n in range(30)),
    *(f"{n}::M::56::20::0" for n in range(30, 60)),
    *(f"{n}::M::1::10::0" for n in range(60, 89)),  # one too few
    *(f"{n}::M::56::0::0" for n in range(100, 140)),  # of occupation "other"
]


def ratings(*, by=range(60), each=20):
    return [f"{user}::{(user + movie) % 70}::3::1" for user in by for movie in range(each)]


def test_users_of_large_combinations_are_kept_and_others_counted(read_log, write_movies):
    folder = write_movies(users=USERS, ratings=ratings(by=[*range(85), *range(100, 140)]))
    log = read_log("movies", folder)
    assert log.had.users == 60
    assert {proxy: len(groups) for proxy, groups in log.groups.items()} == {
        "none": 1,
        "age": 2,
        "gender": 2,
        "occupation": 2,
        "all": 2,
    }
    assert [one.values for one in log.groups["all"]] == [
        ("18-24", "Female", "college/grad student"),
        ("56+", "Male", "writer"),
    ]
    assert [len(one.users) for one in log.groups["all"]] == [30, 30]
    assert {fact: number for fact, number in log.notes.items() if number} == {
        "users of occupation 'other', left out": 40,
        "users of combinations below 30 users, left out": 29,
    }


def test_a_user_without_a_rating_counts_for_the_combination_only(read_log, write_movies):
    log = read_log("movies", write_movies(users=USERS, ratings=ratings(by=range(5, 60))))
    assert log.had.users == 55
    assert [len(one.users) for one in log.groups["all"]] == [25, 30]
    assert log.notes["users without a rating, left out"] == 5


def test_the_inventory_is_every_movie_rated_or_not(read_log, write_movies):
    log = read_log("movies", write_movies(users=USERS, ratings=ratings(by=range(60), each=1)))
    assert log.had.inventory == 70
    assert set(log.titles(range(70)).values()) == {f"Film ñ {n} (1999)" for n in range(70)}


def test_a_movie_that_a_user_rated_twice_counts_once(read_log, write_movies):
    rows = [*ratings(), "7::7::5::9", "7::7::1::2"]
    log = read_log("movies", write_movies(users=USERS, ratings=rows))
    assert log.notes["repeated ratings of a movie by a user, counted once"] == 2
    [item] = [one for one, title in log.titles(range(70)).items() if title == "Film ñ 7 (1999)"]
    # Users 0 to 7 have movie 7, and those with numbers above 57 as the last of their twenty.
    assert len(members_of(log.had.bits[item])) == 10


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {"users": ["1::F::17::4::0"]},
            (
                "users.dat, row 1 (line 1), column 'age'",
                "'17'",
                "one of: 1, 18, 25, 35, 45, 50, 56",
            ),
        ),
        (
            {"users": ["1::F::18::4::0", "2::X::18::4::0"]},
            ("users.dat, row 2 (line 2), column 'gender'", "'X'", "one of: F, M"),
        ),
        (
            {"users": ["1::F::18::21::0"]},
            ("users.dat, row 1 (line 1), column 'occupation'", "'21'", "one of: 0, 1, 2,"),
        ),
        (
            {"users": ["1::F::18::4::0"] * 2},
            ("users.dat, row 2 (line 2), column 'user'", "'1'", "each user once"),
        ),
        (
            {"ratings": ["1::1::5::1", "99::1::5::1", "98::1::5::1"]},
            ("ratings.dat, row 2 (line 2), column 'user'", "'99'", "a user in the table 'users'"),
        ),
        (
            {"ratings": ["1::1::5::1", "1::70::5::1"]},
            (
                "ratings.dat, row 2 (line 2), column 'movie'",
                "'70'",
                "a movie in the table 'movies'",
            ),
        ),
        (
            {"movies": [*(f"{n}::Film {n}::D" for n in range(70)), "3::Film::D"]},
            ("movies.dat, row 71 (line 71), column 'movie'", "'3'", "each movie once"),
        ),
        (
            {"movies": [*(f"{n}::Film {n}::D" for n in range(70)), "71::Film  3::D"]},
            (
                "movies.dat, row 71 (line 71), column 'title'",
                "'Film 3'",
                "a title of its own: movie 3 has it",
            ),
        ),
        (
            {"movies": [f"{n}::Film {n}::D" for n in range(49)]},
            ("the table 'movies'", "49 items", "at least 50"),
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(read_log, write_movies, files, told):
    with pytest.raises(DataError) as raised:
        read_log("movies", write_movies(**files))
    where, found, expected = told
    assert raised.value.where.endswith(where)
    assert raised.value.found.startswith(found)
    assert raised.value.expected.startswith(expected)


def test_a_proxy_without_a_group_of_three_is_an_error(read_log, write_movies):
    with pytest.raises(DataError) as raised:
        read_log("movies", write_movies(users=USERS, ratings=ratings(by=[0, 1, 30, 31])))
    assert str(raised.value) == (
        "the tables 'users' and 'ratings': no group of the proxy 'age' has three users\n"
        "  found:    2 groups; the largest has 2 users\n"
        "  expected: at least one group of 3 users who can be used"
    )


def test_data_without_any_user_to_keep_is_an_error(read_log, write_movies):
    rows = [*USERS[60:], "140::F::25::12::0"]
    with pytest.raises(DataError) as raised:
        read_log("movies", write_movies(users=rows, ratings=ratings(by=range(100, 140))))
    assert str(raised.value) == (
        "the tables 'users' and 'ratings': no user is left to build prompts of\n"
        "  found:    40 users of occupation 'other', 30 of combinations of age, gender and "
        "occupation below 30 users (the largest of all has 40), 0 without a rating\n"
        "  expected: a combination of 30 users: all of users.dat, not a part of it"
    )


def test_titles_in_utf_8_are_an_error_and_not_read_as_latin_1(read_log, write_movies):
    folder = write_movies()
    file = folder / "movies.dat"
    assert "ñ" in file.read_bytes().decode("iso-8859-1")
    read_log("movies", folder)
    file.write_bytes(file.read_bytes().decode("iso-8859-1").encode("utf-8"))
    with pytest.raises(DataError, match="a value that cannot be used") as raised:
        read_log("movies", folder)
    assert raised.value.where.endswith("movies.dat, row 1 (line 1), column 'title'")
    assert raised.value.expected == (
        "a file in ISO-8859-1, as MovieLens 1M is, not in UTF-8: "
        "iconv -f UTF-8 -t ISO-8859-1 movies.dat"
    )


@pytest.mark.real_data
def test_no_real_title_is_taken_for_utf_8(real_data, open_data):
    titles = titles_of(open_data("movies", real_data / "movielens-1m-part").table("movies"))
    assert "Misérables, Les (1995)" in titles.values()
    assert sum(not title.isascii() for title in titles.values()) == 50
