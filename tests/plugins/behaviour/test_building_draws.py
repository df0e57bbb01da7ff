"""Algorithm 1 on small arrays: sets of users, histories, candidates, cells."""

from itertools import islice
from random import Random

import numpy as np
import pytest
from harness_behaviour.building import draws

SEED = (0, "test")


def had_of(*of_users, inventory):
    """Who has what, given the items of each user."""
    users = np.array([user for user, own in enumerate(of_users) for _ in own], dtype=np.int64)
    items = np.array([item for own in of_users for item in own], dtype=np.int64)
    return draws.who_has(users, items, of_users=len(of_users), inventory=inventory)


@pytest.fixture
def crowd():
    """A hundred users, each with half of a hundred and twenty items."""
    rng = np.random.default_rng(3)
    return had_of(*(rng.permutation(120)[:60].tolist() for _ in range(100)), inventory=120)


def test_popular_items_are_drawn_more_often_and_items_of_nobody_never():
    found = draws.histories(Random(1), 1, inventory=3, weights=[1, 0, 3])
    drawn = [one for (one,) in islice(found, 4000)]
    assert set(drawn) == {0, 2}
    assert drawn.count(2) == pytest.approx(3000, abs=100)


def test_half_of_the_candidates_are_of_nobody_and_none_is_of_the_history(crowd):
    users = draws.set_of([4], of_users=100)
    own = crowd.of(4).tolist()
    # The second item of the history is one that the user lacks.
    history = own[0], next(item for item in range(120) if item not in own)
    candidates, outside = draws.select(crowd, users, history, Random(1))
    assert len(set(candidates)) == 50
    assert outside == 25
    assert len({*candidates} & {*own}) == 25
    assert not {*candidates} & {*history}
    assert [one in own for one in candidates] != sorted(one in own for one in candidates)


def test_groups_take_turns_and_a_group_without_success_keeps_its_turn(crowd):
    groups = [draws.set_of(range(50), of_users=100), draws.set_of([50, 51], of_users=100)]
    cell = draws.draw(crowd, groups, 1, most=1000, tries=9, seed=SEED)
    assert [one.group for one in cell.found] == [0] * 5
    assert cell.tried == 9


def test_a_cell_depends_on_its_seed_alone(crowd, monkeypatch):
    # Three groups do not fit evenly into histories that are looked at 7 or 500 at a time.
    groups = [draws.set_of(range(n, n + 60), of_users=100) for n in (0, 20, 40)]

    def cell(seed=SEED, tries=300):
        found = draws.draw(crowd, groups, 5, most=20, tries=tries, seed=seed)
        return [(one.group, one.history, one.candidates, one.counts) for one in found.found]

    first = cell()
    assert cell(tries=200) == first
    assert cell(seed=(1, "test")) != first
    monkeypatch.setattr(draws, "TOGETHER", 7)
    assert cell() == first
