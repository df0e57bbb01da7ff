"""Wrong options, their order in each run, and whose summary is shown in place of one's own."""

from collections import Counter
from random import Random

import pytest
from harness_usersumbench.questions import Pool, derangement, ordered
from harness_usersumbench.records import TASKS, Drawn

from harness.base.errors import DataError

FIVE = Drawn(options=("right", "b", "c", "d", "e"), counts=(5, 9, 1, 9, 2))
CHI_SQUARED_4 = 18.467
"""The value that chance exceeds once in a thousand, with 4 degrees of freedom."""


@pytest.mark.parametrize("by_popularity", [False, True])
def test_wrong_options_are_four_that_are_not_excluded(by_popularity):
    pool = Pool([3, 1, 4, 1, 5, 9, 2, 6, 5, 3])
    for seed in range(500):
        rng = Random(seed)
        never = {int(rng.random() * 10) for _ in range(5)}
        found = pool.wrong(rng, 2, never=never, by_popularity=by_popularity)
        assert len(set(found)) == 4
        assert not {*found} & {*never, 2}


def test_the_only_four_left_are_found():
    pool = Pool([1] * 1_000)
    found = pool.wrong(Random(0), 3, never=set(range(996)), by_popularity=False)
    assert sorted(found) == [996, 997, 998, 999]


def test_uniform_options_are_equally_frequent():
    pool = Pool([1_000, *[1] * 20])
    counts = Counter()
    for seed in range(5_000):
        counts.update(pool.wrong(Random(seed), 0, never={1}, by_popularity=False))
    assert set(counts) == set(range(2, 21))
    expected = 20_000 / 19
    chi_squared = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_squared < 42.312  # exceeded once in a thousand, with 18 degrees of freedom


def test_popular_options_are_the_nearest_in_count():
    pool = Pool([100, 97, 104, 90, 1, 110, 5, 111])
    found = pool.wrong(Random(0), 0, never=(), by_popularity=True)
    # From 100: 97 is 3 away, 104 is 4, 90 and 110 are 10.
    assert found[:2] == [1, 2]
    assert set(found) == {1, 2, 3, 5}


def test_of_equally_near_options_neither_the_more_nor_the_less_popular_is_preferred():
    pool = Pool([50, 49, 49, 49, 45, 55])
    last = Counter()
    for seed in range(400):
        found = pool.wrong(Random(seed), 0, never=(), by_popularity=True)
        last.update(set(found) & {4, 5})
    assert min(last[4], last[5]) > 100


def test_equally_popular_options_are_drawn_and_not_taken_by_their_place():
    pool = Pool([7, *[7] * 40, 99])
    drawn = Counter()
    for seed in range(2_000):
        drawn.update(pool.wrong(Random(seed), 0, never=(), by_popularity=True))
    assert set(drawn) == set(range(1, 41))
    assert min(drawn.values()) > 120  # 200 are expected


def test_the_right_answer_is_everywhere_equally_often():
    for task in TASKS:
        places = Counter(
            ordered(FIVE, seed=0, user=f"u{number}", task=task, run=number % 3).right
            for number in range(2_000)
        )
        assert sum((places[place] - 400) ** 2 / 400 for place in range(5)) < CHI_SQUARED_4


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


@pytest.mark.parametrize("other", [{"seed": 1}, {"user": "v"}, {"task": "t2"}, {"run": 1}], ids=str)
def test_order_depends_on_seed_user_task_and_run(other):
    given = {"seed": 0, "user": "u", "task": "t1", "run": 0}
    drawn = Drawn(options=tuple("abcdefghijklmnop"), counts=(1,) * 16)
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


def test_one_user_has_no_other(raised):
    assert (
        raised(DataError, derangement, ["u"], 0, found="1 user")
        == "no other user's summary can be shown\nexpected: at least two users\n"
        "to do: leave out the tasks that end in _other, or take more with --limit"
    )
