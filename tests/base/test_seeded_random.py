"""Draws, worked out by hand from the numbers of `Random(7)`: 0.3238, 0.1508, 0.6509, 0.0724.

They are those of the Mersenne Twister, which every version of Python has.
"""

from random import Random

import pytest

from harness.base.seeded_random import drawn, picked, shuffled


def test_one_of_the_values_is_picked():
    rng = Random(7)
    # 0.3238 of 4 is 1, 0.1508 of 4 is 0, 0.6509 of 4 is 2.
    assert [picked(rng, "abcd") for _ in range(3)] == ["b", "a", "c"]


def test_all_values_are_put_in_another_order_and_each_place_takes_one_number():
    values = ["a", "b", "c", "d"]
    # 0.3238 of 4 is 1: b acd. 0.1508 of 3 is 0: ba cd. 0.6509 of 2 is 1: bad c.
    assert shuffled(Random(7), values) == ("b", "a", "d", "c")
    assert values == ["a", "b", "c", "d"]
    rng = Random(7)
    shuffled(rng, "abc")
    assert rng.random() == pytest.approx(0.0724, abs=5e-5)
    assert shuffled(Random(7), ()) == ()


@pytest.mark.parametrize(
    ("count", "those"), [(0, []), (1, ["b"]), (3, ["b", "a", "d"]), (9, ["b", "a", "d", "c"])]
)
def test_no_more_are_drawn_than_are_asked_for_or_there(count, those):
    assert drawn(Random(7), "abcd", count) == those
