"""Wrong options, their order, whose summary is shown, and what the sample says of them."""

from collections import Counter
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from builders.usersumbench import options
from harness_usersumbench import rules
from harness_usersumbench.questions import Pool, derangement, ordered
from harness_usersumbench.records import TASKS, Drawn
from harness_usersumbench.rendering import lines
from samples.usersumbench import write

from harness.scoring.stats import paired_interval

from .conftest import load_people

FIVE = Drawn(options=("right", "b", "c", "d", "e"), counts=(5, 9, 1, 9, 2))


def test_the_only_four_left_are_found():
    pool, never = Pool([1] * 1_000), set(range(996))
    for first, *others in (
        pool.by_chance(Random(0), 3, never=never),
        pool.by_popularity(Random(0), [3], never=never, often=Counter()),
    ):
        assert (first, sorted(others)) == (3, [996, 997, 998, 999])


def test_uniform_options_are_equally_frequent():
    pool = Pool([1_000, *[1] * 20])
    counts = Counter()
    for seed in range(5_000):
        counts.update(pool.by_chance(Random(seed), 0, never={0, 1})[1:])
    assert set(counts) == set(range(2, 21))
    expected = 20_000 / 19
    chi_squared = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_squared < 42.312  # exceeded once in a thousand, with 18 degrees of freedom


COUNTS = (100, 97, 104, 90, 1, 110, 5, 111)
"""The numbers by popularity, the most popular first: 7, 5, 2, 0, 1, 3, 6, 4."""


def test_popular_options_are_the_nearest_on_either_side_of_a_place_by_chance():
    places = Counter()
    for seed in range(2_000):
        found = Pool(COUNTS).by_popularity(Random(seed), [0], never={0}, often=Counter())
        assert set(found) in ({0, 1, 3, 6, 4}, {2, 0, 1, 3, 6}, {5, 2, 0, 1, 3}, {7, 5, 2, 0, 1})
        places[sum(COUNTS[number] > 100 for number in found)] += 1
    assert sorted(places) == [0, 1, 2, 3]  # Three are more popular than 0.
    assert min(places.values()) > 430  # 500 are expected.


def test_a_place_that_an_option_cannot_have_is_left_to_others():
    pool, often = Pool(COUNTS), Counter()
    for seed in range(200):
        found = pool.by_popularity(Random(seed), [7], never={7}, often=often)
        assert found == [7, 5, 2, 0, 1]  # the most popular of all can only be the first
        pool.by_popularity(Random(seed), [3], never={3}, often=often)
    # Two are less popular than 3: it is the third, the fourth and the fifth in turn.
    assert often[0] == 200
    assert [often[1], *sorted((often[2], often[3], often[4]))] == [0, 66, 67, 67]


def test_of_several_right_answers_one_that_can_be_at_the_rare_place_is_taken():
    often = Counter({0: 5, 1: 5, 2: 5, 3: 5})
    found = Pool(COUNTS).by_popularity(Random(0), [7, 3], never={7, 3}, often=often)
    assert found == [3, 1, 0, 2, 5]
    assert often == {0: 5, 1: 5, 2: 5, 3: 5, 4: 1}


def test_equally_popular_options_are_not_taken_by_their_number():
    pool = Pool([7, *[7] * 400, 99])
    found = pool.by_popularity(Random(0), [200], never={200}, often=Counter())
    assert max(abs(number - 200) for number in found if number < 401) > 20


GENRES = tuple(f"Genre {number}" for number in range(18))
GENRE_WEIGHTS = (22, 21, 14, 11, 9, 8, 8, 5, 4, 4, 4, 3, 2, 2, 2, 1, 1, 1)


