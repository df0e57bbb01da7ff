"""The best window of an item and the set of users in it, against tries of every set."""

from itertools import combinations
from random import Random

import pytest
from harness_perrecbench.grouping.pool import (
    best_window,
    first_largest,
    largest,
)


def purchases(*pairs, starts=None):
    times = [time for time, _ in pairs]
    return times if starts is None else starts, times, [value for _, value in pairs]


@pytest.mark.parametrize(
    ("values", "many"),
    [
        ([], 0),
        ([1.0], 1),
        ([1.0, 1.0, 1.0], 1),
        ([0.0, 0.6], 1),
        ([1.0, 1.6], 1),  # as floating numbers these are 0.6000000000000001 apart
        ([0.0, 0.6000000001], 1),
        ([0.0, 0.600001], 2),
        ([0.0, 0.5, 0.7, 1.3, 1.5], 3),
        ([-4.0, -3.39, -2.78, 4.0], 4),
    ],
)
def test_values_count_together_when_they_are_more_than_the_gap_apart(values, many):
    assert largest(values, gap=0.6) == many


def test_a_gap_of_nothing_still_keeps_equal_values_apart():
    assert largest([0.0, 0.0, 0.25], gap=0.0) == 2


def test_a_window_holds_both_of_its_ends():
    item = purchases((100, 0.0), (130, 1.0))
    assert best_window(*item, span=30, gap=0.6, least=2) == (0, 2)
    assert best_window(*item, span=29, gap=0.6, least=2) is None


def test_the_window_with_the_largest_set_wins_not_the_fullest():
    crowd = [(0, 0.0), (1, 0.1), (2, 0.2), (3, 0.3), (4, 1.0)]
    few = [(100, -1.0), (101, 0.0), (102, 1.0)]
    assert best_window(*purchases(*crowd, *few), span=10, gap=0.6, least=2) == (5, 8)


def test_of_windows_with_equally_large_sets_the_earliest_wins():
    item = purchases((0, 0.0), (1, 1.0), (50, 0.0), (51, 2.0), (52, 2.1))
    assert best_window(*item, span=10, gap=0.6, least=2) == (0, 2)


def test_a_window_starts_at_any_purchase_by_whomever():
    # The user at 0 has too short a history to be asked about.
    item = [(10, 0.0), (20, 1.0), (40, 0.0)]
    assert best_window(*purchases(*item), span=30, gap=0.6, least=2) == (0, 3)
    early = purchases(*item, starts=[0, 10, 20, 40])
    assert best_window(*early, span=30, gap=0.6, least=2) == (0, 2)


def test_purchases_of_one_moment_are_in_one_window():
    item = purchases((5, 0.0), (5, 1.0), (5, 2.0))
    assert best_window(*item, span=0, gap=0.6, least=3) == (0, 3)


def test_of_several_largest_sets_the_earliest_in_the_order_is_taken():
    values = [0.0, 0.1, 1.0, 1.1]
    assert first_largest(values, [3, 2, 1, 0], gap=0.6) == [3, 1]
    assert first_largest(values, [0, 1, 2, 3], gap=0.6) == [0, 2]
    # 0.5 is apart from nothing, and no set of two holds it.
    assert first_largest([0.0, 0.5, 1.0], [1, 0, 2], gap=0.6) == [0, 2]


def apart(values, gap):
    return all(other - one > gap + 1e-9 for one, other in combinations(sorted(values), 2))


def tried(values, gap):
    """Every largest set of places that are apart, by trying all sets."""
    for many in range(len(values), 0, -1):
        sets = [
            places
            for places in combinations(range(len(values)), many)
            if apart([values[place] for place in places], gap)
        ]
        if sets:
            return sets
    return [()]


def test_sets_are_as_large_as_trying_all_finds_and_the_first_by_order():
    rng = Random(3)
    for _ in range(400):
        values = sorted(round(rng.random() * 4, 1) for _ in range(int(rng.random() * 9)))
        order = sorted(range(len(values)), key=lambda _: rng.random())
        sets = tried(values, 0.6)
        assert largest(values, gap=0.6) == len(sets[0])
        by_order = min(sorted(order.index(place) for place in places) for places in sets)
        assert first_largest(values, order, gap=0.6) == [order[place] for place in by_order]


def test_the_best_window_is_that_which_trying_all_finds():
    rng = Random(4)
    for _ in range(400):
        many = 1 + int(rng.random() * 9)
        item = sorted((int(rng.random() * 40), round(rng.random() * 4, 1)) for _ in range(many))
        idle = [int(rng.random() * 40) for _ in range(int(rng.random() * 4))]
        starts = sorted([time for time, _ in item] + idle)
        best, size = None, 1
        for start in starts:
            held = [place for place, (time, _) in enumerate(item) if start <= time <= start + 10]
            found = len(tried([item[place][1] for place in held], 0.6)[0])
            if found > size:
                best, size = (held[0], held[-1] + 1), found
        asked = purchases(*item, starts=starts)
        assert best_window(*asked, span=10, gap=0.6, least=2) == best
