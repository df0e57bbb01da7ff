"""People from a log in the layout of MovieLens: who is kept, what is the future, what is asked."""

from collections import Counter
from random import Random

import pytest

from .conftest import load_people

GENRES = ("Action", "Comedy", "Crime", "Drama", "Horror", "Musical", "War", "Western")


@pytest.fixture
def world(movielens):
    """A folder of 40 users with 5 to 60 ratings of 120 movies, times with ties, rows mixed."""
    rng = Random(3)
    movies = [
        (number, f"Movie {number} (1990)", "|".join(rng.sample(GENRES, rng.randint(1, 3))))
        for number in range(1, 121)
    ]
    ratings = [
        (f"u{user}", movie, rng.randrange(1_000_000, 1_000_050))
        for user in range(40)
        for movie in rng.sample(range(1, 121), rng.randint(5, 60))
    ]
    rng.shuffle(ratings)
    about = {str(number): (title, genres) for number, title, genres in movies}
    return ratings, about, movielens(ratings, movies)


def timelines(ratings):
    """Each user's movies and times in order of time, then of the file; in plain Python."""
    found = {}
    for place, (user, movie, time) in enumerate(ratings):
        found.setdefault(user, []).append((time, place, str(movie)))
    return {user: [(m, t) for t, _, m in sorted(rows)] for user, rows in found.items()}


def test_the_past_is_in_order_of_time_then_of_the_file_and_the_last_is_the_future(world):
    ratings, movies, folder = world
    people = load_people("movielens", folder, min_activities=20, max_activities=30)
    expected = {u: rows for u, rows in timelines(ratings).items() if len(rows) >= 20}
    assert set(people.by_id) == set(expected)
    for user, rows in expected.items():
        person = people.by_id[user]
        shown = [(one.name, one.time, one.categories) for one in (*person.past, person.future)]
        assert shown == [
            (movies[movie][0], time, tuple(movies[movie][1].split("|")))
            for movie, time in rows[-30:]
        ]
    everybody = timelines(ratings).values()
    tied = [rows for rows in expected.values() if [t for _, t in rows].count(rows[-1][1]) > 1]
    assert people.notes == {
        "users with at least 20 activities (4,297 in the paper)": len(expected),
        "users with fewer than 20 activities, left out": sum(len(rows) < 20 for rows in everybody),
        "users cut to their last 30 activities": sum(len(r) > 30 for r in expected.values()),
        "users with several last activities at one time": len(tied),
    }
    assert all(people.notes.values())


@pytest.mark.parametrize("distractors", ["uniform", "popularity"])
def test_wrong_options_are_never_the_users_nor_of_the_next_object(world, distractors):
    ratings, movies, folder = world
    people = load_people(
        "movielens", folder, min_activities=5, max_activities=10, distractors=distractors
    )
    rated = {}
    for user, movie, _ in ratings:
        rated.setdefault(user, set()).add(movies[str(movie)][0])
    of_name = Counter(movies[str(movie)][0] for _, movie, _ in ratings)
    of_genre = Counter(
        genre for _, movie, _ in ratings for genre in movies[str(movie)][1].split("|")
    )
    assert len(people.all) == 40
    for person in people.all:
        right, *wrong = person.activity.options
        assert right == person.future.name
        assert len({right, *wrong}) == 5
        assert set(wrong) <= of_name.keys() - rated[person.id]
        assert person.activity.counts == tuple(of_name[one] for one in person.activity.options)
        right, *wrong = person.category.options
        assert right in person.future.categories
        assert len({right, *wrong}) == 5
        assert set(wrong) <= of_genre.keys() - set(person.future.categories)
        assert person.category.counts == tuple(of_genre[one] for one in person.category.options)


def test_one_of_several_categories_is_right_by_chance(world):
    *_, folder = world
    places = Counter()
    for seed in range(4):
        for person in load_people("movielens", folder, seed=seed, min_activities=5).all:
            if len(person.future.categories) == 2:
                places[person.future.categories.index(person.category.options[0])] += 1
    assert abs(places[0] - places[1]) < 4 * sum(places.values()) ** 0.5
    assert sum(places.values()) > 30


@pytest.mark.parametrize("distractors", ["uniform", "popularity"])
def test_questions_depend_on_the_seed_and_the_user_alone(world, distractors):
    asked = {"min_activities": 5, "distractors": distractors}
    *_, folder = world
    every = load_people("movielens", folder, **asked)
    assert load_people("movielens", folder, limit=7, **asked).all == every.all[:7]
    assert every.all == load_people("movielens", folder, **asked).all
    other = load_people("movielens", folder, seed=1, **asked)
    assert {one.id for one in other.all} == set(every.by_id)
    assert any(one.activity != every.by_id[one.id].activity for one in other.all)
    assert any(one.category != every.by_id[one.id].category for one in other.all)
    assert all(one.past == every.by_id[one.id].past for one in other.all)


def test_the_order_of_rows_of_different_users_changes_nothing(world, movielens):
    ratings, movies, folder = world
    by_user = sorted(ratings, key=lambda row: row[0])
    again = movielens(by_user, [(n, *about) for n, about in movies.items()], name="by user")
    for last in ("source_order", "any_tied"):
        found = [
            load_people("movielens", data, min_activities=5, last=last) for data in (folder, again)
        ]
        assert found[0].all == found[1].all


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


FIVE = [(number, f"M{number}", genre) for number, genre in enumerate("ABCDEFGHIJ", 1)]


def test_one_of_several_last_activities_is_the_future_by_seed_if_asked(movielens):
    ratings = [("u", 1, 100), ("u", 2, 200), ("u", 3, 300), ("u", 4, 300), ("u", 5, 300)]
    folder = movielens([*ratings, *(("v", n, n) for n in range(6, 10))], FIVE)

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


def test_each_user_has_a_draw_of_its_own_among_last_activities_at_one_time(movielens):
    ratings = [(f"u{n}", film, 100) for n in range(60) for film in range(1, 6)]
    ratings += [("other", film, 100) for film in range(6, 11)]
    people = load_people("movielens", movielens(ratings, FIVE), min_activities=5, last="any_tied")
    futures = {one.future.name for one in people.all if one.id != "other"}
    assert futures == {"M1", "M2", "M3", "M4", "M5"}


def test_users_without_four_wrong_options_are_left_out_and_counted(movielens):
    # Of ten movies u has seen seven and v six; w's next movie has all categories but three.
    movies = [*FIVE[:9], (10, "M10", "A|B|C|D|E|F|G")]
    ratings = [("u", n, n) for n in range(1, 8)] + [("v", n, n) for n in range(1, 7)]
    ratings += [("w", 8, 1), ("w", 9, 2), ("w", 10, 3)]
    people = load_people("movielens", movielens(ratings, movies), min_activities=3)
    assert set(people.by_id) == {"v"}
    assert people.notes == {
        "users with at least 3 activities (4,297 in the paper)": 3,
        "users with fewer than four wrong options, left out": 2,
    }