def test_with_popular_wrong_options_no_rule_on_rank_or_position_is_better_than_chance(movielens):
    """Of 5,000 users who each rated three of 800 films, of which few are rated by many."""
    chance = Random(11)
    movies = []
    for movie in range(800):
        genres = dict.fromkeys(chance.choices(GENRES, GENRE_WEIGHTS, k=chance.choice((1, 2, 3))))
        title = f"{'Long ' * chance.randrange(9)}Film {movie} ({chance.randrange(1930, 2001)})"
        movies.append((movie, title, "|".join(genres)))
    weights = [1 / (movie + 60) for movie in range(800)]
    ratings = []
    for user in range(5_000):
        own = dict.fromkeys(chance.choices(range(800), weights, k=9))
        ratings += [(user, movie, 1_000 + time) for time, movie in enumerate([*own][:3])]
    folder = movielens(ratings, movies)
    people = load_people("movielens", folder, min_activities=3, distractors="popularity")
    assert len(people.all) == 5_000
    for task in TASKS:
        ranks, positions = Counter(), Counter()
        for one in people.all:
            drawn = one.activity if task in ("t1", "t2") else one.category
            shown = ordered(drawn, seed=0, user=one.id, task=task, run=1)
            counts = dict(zip(drawn.options, drawn.counts, strict=True))
            # Of options that are equally popular, a rule takes the first shown.
            by_rank = sorted(shown.options, key=lambda option: -counts[option])
            ranks[by_rank.index(shown.options[shown.right])] += 1
            positions[shown.right] += 1
        assert max(*ranks.values(), *positions.values()) < 0.22 * 5_000, (task, ranks, positions)


def test_the_right_answer_is_everywhere_equally_often():
    for task in TASKS:
        places = Counter(
            ordered(FIVE, seed=0, user=f"u{number}", task=task, run=number % 3).right
            for number in range(2_000)
        )
        # Chance exceeds this once in a thousand, with 4 degrees of freedom.
        assert sum((places[place] - 400) ** 2 / 400 for place in range(5)) < 18.467


def test_a_run_shows_the_same_options_in_another_order():
    shown = [ordered(FIVE, seed=0, user="u", task="t1", run=run) for run in range(20)]
    assert len({one.options for one in shown}) > 15
    for one in shown:
        assert sorted(one.options) == sorted(FIVE.options)
        assert one.options[one.right] == "right"
        # Of two options that the data has most often, the first shown.
        assert one.popular == min(one.options.index("b"), one.options.index("d"))
    assert {one.options[one.popular] for one in shown} == {"b", "d"}
    assert shown[3] == ordered(FIVE, seed=0, user="u", task="t1", run=3)
    given = {"seed": 0, "user": "u", "task": "t1", "run": 0}
    drawn = Drawn(options=tuple("abcdefghijklmnop"), counts=(1,) * 16)
    for other in ({"seed": 1}, {"user": "v"}, {"task": "t2"}, {"run": 1}):
        assert ordered(drawn, **given) != ordered(drawn, **{**given, **other})


def test_everybody_is_shown_another_users_summary_and_nobody_two():
    for seed in range(50):
        ids = [f"u{number}" for number in range(seed + 2)]
        others = derangement(ids, seed)
        assert sorted(others) == sorted(others.values()) == sorted(ids)
        assert all(user != other for user, other in others.items())
        assert others == derangement(ids[::-1], seed)
    ids = [f"u{number}" for number in range(30)]
    assert derangement(ids, 1) != derangement(ids, 2)


def good(people, options, summaries):
    """For each user whether three of four are right; the rule answers alike in each run."""
    values = []
    for person in people.all:
        right = 0
        for task in TASKS:
            drawn = person.activity if task in ("t1", "t2") else person.category
            shown = person.past[-options.recent :] if task in ("t2", "t4") else ()
            asked = ordered(drawn, seed=people.seed, user=person.id, task=task, run=0)
            said = rules.predict({
                "summary": summaries.get(person.id),
                "user_activities": "\n".join(lines(shown, options)),
                "options": list(zip("ABCDE", asked.options, strict=True)),
            }, Random(0))  # fmt: skip
            right += "ABCDE".index(said) == asked.right
        values.append(float(right >= 3))
    return np.array(values)


def compared(folder, plant):
    """The bounds of how much own summaries exceed none, and none another user's, by plant."""
    people = load_people("movielens", write(folder / "made", seed=1, plant=plant))
    asked = options()
    shown = {one.id: "\n".join(lines(one.past, asked)) for one in people.all}
    own = {id: rules.summarise({"user_activities": text}, Random(0)) for id, text in shown.items()}
    others = {user: own[other] for user, other in derangement(list(own), people.seed).items()}
    values = [good(people, asked, one) for one in (own, {}, others)]
    for first, second in pairwise(values):
        found = paired_interval(first, second, np.arange(len(first)), seed=0)
        yield found.low, found.high


@pytest.mark.parametrize("plant", [0.95, 0])
def test_in_a_planted_sample_a_summary_beats_none_and_none_beats_another_users(tmp_path, plant):
    for low, high in compared(tmp_path, plant):
        if plant:
            assert 0.05 < low < high
        else:
            assert low <= 0 <= high
            assert high - low < 0.2, "the interval could show an effect"
