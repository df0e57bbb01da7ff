"""Entropies and cross-entropies: by hand, against a slow reference, and random rankings."""

from math import isclose, log
from random import Random

import numpy as np
import pytest
from harness_behaviour.entropy import Targets, crossed, drawn, filled, gains, most_frequent, seen

FIVE = (0.0, 0.5, 0.3, 0.0, 0.2)
"""Five candidates, of whom the group has three; two of them are ranked."""


def cross(target, ranked, epsilon):
    [[found]] = crossed(Targets([target]), np.array([[ranked]])).at(epsilon).tolist()
    return found


def slow(target, ranked, epsilon):
    """The definition word by word: the cross-entropy, and the displaced mass."""
    falling = sorted(target, reverse=True)
    rest = [place for place in range(len(target)) if place not in ranked]
    rest.sort(key=lambda place: -target[place])
    estimate = dict(zip([*ranked, *rest], falling, strict=True))
    lost = [place for place, q in estimate.items() if q == 0 and target[place] > 0]
    for place in lost:
        estimate[place] = epsilon
    total = sum(estimate.values())
    found = -sum(p * log(estimate[place] / total) for place, p in enumerate(target) if p > 0)
    return found, sum(target[place] for place in lost)


def test_the_entropy_has_the_natural_logarithm():
    [found] = Targets([FIVE]).entropies().tolist()
    assert isclose(found, -(0.5 * log(0.5) + 0.3 * log(0.3) + 0.2 * log(0.2)))
    assert Targets([(1.0, 0.0), (0.5, 0.5)]).entropies().tolist() == [0.0, -log(0.5)]


def test_five_candidates_by_hand():
    # The ranking 4, 1 gets .5 and .3; of the others 2 has most and gets .2; nothing is ruled out.
    assert isclose(cross(FIVE, [4, 1], 1e-6), -(0.2 * log(0.5) + 0.5 * log(0.3) + 0.3 * log(0.2)))
    assert cross(FIVE, [4, 1], 1e-6) == cross(FIVE, [4, 1], 1e-3)
    # The ranking 0, 4 gets .5 and .3; then 1 gets .2, and 2 is ruled out: q is epsilon there alone,
    # and all are divided by 1 + epsilon.
    for epsilon in (1e-6, 1e-3):
        terms = 0.2 * log(0.3) + 0.5 * log(0.2) + 0.3 * log(epsilon)
        assert isclose(cross(FIVE, [0, 4], epsilon), -terms + log(1 + epsilon))
    # Both ranked candidates are nobody's: 1 gets .2, and 2 and 4 are ruled out.
    terms = 0.5 * log(0.2) + (0.3 + 0.2) * log(1e-3)
    assert isclose(cross(FIVE, [0, 3], 1e-3), -terms + log(1 + 2e-3))
    parts = crossed(Targets([FIVE]), np.array([[[4, 1], [0, 4], [0, 3]]]))
    assert parts.displaced.tolist() == [[0.0, 0.3, 0.5]]
    assert parts.zeroed.tolist() == [[0, 1, 2]]


def test_the_fast_path_is_the_slow_one():
    chance = Random(17)
    for _ in range(300):
        width = chance.randint(3, 60)
        had = [chance.choice((0, 0, 1, 2, 3, 7)) for _ in range(width)]
        had[chance.randrange(width)] += 1
        ranked = chance.sample(range(width), chance.randint(1, min(width, 10)))
        target = [one / sum(had) for one in had]
        for epsilon in (1e-6, 1e-3):
            expected, displaced = slow(target, ranked, epsilon)
            assert isclose(cross(target, ranked, epsilon), expected, rel_tol=1e-9, abs_tol=1e-12)
        [[found]] = crossed(Targets([target]), np.array([[ranked]])).displaced.tolist()
        assert isclose(found, displaced, abs_tol=1e-12)


def test_gain_and_share_seen_by_hand():
    targets = Targets([FIVE])
    rankings = np.array([[[1, 2], [2, 1], [0, 4]]])
    second = 1 / np.log2(3)
    best = 0.5 + 0.3 * second
    expected = [1.0, (0.3 + 0.5 * second) / best, 0.2 * second / best]
    assert np.allclose(gains(targets, rankings), [expected])
    assert seen(targets, rankings).tolist() == [[1.0, 1.0, 0.5]]


def test_the_most_frequent_come_first_and_equals_as_they_are_shown():
    assert most_frequent(np.array([(1, 5, 0, 5, 2)]), 4).tolist() == [[[1, 3, 4, 0]]]


def test_random_rankings_are_decided_by_the_id_alone():
    some = drawn(["a", "b"], 3, candidates=50, ranked=10)
    again = drawn(["c", "b", "a"], 3, candidates=50, ranked=10)
    assert (some[0] == again[2]).all()
    assert (some[1] == again[1]).all()
    assert (drawn(["a"], 2, candidates=50, ranked=10)[0] == some[0, :2]).all()
    # These are the numbers on every machine.
    assert drawn(["movies/all/5/001"], 2, candidates=50, ranked=5).tolist() == [
        [[15, 32, 24, 40, 46], [42, 36, 1, 3, 21]]
    ]


def test_random_rankings_have_each_candidate_as_often():
    ids = [f"prompt {number}" for number in range(2_000)]
    found = drawn(ids, 20, candidates=50, ranked=10)
    assert all(len(set(one)) == 10 for one in found.reshape(-1, 10).tolist()[:2_000])
    for place in range(10):
        counts = np.bincount(found[:, :, place].ravel(), minlength=50)
        spread = ((counts - 800) ** 2 / 800).sum()
        assert spread < 94, place  # chi-squared with 49 degrees of freedom, p = .0001


@pytest.mark.parametrize("named", [(), (7,), (3, 1, 2, 4, 9), tuple(range(10))])
def test_empty_places_are_filled_with_what_is_not_named(named):
    fills = drawn(["x"], 20, candidates=50, ranked=10)
    [found] = filled([named], fills).tolist()
    for one, fill in zip(found, fills[0].tolist(), strict=True):
        assert tuple(one[: len(named)]) == named
        assert (
            one[len(named) :] == [place for place in fill if place not in named][: 10 - len(named)]
        )
