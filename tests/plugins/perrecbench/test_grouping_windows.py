"""The best window of an item and the set of users in it, against tries of every set."""

from itertools import combinations
from random import Random

from harness_perrecbench.grouping.pool import best_window, first_largest, largest


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
    assert largest([1.0, 1.6], gap=0.6) == 1, "0.6000000000000001 as floating numbers"
    assert largest([0.0, 0.600001], gap=0.6) == 2
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
        times, values = zip(*item, strict=True)
        assert best_window(starts, times, values, span=10, gap=0.6, least=2) == best
