"""MovieLens 1M: who is kept, and files that cannot be used."""

import pytest
from harness_behaviour.building.draws import members_of
from harness_behaviour.movies import titles_of

from .conftest import log_of, movies_files, opened

USERS = [
    *(f"{n}::F::18::4::0" for n in range(30)),
    *(f"{n}::M::56::20::0" for n in range(30, 60)),
    *(f"{n}::M::1::10::0" for n in range(60, 89)),  # one too few
    *(f"{n}::M::56::0::0" for n in range(100, 140)),  # of occupation "other"
]


def ratings(*, by=range(60), each=20):
    return [f"{user}::{(user + movie) % 70}::3::1" for user in by for movie in range(each)]


def log_with(folder, rated):
    """The log of these users with these ratings."""
    return log_of("movies", movies_files(folder, users=USERS, ratings=rated))


def test_users_of_large_combinations_are_kept_and_others_counted(tmp_path):
    log = log_with(tmp_path, ratings(by=[*range(85), *range(100, 140)]))
    assert log.had.users == 60
    numbers = {proxy: len(groups) for proxy, groups in log.groups.items()}
    assert numbers == {"none": 1, "age": 2, "gender": 2, "occupation": 2, "all": 2}
    assert {one.values: len(one.users) for one in log.groups["all"]} == {
        ("18-24", "Female", "college/grad student"): 30,
        ("56+", "Male", "writer"): 30,
    }
    assert {fact: number for fact, number in log.notes.items() if number} == {
        "users of occupation 'other', left out": 40,
        "users of combinations below 30 users, left out": 29,
    }


def test_a_user_without_a_rating_counts_for_the_combination_only(tmp_path):
    log = log_with(tmp_path, ratings(by=range(5, 60)))
    assert log.had.users == 55
    assert [len(one.users) for one in log.groups["all"]] == [25, 30]
    assert log.notes["users without a rating, left out"] == 5


def test_the_inventory_is_every_movie_rated_or_not(tmp_path):
    log = log_with(tmp_path, ratings(each=1))
    assert log.had.inventory == 70
    assert set(log.titles(range(70)).values()) == {f"Film ñ {n} (1999)" for n in range(70)}


def test_a_movie_that_a_user_rated_twice_counts_once(tmp_path):
    log = log_with(tmp_path, [*ratings(), "7::7::5::9", "7::7::1::2"])
    assert log.notes["repeated ratings of a movie by a user, counted once"] == 2
    [item] = [one for one, title in log.titles(range(70)).items() if title == "Film ñ 7 (1999)"]
    # Users 0 to 7 have movie 7, and those with numbers above 57 as the last of their twenty.
    assert len(members_of(log.had.bits[item])) == 10


@pytest.mark.real_data
def test_no_real_title_is_taken_for_utf_8(real_data):
    titles = titles_of(opened("movies", real_data / "movielens-1m-part").table("movies"))
    assert "Misérables, Les (1995)" in titles.values()
    assert sum(not title.isascii() for title in titles.values()) == 50
